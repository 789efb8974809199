"""Connect again and again with one shared context: one JSON object in, one out.

In: {"context": "ssl" or "truststore", "url", "n"}; the system's default bundle is what
SSL_CERT_FILE names. Each of the n connections makes a handshake and fetches one page.

Out: {"openssl", "pages": [[status, page], ...], "making" and "connecting": {"wall_s", "cpu_s",
"loads"}}: the context, and all connections.
"""

import json
import ssl
from functools import partial
from http.client import HTTPSConnection
from urllib.parse import urlsplit

import answering
import counting


def fetch(context, address, page):
    """Fetch one page over a connection of its own: [status, the page that came]."""
    connection = HTTPSConnection(address.hostname, address.port, context=context, timeout=30)
    try:
        connection.request("GET", "/delay/0?page=%d" % page, headers={"Connection": "close"})
        response = connection.getresponse()
        return [response.status, int(json.loads(response.read())["args"]["page"][0])]
    finally:
        connection.close()


def run(spec):
    """Connect several times, and return what each connection cost."""
    new_context = ssl.create_default_context
    if spec["context"] == "truststore":
        import truststore

        new_context = partial(truststore.SSLContext, ssl.PROTOCOL_TLS_CLIENT)
    address = urlsplit(spec["url"])
    tally = counting.Tally(counting.install())
    context = new_context()
    answer = {"openssl": ssl.OPENSSL_VERSION, "making": tally.lap()}
    answer["pages"] = [fetch(context, address, page) for page in range(spec["n"])]
    answer["connecting"] = tally.lap()
    return answer


if __name__ == "__main__":
    answering.answer(run)
