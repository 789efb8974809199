"""A session of a library, in which each book comes over a connection of its own.

One JSON object in (standard input), one out. In: {"library": "curl", "niquests" or "pycurl", "url",
"ca_file", "path" (of the book), "times", "method" (of pycurl's connections after the first: "GET",
or "POST", which the store refuses)}.

Out: {"steps": [{"step": "fresh" or "next", "wall_s", "body" (text; none if it was refused)}],
"failure": null or words}.
"""

import json
import sys
import time
from urllib.parse import urlsplit


def of_curl(spec):
    """Return a function that fetches the book with curl_cffi, and closes each connection after use.

    It is told that the first request may leave with the handshake, if the server allows that.
    """
    from curl_cffi import CurlHttpVersion, CurlOpt, requests

    may_be_early = 1 << 6  # CURLSSLOPT_EARLYDATA, curl/curl.h
    session = requests.Session(
        verify=spec["ca_file"],
        http_version=CurlHttpVersion.V3ONLY,
        curl_options={CurlOpt.FORBID_REUSE: 1, CurlOpt.SSL_OPTIONS: may_be_early},
    )

    def fetch():
        response = session.get(spec["url"] + spec["path"])
        return response.http_version == CurlHttpVersion.V3, response.status_code, response.content

    return fetch


def of_pycurl(spec):
    """Return a function that fetches the book with pycurl, over a new connection each time.

    The transfers share what libcurl keeps of TLS sessions, and are told that a request may leave
    with the handshake.
    """
    import io

    import pycurl

    share = pycurl.CurlShare()
    share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_SSL_SESSION)

    def fetch(method="GET"):
        transfer, body = pycurl.Curl(), io.BytesIO()
        transfer.setopt(pycurl.SHARE, share)
        transfer.setopt(pycurl.URL, spec["url"] + spec["path"])
        transfer.setopt(pycurl.CAINFO, spec["ca_file"])
        transfer.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_3ONLY)
        transfer.setopt(pycurl.SSL_OPTIONS, pycurl.SSLOPT_EARLYDATA)
        transfer.setopt(pycurl.WRITEDATA, body)
        if method == "POST":
            transfer.setopt(pycurl.POSTFIELDS, "a=order")
        transfer.perform()
        is_http3 = transfer.getinfo(pycurl.INFO_HTTP_VERSION) == pycurl.CURL_HTTP_VERSION_3
        result = is_http3, transfer.getinfo(pycurl.RESPONSE_CODE), body.getvalue()
        transfer.close()
        return result

    return fetch


def of_niquests(spec):
    """Return a function that fetches the book with niquests.

    It then closes the session's connections.
    """
    import niquests

    address = urlsplit(spec["url"])
    cache = niquests.structures.QuicSharedCache(max_size=1)
    cache[(address.hostname, address.port)] = (address.hostname, address.port)
    session = niquests.Session(quic_cache_layer=cache)
    session.verify = spec["ca_file"]

    def fetch():
        response = session.get(spec["url"] + spec["path"])
        result = response.raw.version == 30, response.status_code, response.content
        for adapter in session.adapters.values():
            adapter.close()
        return result

    return fetch


def visit(spec):
    """Fetch the book several times, and return what each of the connections took."""
    library = {"curl": of_curl, "niquests": of_niquests, "pycurl": of_pycurl}[spec["library"]]
    fetch = library(spec)
    steps = []
    for i in range(spec["times"]):
        posts = i > 0 and spec.get("method") == "POST"
        began = time.perf_counter()
        is_http3, status, body = fetch("POST") if posts else fetch()
        wall_s = time.perf_counter() - began
        if not is_http3 or status != (405 if posts else 200):
            raise ValueError(f"status {status}, over HTTP/3: {is_http3}")
        steps.append({"step": "next" if i else "fresh", "wall_s": round(wall_s, 6)})
        if not posts:
            steps[-1]["body"] = body.decode("utf-8")
    return steps


if __name__ == "__main__":
    parameters = json.load(sys.stdin)
    try:
        print(json.dumps({"steps": visit(parameters), "failure": None}))
    except Exception as error:  # whatever a library raises is said, and refused by who asked
        print(json.dumps({"steps": [], "failure": f"{type(error).__name__}: {error}"}))
