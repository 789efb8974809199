"""Connect again and again with one shared context: one JSON object in, one out.

In: {"context": "ssl" or "truststore", "url", "n"}; the system's default bundle is what
SSL_CERT_FILE names. Each of the n connections makes a handshake and fetches one page.

Out: {"python", "openssl", "pages": [[status, page], ...], "failure": null or a text,
"making" and "connecting": {"wall_s", "cpu_s", "loads"}}: the context, and all connections.
"""

import json
import ssl
import sys
import traceback
from http.client import HTTPSConnection
from urllib.parse import urlsplit

import counting


def make(kind):
    """A context that verifies against the system's default certificates."""
    if kind == "ssl":
        return ssl.create_default_context()
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def fetch(context, address, page):
    """One page over a connection of its own: [status, the page that came]."""
    connection = HTTPSConnection(address.hostname, address.port, context=context, timeout=30)
    try:
        connection.request("GET", "/delay/0?page=%d" % page, headers={"Connection": "close"})
        response = connection.getresponse()
        return [response.status, int(json.loads(response.read())["args"]["page"][0])]
    finally:
        connection.close()


def main():
    spec = json.load(sys.stdin)
    answer = {"python": sys.version.split()[0], "openssl": ssl.OPENSSL_VERSION}
    answer.update(pages=[], failure=None)
    try:
        if spec["context"] == "truststore":
            import truststore  # noqa: F401  the import is not what is measured
        counters = counting.install()
        address = urlsplit(spec["url"])
        tally = counting.Tally(counters)
        context = make(spec["context"])
        answer["making"] = tally.look()
        for page in range(spec["n"]):
            answer["pages"].append(fetch(context, address, page))
        answer["connecting"] = tally.look()
    except Exception:
        answer["failure"] = traceback.format_exc().strip().splitlines()[-1]
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
