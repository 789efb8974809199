"""Ask hosts one thing after another, and count at each: one JSON object in, one out.

In: {"steps": the stack's, "bundle": what verify=True trusts, "asks": [{"what", "url", "session":
a name or null (requests.get), "via": a proxy's URL or null, "cert": a path or null, "drop": the
URL of a reception at which to have the idle connections closed before, or null}, ...]}.

Out: {"python", "openssl", "rows": [{"what", "shown", and all that counting.Tally has}, ...]}: a row
for the import, then one for each ask. Its counters have the connections over TLS that were begun.
"""

import ssl
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

import answering
import counting
import steps


def have_dropped(reception):
    """Have the hosts close their idle connections; they are closed when this returns."""
    address = urlsplit(reception)
    connection = HTTPConnection(address.hostname, address.port, timeout=30)
    try:
        connection.request("POST", "/", headers={"Connection": "close"})
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError("the reception answered %s" % response.status)
    finally:
        connection.close()


def run(spec):
    """Take the steps, ask all that is asked, and return rows."""
    steps.trust_bundle(spec["bundle"])
    counters = counting.count_imports()
    counters["connections"] = 0
    wrap = ssl.SSLContext.wrap_socket
    ssl.SSLContext.wrap_socket = counting.count_calls(wrap, counters, "connections")
    tally = counting.Tally(counters)
    steps.take_all(spec["steps"], is_of_gevent=False)
    laps = [dict(tally.lap(), what="import", shown=None)]
    laps += rows(spec["asks"], tally)
    return {"python": sys.version.split()[0], "openssl": ssl.OPENSSL_VERSION, "rows": laps}


def rows(fetches, tally):
    """Yield the rows of all fetches. Sessions are made when they are first named."""
    import requests

    sessions = {None: requests}
    for fetch in fetches:
        if fetch["drop"]:
            have_dropped(fetch["drop"])
        tally.lap()  # whatever happened since the last row is nobody's
        if fetch["session"] not in sessions:
            sessions[fetch["session"]] = requests.Session()
        session = sessions[fetch["session"]]
        proxies = {"https": fetch["via"]} if fetch["via"] else None
        response = session.get(fetch["url"], proxies=proxies, cert=fetch["cert"], timeout=30)
        if response.status_code != 200:
            raise RuntimeError("%s: status %s" % (fetch["what"], response.status_code))
        certificate = response.json()["shown"]
        yield dict(tally.lap(), what=fetch["what"], shown=certificate)


if __name__ == "__main__":
    answering.answer(run)
