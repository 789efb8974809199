"""What the client scripts beside this file share.

They run inside a stack's environment (Python 3.7 to today) for tests/cure/test_shared_context_*.py,
and assert there what they claim.

In, as one JSON object: {"task": the name of a function of the script, "world": what
tests/cure/trust_world.py says of its servers, and what is read from ASKED below}. The folder of
shared_context.py is the first argument. Out: what the function returns, as JSON.
"""

# ruff: noqa: UP031, E402 - the order of what happens here is what it is about
import json
import sys
import threading
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

sys.path.insert(0, sys.argv[1])
ASKED = json.load(sys.stdin)
WORLD = ASKED["world"]
PATHS, URLS, PROXIES, CERTS = (WORLD[name] for name in ("paths", "urls", "proxies", "certs"))

if ASKED.get("zip"):
    sys.path.insert(0, ASKED["zip"])

import certifi

if not ASKED.get("zip"):
    # What verify=True trusts, set before requests imports it.
    certifi.where = certifi.core.where = lambda: PATHS["certifi"]

if ASKED.get("gevent"):
    import gevent.monkey

    if ASKED["gevent"] == "everything":
        gevent.monkey.patch_all()
    import grequests  # noqa: F401 - it patches, so it comes before ssl and requests

import ssl

NOTHING = {"bundles": 0, "defaults": 0, "client certificates": 0}
LOADS = dict(NOTHING)


def counting(method, what):
    def counted(self, *args, **kwargs):
        LOADS[what] += 1
        return method(self, *args, **kwargs)

    return counted


def loads():
    """What was loaded since this was last asked."""
    seen = dict(LOADS)
    LOADS.update(NOTHING)
    return seen


for _name, _what in (("load_verify_locations", "bundles"), ("load_default_certs", "defaults"),
                     ("load_cert_chain", "client certificates")):  # fmt: skip
    setattr(ssl.SSLContext, _name, counting(getattr(ssl.SSLContext, _name), _what))

import requests
import urllib3

if ASKED.get("release"):  # as if a later urllib3 were here
    urllib3.__version__ = ASKED["release"]

with warnings.catch_warnings(record=True) as SAID:
    warnings.simplefilter("always")
    import shared_context

if ASKED.get("inject"):
    import urllib3.contrib.pyopenssl

    urllib3.contrib.pyopenssl.inject_into_urllib3()

if ASKED.get("beside"):
    sys.path.append(ASKED["beside"])

loads()  # requests 2.32.0 to 2.32.4 load when they are imported


def session(kind):
    made = requests.Session()
    if kind == "cured":
        made.mount("https://", shared_context.SharedContextAdapter())
    return made


def names(error):
    """The classes of an exception and of those inside it, and OpenSSL's verdict."""
    found = []
    while isinstance(error, BaseException) and len(found) < 12:
        found.append(type(error).__module__ + "." + type(error).__name__)
        if getattr(error, "verify_code", None) is not None:
            found.append("verify code %s" % error.verify_code)
        inner = [getattr(error, "reason", None), *error.args]
        error = next((each for each in inner if isinstance(each, BaseException)), None)
    return found


def outcome(made, url, **options):
    """Return what a GET came to, and the warnings.

    It is a status, how it went there and which client certificate the server saw, or an exception.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            response = made.get(url, timeout=30, **options)
            came = [response.status_code, [each.status_code for each in response.history]]
            if options.get("cert"):
                came.append(response.json()["shown"])
        except Exception as error:
            came = names(error)
    said = sorted({each.category.__name__ for each in caught if "urllib3" in str(each.category)})
    return came + said


def once(kind, url, **options):
    """As `outcome`, of a session of its own, which is stock or cured."""
    with session(kind) as made:
        return outcome(made, url, **options)


def get(url, **options):
    """requests.get, as its status or the name of its exception's class."""
    return outcome(requests, url, **options)[0]


@contextmanager
def socket_of(kind, url, **options):
    """The socket of a connection that stays open for as long as the block runs."""
    with session(kind) as made:
        response = made.get(url + "/?keep", stream=True, **options)
        yield response.raw._connection.sock


def at_once(n, work):
    """What work(0) ... work(n - 1) return, in n threads that start together."""
    barrier = threading.Barrier(n)

    def one(i):
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(n) as threads:
        return list(threads.map(one, range(n)))


def answer(tasks):
    """Do what was asked, and say what it returns.

    Where an assertion fails, the variables of its function are told too.
    """
    try:
        print(json.dumps(tasks[ASKED["task"]]()))
    except AssertionError as error:
        trace = error.__traceback__.tb_next
        said = traceback.TracebackException(type(error), error, trace, capture_locals=True)
        sys.exit("".join(said.format()))
