"""Ask hosts one thing after another, and count at each: one JSON object in, one out.

In: {"steps": the stack's, "bundle": what verify=True trusts, "asks": [{"what", "url", "session":
a name or null (requests.get), "via": a proxy's URL or null, "cert": a path or null, "drop": the
URL of a reception at which to have the idle connections closed before, or null}, ...]}.

Out: {"python", "openssl", "failure": null or a text, "rows": [{"what", "connections",
"contexts", "loads", "cpu_s", "wall_s", "shown"}, ...]}: a row for the import, then one for each
ask. The connections are those over TLS that were begun.
"""

import json
import resource
import ssl
import sys
import traceback
from http.client import HTTPConnection
from urllib.parse import urlsplit

import counting
import fetch
import steps


class Tally(object):
    """What the process did and used between one look and the next."""

    def __init__(self, counters):
        self.counters = counters
        counters["connections"] = 0
        wrap = ssl.SSLContext.wrap_socket

        def wrapped(*args, **kwargs):
            counters["connections"] += 1
            return wrap(*args, **kwargs)

        ssl.SSLContext.wrap_socket = wrapped
        self.seen = self.now()

    def now(self):
        counted = self.counters
        loads = counted["load_verify_locations"] + counted["default_loads"]
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = used.ru_utime + used.ru_stime
        return counted["connections"], counted["contexts"], loads, cpu_s, counting.clock()

    def row(self, what, shown=None):
        before, self.seen = self.seen, self.now()
        spent = [round(after - b, 6) for after, b in zip(self.seen, before)]
        row = dict(zip(("connections", "contexts", "loads", "cpu_s", "wall_s"), spent))
        return dict(row, what=what, shown=shown)

    def skip(self):
        """Whatever happened since the last row is nobody's."""
        self.seen = self.now()


def have_dropped(reception):
    """Have the hosts close their idle connections; they have when this returns."""
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


def main():
    spec = json.load(sys.stdin)
    answer = {"python": sys.version.split()[0], "openssl": ssl.OPENSSL_VERSION}
    answer.update(failure=None, rows=[])
    try:
        fetch.trust_bundle(spec["bundle"])
        tally = Tally(counting.install_early())
        new_session = None
        for name in steps.for_client(spec["steps"], "requests"):
            new_session = steps.take(name) or new_session
        answer["rows"].append(tally.row("import"))
        answer["rows"] += rows(spec["asks"], tally, new_session)
    except Exception:
        answer["failure"] = traceback.format_exc().strip().splitlines()[-1]
    json.dump(answer, sys.stdout)


def rows(asks, tally, new_session):
    """The rows of all asks. Sessions are made when they are first named."""
    import requests

    sessions = {}
    for ask in asks:
        if ask["drop"]:
            have_dropped(ask["drop"])
        tally.skip()
        session = requests
        if ask["session"] is not None:
            if ask["session"] not in sessions:
                sessions[ask["session"]] = (new_session or requests.Session)()
            session = sessions[ask["session"]]
        proxies = {"https": ask["via"]} if ask["via"] else None
        response = session.get(ask["url"], proxies=proxies, cert=ask["cert"], timeout=30)
        if response.status_code != 200:
            raise RuntimeError("%s: status %s" % (ask["what"], response.status_code))
        yield tally.row(ask["what"], response.json()["shown"])


if __name__ == "__main__":
    main()
