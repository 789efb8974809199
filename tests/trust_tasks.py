"""What connections load and share, for tests/test_shared_context_*.py: see trust_client.py."""

# ruff: noqa: UP031, I001
import copy
import os
import pickle
import shutil
import sys
import threading
from functools import partial

# requests and shared_context come from there too: something has to happen before their import.
from trust_client import (
    ASKED, LOADS, PATHS, PROXIES, URLS, answer, outcome, requests, session, shared_context,
)  # fmt: skip


def at_once(n, work):
    """What work(0) ... work(n - 1) return, in n threads that start together."""
    came, barrier = [None] * n, threading.Barrier(n)

    def one(i):
        barrier.wait()
        came[i] = work(i)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return came


def get(url, **options):
    """requests.get, as its status or the names of its exception's classes."""
    return outcome(requests, url, **options)[0]


def loads_since(before):
    return {what: LOADS[what] - before[what] for what in LOADS}


def threads():
    """30 threads (or as asked), each with requests.get: the loads, stock and cured."""
    found = {}
    for kind in ("stock", "cured"):
        (shared_context.install if kind == "cured" else shared_context.uninstall)()
        for way, verify in (("True", True), ("False", False), ("file", PATHS["file"])):
            before = dict(LOADS)
            came = at_once(ASKED["n"], lambda _, verify=verify: get(URLS["valid"], verify=verify))
            assert came == [200] * ASKED["n"], came
            found[kind + " " + way] = loads_since(before)
    return found


def hosts():
    """300 connections over ten hosts, in sessions of their own and in one session."""
    before, n = dict(LOADS), 30 * len(ASKED["urls"])
    shared_context.install()
    came = at_once(n, lambda i: get(ASKED["urls"][i % len(ASKED["urls"])]))
    with session("cured") as made:
        came += [outcome(made, url)[0] for url in ASKED["urls"]]
    return {"came": came, "loads": loads_since(before)}


def proxies():
    """30 connections through each proxy, in sessions of their own."""
    found = {}
    for name in ("http proxy", "https proxy"):
        shared_context._contexts.clear()
        before = dict(LOADS)
        for _ in range(30):
            with session("cured") as made:
                made.proxies = {"https": PROXIES[name]}
                came = outcome(made, URLS["valid"])
        found[name] = {"came": came, "loads": loads_since(before)}
    return found


def dropped():
    """One session, whose idle connections are dropped (the server closes each, too)."""
    before = dict(LOADS)
    with session("cured") as made:
        came = []
        for _ in range(10):
            came.append(outcome(made, URLS["valid"])[0])
            made.adapters["https://"].close()
    return {"came": came, "loads": loads_since(before)}


def apart():
    """100 threads in one process, half of them verify, half do not; and what they leave."""
    shared_context.install()
    url = URLS["unknown issuer"]
    came = at_once(100, lambda i: get(url, verify=bool(i % 2)))
    again = get(url)
    contexts = [
        (key[2], sealed.verify_mode) for key, (_, sealed) in shared_context._contexts.items()
    ]
    return {"verified": came[1::2], "unverified": came[::2], "again": again,
            "contexts": sorted([int(wanted), int(has)] for wanted, has in contexts)}  # fmt: skip


def in_one_session():
    """verify=False, then True, to the same host in the same session, which keeps connections."""
    found = {}
    for kind in ("stock", "cured"):
        with session(kind) as made:
            url = URLS["unknown issuer"] + "/?keep"
            found[kind] = [outcome(made, url, verify=verify) for verify in (False, True, False)]
    return found


def client_certificates():
    """Two sessions with two client certificates, 50 threads each, and then one with none.

    Stock requests comes last, one after another: 2.32.2 and 2.32.4 load certificates into a context
    that other threads are connecting with, and with threads that has ended in a double free.
    """
    found = {}
    for kind in ("cured", "stock"):
        asks = [partial(shown, session(kind), cert) for cert in ASKED["certs"]]
        if kind == "cured":
            came = at_once(100, lambda i, asks=asks: asks[i % 2]())
        else:
            came = [asks[i % 2]() for i in range(4)]
        found[kind] = [sorted(set(map(str, half))) for half in (came[::2], came[1::2])]
        found[kind + " without"] = shown(session(kind), None)
    return found


def shown(made, cert):
    """The name that the server read in the client's certificate; None if it got none."""
    try:
        return made.get(ASKED["url"], cert=cert, timeout=30).json()["shown"]
    except requests.exceptions.RequestException:
        return None


def replaced():
    """A bundle that changes on disk: after each change, what a new connection comes to."""
    mine, came = PATHS["missing"] + "-yet", []

    def rename(new):
        shutil.copy(PATHS[new], mine + ".new")
        os.replace(mine + ".new", mine)

    def write(new):
        shutil.copyfile(PATHS[new], mine)

    def remove(_):
        os.remove(mine)

    steps = [(rename, "file"), (rename, "other"), (write, "file"), (write, "corrupt"),
             (rename, "file"), (remove, ""), (write, "file")]  # fmt: skip
    for change, new in steps:
        change(new)
        outcomes = []
        for kind in ("stock", "cured", "cured"):
            with session(kind) as made:
                outcomes.append(outcome(made, URLS["valid"], verify=mine))
        came.append([new, *outcomes])
    os.remove(mine)
    before = dict(LOADS)
    write("file")
    with session("cured") as made:
        assert [outcome(made, URLS["valid"], verify=mine)[0] for _ in range(5)] == [200] * 5
    os.remove(mine)
    return {"came": came, "loads": loads_since(before)}


def preload():
    """Loaded before the first connection; and what cannot be loaded."""
    shared_context.install()
    shared_context.preload()
    shared_context.preload(PATHS["file"])
    before = dict(LOADS)
    came = at_once(30, lambda i: get(URLS["valid"], verify=PATHS["file"] if i % 2 else True))
    refused = []
    for path in (PATHS["missing"], PATHS["corrupt"]):
        try:
            shared_context.preload(path)
        except OSError as error:
            refused.append(type(error).__name__)
    return {"came": came, "before": before, "refused": refused, "loads": loads_since(before)}


def bounded():
    """Many bundles, of which only so many are kept."""
    for number in range(shared_context.KEPT + 8):
        path = shutil.copy(PATHS["file"], "%s-%d" % (PATHS["missing"], number))
        with session("cured") as made:
            assert outcome(made, URLS["valid"], verify=path) == [200, []]
        os.remove(path)
    return {"kept": len(shared_context._contexts), "at most": shared_context.KEPT}


def copies():
    """Sessions that were pickled and copied still share, and still verify."""
    with session("cured") as made:
        made.headers["X-Kept"] = "yes"
        first = outcome(made, URLS["valid"])
        before = dict(LOADS)
        more = [pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)]
        came = [[outcome(s, URLS["valid"]), outcome(s, URLS["expired"])[0]] for s in more]
        kept = [[s.headers["X-Kept"], type(s.adapters["https://"]).__name__] for s in more]
    return {"first": first, "came": came, "kept": kept, "loads": loads_since(before)}


def fork():
    """A child asks while, in the parent, another thread held the lock at the moment of the fork."""
    shared_context.install()
    assert get(URLS["valid"]) == 200
    held, release = threading.Event(), threading.Event()

    def hold():
        with shared_context._lock:
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        before = dict(LOADS)
        came = [get(URLS["valid"]), get(URLS["valid"]), get(URLS["expired"])]
        os.write(writer, repr([came, loads_since(before)["bundles"]]).encode())
        os._exit(0)
    release.set()
    holder.join()
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    return {"child": said, "status": status, "parent": get(URLS["valid"]), "loads": LOADS}


def greenlets():
    """30 requests of grequests, after its patches."""
    import grequests

    shared_context.install()
    before = dict(LOADS)
    came = grequests.map([grequests.get(URLS["valid"]) for _ in range(30)])
    bad = grequests.map([grequests.get(URLS["expired"])])
    statuses, kind = [each.status_code for each in came], shared_context.ssl_.SSLContext.__module__
    return {"came": statuses, "bad": bad, "loads": loads_since(before), "class": kind}


def zipped():
    """The bundle that verify=True trusts, when certifi is in a zip archive."""
    import certifi

    shared_context.install()
    before = dict(LOADS)
    came = at_once(10, lambda _: get(URLS["valid"]))
    came.append(get(URLS["expired"]))
    return {"from": certifi.__file__, "came": came, "loads": loads_since(before)}


if __name__ == "__main__":
    answer(dict(vars(sys.modules["__main__"])))
