"""A client as it comes, told to speak HTTP/2 if it can be told.

One JSON object in (standard input), one out. In: {"client": of CLIENTS, "url", "ca_file", "times"}.
Out: {"release", "requests": how many were answered, "failure": null or words}. It is the server
that sees what the client says; one that answers nothing after the greeting makes a failure, which
is none of the client's.
"""

import asyncio
import importlib.metadata
import io
import json
import socket
import ssl
import sys
from urllib.parse import urlsplit


def of_requests(url, ca_file):
    """Return a function that asks with one Session."""
    import requests

    session = requests.Session()
    return lambda: session.get(url, verify=ca_file, timeout=10)


def of_httpx(url, ca_file):
    """Return a function that asks with one Client."""
    import httpx

    client = httpx.Client(http2=True, verify=ssl.create_default_context(cafile=ca_file))
    return lambda: client.get(url)


def of_aiohttp(url, ca_file):
    """Return a function that asks with one session."""
    import aiohttp

    loop = asyncio.new_event_loop()
    context = ssl.create_default_context(cafile=ca_file)

    async def opened():
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))

    async def get():
        async with session.get(url) as response:
            await response.read()

    session = loop.run_until_complete(opened())
    return lambda: loop.run_until_complete(get())


def of_niquests(url, ca_file):
    """Return a function that asks with one Session."""
    import niquests

    session = niquests.Session()
    return lambda: session.get(url, verify=ca_file, timeout=10)


def of_pycurl(url, ca_file):
    """Return a function that asks with one transfer, again and again."""
    import pycurl

    transfer = pycurl.Curl()
    transfer.setopt(pycurl.URL, url)
    transfer.setopt(pycurl.CAINFO, ca_file)
    transfer.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
    transfer.setopt(pycurl.TIMEOUT, 10)

    def get():
        transfer.setopt(pycurl.WRITEDATA, io.BytesIO())
        transfer.perform()

    return get


def of_curl_cffi(url, ca_file):
    """Return a function that asks with one Session."""
    from curl_cffi import requests

    session = requests.Session(verify=ca_file)
    return lambda: session.get(url, timeout=10)


def of_h2(url, ca_file):
    """Return a function that sends what the package h2 says by itself, and one request."""
    import h2.connection

    def get():
        parts = urlsplit(url)
        context = ssl.create_default_context(cafile=ca_file)
        context.set_alpn_protocols(["h2"])
        address = parts.hostname, parts.port
        with context.wrap_socket(
            socket.create_connection(address), server_hostname=address[0]
        ) as s:
            protocol = h2.connection.H2Connection()
            protocol.initiate_connection()
            names = {":method": "GET", ":scheme": "https", ":authority": parts.netloc, ":path": "/"}
            protocol.send_headers(1, list(names.items()), end_stream=True)
            s.sendall(protocol.data_to_send())
            while s.recv(4096):
                pass
        raise ConnectionError("no answer")

    return get


CLIENTS = {
    "requests": of_requests,
    "httpx": of_httpx,
    "aiohttp": of_aiohttp,
    "niquests": of_niquests,
    "pycurl": of_pycurl,
    "curl_cffi": of_curl_cffi,
    "h2": of_h2,
}


def main():
    """Send the requests, and print what became of them."""
    parameters = json.load(sys.stdin)
    release = importlib.metadata.version(parameters["client"].replace("_", "-"))
    answered, failure = 0, None
    try:
        get = CLIENTS[parameters["client"]](parameters["url"], parameters["ca_file"])
        for _ in range(parameters["times"]):
            get()
            answered += 1
    except Exception as error:  # what it makes of a server that hangs up
        failure = f"{type(error).__name__}: {error}"
    print(json.dumps({"release": release, "requests": answered, "failure": failure}))


if __name__ == "__main__":
    main()
