"""What servers and proxies received from stock and cured sessions, side by side.

With one pair of releases of requests and urllib3. Runs inside a stack;
test_shared_context_received.py asks.

Each cell is a route, a kind of connection, a way to trust and a server. Its server and its proxy
are made for it, and are gone when it is told what they heard.
"""

# ruff: noqa: UP031, E402
import json
import shutil
import ssl
import sys
import warnings
from contextlib import ExitStack

sys.path[:0] = [sys.argv[1]]
ASKED = json.load(sys.stdin)
PATHS, CERTS, SERVERS = (ASKED["world"][name] for name in ("paths", "certs", "servers"))

import certifi

certifi.where = certifi.core.where = lambda: PATHS["file"]  # what verify=True trusts

import requests
import urllib3
import urllib3.connection

# Before the cure is imported: contexts made before and after a class is changed are not shared.
_load = ssl.SSLContext.load_verify_locations


def _counting(self, *args, **kwargs):
    LOADS[0] += 1
    return _load(self, *args, **kwargs)


ssl.SSLContext.load_verify_locations = _counting

with warnings.catch_warnings(record=True) as SAID:
    warnings.simplefilter("always")
    import shared_context
from trust_ears import Ear, replaced, server_context

try:
    import urllib3.contrib.pyopenssl as pyopenssl

    pyopenssl.extract_from_urllib3()  # old requests injected it
except ImportError:
    pyopenssl = None
warnings.simplefilter("ignore")

ROUTES = ("direct", "http proxy", "https proxy")
TRUSTS = ("bundle", "directory", "True", "False", "client certificate")
TARGETS = ("trusted", "stranger", "TLS 1.2")
OF_URLLIB3 = urllib3.connection.HTTPSConnection
POOL = urllib3.connectionpool.HTTPSConnectionPool
IS_2 = not urllib3.__version__.startswith("1.")


class OwnContext(OF_URLLIB3):
    """Makes its own context of the files that it was told."""

    def connect(self):
        own_context(self)
        return super().connect()


def own_context(connection):
    if connection.cert_reqs == "CERT_NONE":
        return
    context = ssl.create_default_context(cafile=connection.ca_certs, capath=connection.ca_cert_dir)
    if connection.cert_file:
        context.load_cert_chain(connection.cert_file, connection.key_file)
    connection.ssl_context = context


class LateLimit(OF_URLLIB3):
    """Sets what it demands as it connects."""

    def connect(self):
        if IS_2:
            self.ssl_minimum_version = ssl.TLSVersion.TLSv1_3
        else:
            self.assert_fingerprint = "00" * 20
        return super().connect()


def replacing_connect(connection):
    own_context(connection)
    return STOCK_CONNECT(connection)


STOCK_CONNECT = OF_URLLIB3.connect


def kind_of(name):
    """A kind of connection, for as long as the block runs."""
    if name in ("own context", "late limit"):
        return replaced(POOL, "ConnectionCls", OwnContext if name[0] == "o" else LateLimit)
    if name == "connect replaced":
        return replaced(OF_URLLIB3, "connect", replacing_connect)
    block = ExitStack()
    if name == "pyOpenSSL":
        pyopenssl.inject_into_urllib3()
        block.callback(pyopenssl.extract_from_urllib3)
    return block


#: The kinds, and why each of them makes its own context; None: it shares.
KINDS = {
    "urllib3's": None,
    "own context": "its class is not urllib3's",
    "late limit": "its class is not urllib3's",
    "connect replaced": "%s.connect was replaced" % OF_URLLIB3.__name__,
    "pyOpenSSL": "pyOpenSSL was injected into urllib3",
}
#: Why ways to trust do not share.
OWN_TRUST = {"directory": "it was given ca_cert_dir"}
if getattr(requests.adapters, "_preloaded_ssl_context", None):  # 2.32.2 to 2.32.4
    OWN_TRUST["True"] = "it was given ssl_context"
if urllib3.__version__ in ("1.24", "1.24.1"):  # they load the system's beside any context
    OWN_TRUST["False"] = "urllib3 asked for its load_default_certs"


def told(trust):
    """The options of a request."""
    if trust == "client certificate":
        return {"verify": PATHS["file"], "cert": CERTS["alice"]}
    ways = {"bundle": PATHS["file"], "directory": PATHS["directory"], "True": True, "False": False}
    return {"verify": ways[trust]}


def outcome(session, url, **options):
    try:
        response = session.post(url, data="the body", timeout=20, **options)
        return [response.status_code, response.text]
    except Exception as error:
        found = []
        while isinstance(error, BaseException) and len(found) < 9:
            found.append(type(error).__name__)
            inner = [getattr(error, "reason", None), *error.args]
            error = next((each for each in inner if isinstance(each, BaseException)), None)
        return found


def cell(adapter, route, kind, trust, target):
    """What came, what the server heard, what the proxy heard; without what changes each time."""
    demands = PATHS["file"] if trust == "client certificate" else None
    limits = {"maximum_version": ssl.TLSVersion.TLSv1_2} if target == "TLS 1.2" else {}
    shown = SERVERS["other"] if target == "stranger" else SERVERS["root"]
    secure = server_context(SERVERS["root"]) if route == "https proxy" else None
    with ExitStack() as closing:
        server = closing.enter_context(Ear(server_context(shown, demands, **limits)))
        proxy = closing.enter_context(Ear(secure, forges=True))
        session = closing.enter_context(requests.Session())
        session.trust_env = False
        session.headers = {"Cookie": "secret", "Authorization": "secret"}
        if adapter:
            session.mount("https://", adapter())
        if route != "direct":
            scheme = "https" if secure else "http"
            session.proxies = {"https": "%s://127.0.0.1:%d" % (scheme, proxy.port)}
        with kind_of(kind):
            came = outcome(session, "https://127.0.0.1:%d/login" % server.port, **told(trust))
    text = json.dumps([came, server.heard, proxy.heard])
    return json.loads(text.replace(":%d" % server.port, ":PORT"))


def cells():
    """Return what came of each cell: {"route / kind / trust / target": [...]}.

    The list: what came of stock, and of the cure; why the cured connection made its own context, or
    "shared"; which of these it may be.
    """
    found = {}
    asked = ASKED["cells"] or [
        (route, kind, trust, target)
        for route in ROUTES for kind in KINDS for trust in TRUSTS for target in TARGETS
    ]  # fmt: skip
    for each in asked:
        if each[1] == "pyOpenSSL" and not pyopenssl:
            continue
        stock = cell(None, *each)
        before = shared_context.stats()
        cured = cell(shared_context.SharedContextAdapter, *each)
        after = shared_context.stats()
        why = [name for name, n in after["own"].items() if n > before["own"].get(name, 0)]
        if after["shared"] > before["shared"]:
            why.append("shared")
        reasons = [KINDS[each[1]], OWN_TRUST.get(each[2])]
        found[" / ".join(each)] = [stock, cured, why, [why for why in reasons if why] or ["shared"]]
    return found


def shares():
    """Loads of 30 connections: {"route / trust": [of the cured, of stock]}."""
    found = {}
    for route in ROUTES[:2]:
        for trust in ("bundle", "True", "client certificate"):
            name = "%s / %s" % (route, trust)
            PATHS["file"] = requests.adapters.DEFAULT_CA_BUNDLE_PATH = fresh(PATHS["file"])
            found[name] = []
            for adapter in (shared_context.SharedContextAdapter, None):
                LOADS[0] = 0
                for _ in range(30):
                    came = cell(adapter, route, "urllib3's", trust, "trusted")
                    assert came[0] == [200, "THE SERVER"]
                # A server that demands certificates loads that bundle too.
                found[name].append(LOADS[0] - (30 if trust == "client certificate" else 0))
    return found


def fresh(path):
    """A copy, for which nothing was loaded yet."""
    copied = path + "-"
    shutil.copy(path, copied)
    return copied


LOADS = [0]


if __name__ == "__main__":
    print(json.dumps({
        "releases": [requests.__version__, urllib3.__version__],
        "unknown": shared_context.UNKNOWN,
        "cells": cells(),
        "shares": shares() if ASKED.get("shares") else {},
    }))  # fmt: skip
