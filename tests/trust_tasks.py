"""What connections load and share, for tests/test_shared_context_*.py: see trust_client.py."""

# ruff: noqa: UP031, I001
import copy
import inspect
import json
import os
import pickle
import shutil
import signal
import socket
import ssl
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

# requests and shared_context come from there too: something has to happen before their import.
from trust_client import (
    ASKED, PATHS, PROXIES, SAID, URLS, Listening, answer, loads, once, outcome, requests, session,
    shared_context, urllib3,
)  # fmt: skip


def at_once(n, work):
    """What work(0) ... work(n - 1) return, in n threads that start together."""
    barrier = threading.Barrier(n)

    def one(i):
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(n) as threads:
        return list(threads.map(one, range(n)))


def get(url, **options):
    """requests.get, as its status or the names of its exception's classes."""
    return outcome(requests, url, **options)[0]


def threads():
    """As many threads as asked, each with requests.get: the loads, stock and cured, in the ways to
    trust that are asked for."""
    found, ways = {}, {"True": True, "False": False, "file": PATHS["file"]}
    for kind in ASKED["kinds"]:
        (shared_context.install if kind == "cured" else shared_context.uninstall)()
        for way, verify in ways.items():
            came = at_once(ASKED["n"], lambda _, verify=verify: get(URLS["valid"], verify=verify))
            assert came == [200] * ASKED["n"], came
            found[kind + " " + way] = loads()
    return found


def hosts():
    """300 connections over ten hosts, in sessions of their own and in one session."""
    shared_context.install()
    came = at_once(30 * len(ASKED["urls"]), lambda i: get(ASKED["urls"][i % len(ASKED["urls"])]))
    with session("cured") as made:
        came += [outcome(made, url)[0] for url in ASKED["urls"]]
    return {"came": came}


def proxies():
    """30 connections through each proxy, in sessions of their own."""
    found = {}
    for name in ("http proxy", "https proxy"):
        shared_context._contexts.clear()
        for _ in range(30):
            came = once("cured", URLS["valid"], proxies={"https": PROXIES[name]})
        found[name] = {"came": came, "loads": loads()}
    return found


def dropped():
    """One session, whose idle connections are dropped (the server closes each, too)."""
    with session("cured") as made:
        came = []
        for _ in range(10):
            came.append(outcome(made, URLS["valid"])[0])
            made.adapters["https://"].close()
    return {"came": came}


def apart():
    """100 threads in one process, half of them verify, half do not; and what they leave."""
    shared_context.install()
    url = URLS["unknown issuer"]
    came = at_once(100, lambda i: get(url, verify=bool(i % 2)))
    again = get(url)
    contexts = [
        (key[0], kept.context.verify_mode) for key, kept in shared_context._contexts.items()
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


def same_client():
    """Connections with one client certificate after the other, and the first again; then its file
    is replaced."""
    alice, bob = ASKED["certs"]
    came = [shown(session("cured"), cert) for cert in (alice, bob, alice) for _ in range(5)]
    before = loads()
    shutil.copy(alice, alice + ".kept")
    shutil.copy(bob, alice + ".new")
    os.replace(alice + ".new", alice)
    after = shown(session("cured"), alice)
    os.replace(alice + ".kept", alice)
    return {"shown": came, "before": before, "alice's file replaced by bob's": after}


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
        kinds = ("stock", "cured", "cured")
        came.append([new, *(once(kind, URLS["valid"], verify=mine) for kind in kinds)])
    os.remove(mine)
    loads()
    write("file")
    with session("cured") as made:
        assert [outcome(made, URLS["valid"], verify=mine)[0] for _ in range(5)] == [200] * 5
    os.remove(mine)
    return {"came": came}


def preload():
    """Loaded before the first connection; and what cannot be loaded."""
    shared_context.install()
    shared_context.preload()
    shared_context.preload(PATHS["file"])
    before = loads()
    came = at_once(30, lambda i: get(URLS["valid"], verify=PATHS["file"] if i % 2 else True))
    refused = []
    for path in (PATHS["missing"], PATHS["corrupt"]):
        try:
            shared_context.preload(path)
        except OSError as error:
            refused.append(type(error).__name__)
    return {"came": came, "before": before, "refused": refused}


def bounded():
    """Many bundles, of which only so many are kept; the first of them is used again and again."""
    paths = ["%s-%d" % (PATHS["missing"], number) for number in range(shared_context.KEPT + 8)]
    with session("cured") as made:
        for path in paths:
            shutil.copy(PATHS["file"], path)
            for each in (paths[0], path):
                assert outcome(made, URLS["valid"], verify=each) == [200, []]
    kept = [key[1] for key in shared_context._contexts]
    for path in paths:
        os.remove(path)
    return {"kept": [paths.index(path) for path in kept], "at most": shared_context.KEPT}


def copies():
    """Sessions that were pickled and copied still share, and still verify."""
    with session("cured") as made:
        made.headers["X-Kept"] = "yes"
        first = outcome(made, URLS["valid"])
        loads()
        more = [pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)]
        came = [[outcome(s, URLS["valid"]), outcome(s, URLS["expired"])[0]] for s in more]
        kept = [[s.headers["X-Kept"], type(s.adapters["https://"]).__name__] for s in more]
    return {"first": first, "came": came, "kept": kept}


def fork():
    """A child of a process with one thread; and one while another thread held the lock at the
    moment of the fork. With what each loads, without a client certificate and with it."""
    shared_context.install()
    assert get(URLS["valid"]) == get(ASKED["url"], cert=ASKED["cert"]) == 200
    loads()
    found = {"alone": in_child()}
    held, release = threading.Event(), threading.Event()

    def hold():
        with shared_context._lock:
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    found["beside a thread"] = in_child()
    release.set()
    holder.join()
    found["parent"] = [get(URLS["valid"]), get(ASKED["url"], cert=ASKED["cert"])]
    return found


def in_child():
    """[what a forked child gets, its loads, those with a client certificate, shared connections];
    or the signal that ended it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a lock that nobody releases would be waited for for ever
        loads()
        came = [get(URLS[name]) for name in ("valid", "valid", "expired")]
        without = loads()["bundles"]
        came += [get(ASKED["url"], cert=ASKED["cert"]) for _ in range(2)]
        said = [came, without, loads()["bundles"], shared_context.stats()["shared"]]
        os.write(writer, json.dumps(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(said) if status == 0 else status


def greenlets():
    """30 requests of grequests, after its patches."""
    import grequests

    shared_context.install()
    came = grequests.map([grequests.get(URLS["valid"]) for _ in range(30)])
    bad = grequests.map([grequests.get(URLS["expired"])])
    statuses, kind = [each.status_code for each in came], urllib3.util.ssl_.SSLContext.__module__
    return {"came": statuses, "bad": bad, "class": kind}


def zipped():
    """The bundle that verify=True trusts, when certifi is in a zip archive."""
    import certifi

    shared_context.install()
    came = at_once(10, lambda _: get(URLS["valid"]))
    came.append(get(URLS["expired"]))
    return {"from": certifi.__file__, "came": came}


# What someone does with the context of a response's socket


def changes(context, sock):
    """Ways to change what connections trust or offer, as {words: call}."""
    found = {
        "load_verify_locations": lambda: context.load_verify_locations(PATHS["other"]),
        "load_cert_chain": lambda: context.load_cert_chain(ASKED["cert"]),
        "load_default_certs": lambda: context.load_default_certs(),
        "set_default_verify_paths": lambda: context.set_default_verify_paths(),
        "set_ciphers": lambda: context.set_ciphers("ALL"),
        "set_alpn_protocols": lambda: context.set_alpn_protocols(["h2"]),
        "set_ecdh_curve": lambda: context.set_ecdh_curve("prime256v1"),
        "set_servername_callback": lambda: context.set_servername_callback(print),
        "del": lambda: context.__delattr__("verify_mode"),
    }
    if ASKED.get("inject"):
        inner = sock.connection.get_context()
        found["set_verify"] = lambda: inner.set_verify(0, lambda *_: True)
        found["get_cert_store"] = lambda: inner.get_cert_store()
        found["pyOpenSSL's load_verify_locations"] = (
            lambda: inner.load_verify_locations(PATHS["other"])
        )  # fmt: skip
        found["pyOpenSSL's use_certificate_file"] = (
            lambda: inner.use_certificate_file(ASKED["cert"])
        )  # fmt: skip
    values = {
        "verify_mode": ssl.CERT_NONE, "check_hostname": not context.check_hostname, "options": 0,
        "verify_flags": 0, "minimum_version": ssl.TLSVersion.TLSv1_1, "sslsocket_class": object,
        "maximum_version": ssl.TLSVersion.TLSv1_2, "keylog_filename": PATHS["missing"] + "-keys",
        "sni_callback": print, "hostname_checks_common_name": not getattr(
            context, "hostname_checks_common_name", None),
        "post_handshake_auth": not getattr(context, "post_handshake_auth", None),
        "_msg_callback": print, "__class__": ssl.SSLContext,
    }  # fmt: skip
    for name, value in values.items():
        if hasattr(context, name):  # not in each Python
            found["%s =" % name] = partial(setattr, context, name, value)
    return found


def of_connections():
    """The context of connections that trust the root."""
    return shared_context._context(ssl.CERT_REQUIRED, PATHS["file"])


def sealed():
    """What happens to each of these changes, and what others come to afterwards."""
    shared_context.install()
    made = requests.Session()
    response = made.get(URLS["valid"] + "/?keep", verify=PATHS["file"], stream=True)
    sock = response.raw._connection.sock
    context = of_connections() if ASKED.get("inject") else sock.context
    came = {}
    for words, change in changes(context, sock).items():
        try:
            change()
            came[words] = ["changed"]
        except Exception as error:
            came[words] = [type(error).__name__, isinstance(error, AttributeError), str(error)]
    context.verify_mode = ssl.CERT_REQUIRED  # as urllib3 sets it each time
    context.set_alpn_protocols(list(urllib3.util.ssl_.ALPN_PROTOCOLS)
                               if hasattr(urllib3.util.ssl_, "ALPN_PROTOCOLS") else [])  # fmt: skip
    return {"came": came, "after": others(), "loads": shared_context.stats()["loads"],
            "is an SSLContext": isinstance(context, ssl.SSLContext),
            "still shared": of_connections() is context}  # fmt: skip


def others():
    """What sessions that trust the root get from those of the root and of another issuer."""
    return [get(URLS[name], verify=PATHS["file"]) for name in ("valid", "unknown issuer")]


def round_the_seal():
    """Somebody calls ssl.SSLContext's own setters on a shared context."""
    shared_context.install()
    context, log = of_connections(), Listening()
    if context.check_hostname:
        ssl.SSLContext.check_hostname.__set__(context, False)
    ssl.SSLContext.verify_mode.__set__(context, ssl.CERT_NONE)
    after = others()
    return {"after": after, "mode": int(context.verify_mode), "loads": loads(),
            "again": of_connections() is context, "log": log.said}  # fmt: skip


# What others have exchanged


def proxy_asserting():
    """An https proxy with a certificate for another name, and a manager that allows that."""

    def allow(adapter, proxy, **kwargs):
        return stock(adapter, proxy, proxy_assert_hostname=ASKED["asserted"], **kwargs)

    found = {}
    for kind in ("stock", "cured"):
        with session(kind) as made:
            adapter = made.adapters["https://"]
            stock = type(adapter).proxy_manager_for
            adapter.proxy_manager_for = partial(allow, adapter)
            made.proxies = {"https": ASKED["proxy"]}
            found[kind] = outcome(made, URLS["valid"])
    return found


def replaced_functions():
    """Functions of urllib3 that a program replaces by its own: how often each is called, and what
    comes of three connections."""
    found = {}
    for name in ("create_urllib3_context", "ssl_wrap_socket"):
        for module in (urllib3.connection, urllib3.util.ssl_):
            stock, calls = getattr(module, name), []

            def replacing(*args, stock=stock, calls=calls, **kwargs):
                calls.append(1)
                return stock(*args, **kwargs)

            for kind in ("stock", "cured"):
                del calls[:]
                setattr(module, name, replacing)
                try:
                    valid = partial(once, kind, URLS["valid"], verify=PATHS["file"])
                    came = [valid()[0] for _ in range(3)]
                finally:
                    setattr(module, name, stock)
                found.setdefault(module.__name__ + "." + name, []).append([came, len(calls)])
    return {"called": found, "own": shared_context.stats()["own"]}


def key_log():
    """Connections before, while and after SSLKEYLOGFILE is set: the keys that are written."""
    found, path = {}, PATHS["missing"] + "-key-log"
    for kind in ("stock", "cured"):
        lines = []
        for wanted in (None, path, None):
            os.environ.pop("SSLKEYLOGFILE", None)
            if wanted:
                os.environ["SSLKEYLOGFILE"] = wanted
            assert once(kind, URLS["valid"]) == [200, []]
            if os.path.exists(path):
                with open(path) as file:
                    lines.append(sum(not line.startswith("#") for line in file))
            else:
                lines.append(0)
        os.remove(path)
        found[kind] = lines
    return found


def ciphers():
    """urllib3 before version 2 takes its ciphers from a variable, which programs change."""
    found = []
    for ciphers in ("ECDHE+AESGCM", "ECDHE+CHACHA20"):
        urllib3.util.ssl_.DEFAULT_CIPHERS = ciphers + ":!aNULL"
        for kind in ("stock", "cured"):
            with session(kind) as made:
                url = ASKED["url"] + "/?keep"
                response = made.get(url, cert=ASKED["cert"], stream=True)
                found.append(response.raw._connection.sock.cipher()[0])
    return {"found": found}


def changing():
    """Connections of a class of the program's own, put into urllib3's pools after `install`, which
    changes its context: then each needs its own."""
    shared_context.install()
    pools, log = urllib3.connectionpool.HTTPSConnectionPool, Listening()
    stock, connected = pools.ConnectionCls, []

    class Changing(stock):
        def connect(self):
            connected.append(type(self).__name__)
            if self.ssl_context is not None:
                self.ssl_context.set_ciphers("DEFAULT")
            return super().connect()

    first = get(URLS["valid"])
    pools.ConnectionCls = Changing
    came = [get(URLS["valid"]) for _ in range(3)]
    pools.ConnectionCls = stock
    last = get(URLS["valid"])
    return {"came": [first, came, last], "connected": connected, "stats": shared_context.stats(),
            "warned": [words for level, words in log.said if level == "WARNING"]}  # fmt: skip


def late():
    """The version of TLS where a class of the program's own sets a limit as it connects."""
    pools, found = urllib3.connectionpool.HTTPSConnectionPool, {}

    class Late(pools.ConnectionCls):
        def connect(self):
            self.ssl_maximum_version = ssl.TLSVersion.TLSv1_2
            return super().connect()

    pools.ConnectionCls = Late
    for kind in ("stock", "cured"):
        found[kind] = []
        for _ in range(2):
            with session(kind) as made:
                response = made.get(URLS["valid"] + "/?keep", verify=PATHS["file"], stream=True)
                found[kind].append(response.raw._connection.sock.version())
    return dict(found, own=shared_context.stats()["own"])


def names():
    """What a context for others does with a server's name, without urllib3; and its own kind."""
    shared_context.install()
    try:
        context = shared_context.context(PATHS["file"])
    except RuntimeError as error:
        return {"refused": str(error)}
    found = {"came": [get(URLS["valid"], verify=PATHS["file"])]}
    for name in ("valid", "wrong host"):
        host, port = URLS[name].split("/")[2].split(":")
        try:
            with socket.create_connection((host, int(port))) as plain:
                context.wrap_socket(plain, server_hostname=host).close()
            found[name] = "accepted"
        except ssl.CertificateError:
            found[name] = "refused"
    return dict(found, loads=shared_context.stats()["loads"])


# install(), stats() and what is not known here


class Mounted(requests.adapters.HTTPAdapter):
    """As requests' documentation has it: it makes its pools itself, and asks nobody."""

    def init_poolmanager(self, connections, maxsize, block=False, **_):
        self.poolmanager = urllib3.PoolManager(num_pools=connections, maxsize=maxsize, block=block)


def mounted():
    """The loads of two connections for each of these adapters, before `install`, after, and
    after `uninstall`."""
    kinds = {
        "requests.get": None,
        "max_retries": lambda: requests.adapters.HTTPAdapter(max_retries=3),
        "a class of one's own": Mounted,
        "pickled": lambda: pickle.loads(pickle.dumps(requests.adapters.HTTPAdapter())),
    }
    found = {}
    signature = str(inspect.signature(requests.adapters.HTTPAdapter))
    for when, change in (("before", None), ("installed", shared_context.install),
                         ("again", shared_context.install),
                         ("after", shared_context.uninstall)):  # fmt: skip
        if change:
            change()
        shared_context._contexts.clear()
        for name, adapter in kinds.items():
            came = []
            for _ in range(2):
                made = requests.Session()
                if adapter:
                    made.mount("https://", adapter())
                came.append(outcome(made, URLS["valid"], verify=PATHS["file"])[0])
            assert came == [200, 200], (when, name, came)
            found["%s, %s" % (when, name)] = loads()["bundles"]
        assert str(inspect.signature(requests.adapters.HTTPAdapter)) == signature
    return found


def counted():
    """stats() and the log after one connection of each kind."""
    shared_context.install()
    log = Listening()
    for verify in (True, True, PATHS["file"], False, PATHS["directory"], PATHS["corrupt"]):
        get(URLS["valid"], verify=verify)
    with session("cured") as made:
        made.adapters["https://"].poolmanager.connection_pool_kw["assert_hostname"] = "127.0.0.1"
        outcome(made, URLS["valid"])
    with session("cured") as made:
        manager = made.adapters["https://"].poolmanager
        manager.connection_pool_kw["ssl_context"] = ssl.create_default_context()
        outcome(made, URLS["valid"], verify=PATHS["file"])
    return {"stats": shared_context.stats(), "log": log.said}


def unexpected():
    """A connection for which no context can be looked up, since urllib3 has something odd."""
    shared_context.install()
    log = Listening()
    urllib3.util.ssl_.DEFAULT_CIPHERS = ["a list"]
    came = [get(URLS["valid"]), get(URLS["expired"])]
    return {"came": came, "stats": shared_context.stats(), "log": log.said}


def guarded():
    """Connections where a name is gone that the cure needs: see `remove` in trust_client.py."""
    shared_context.install()
    came = [get(URLS["valid"]), get(URLS["valid"]), get(URLS["expired"])]
    came += once("cured", URLS["valid"])[:1]
    try:
        shared_context.context()
        refused = None
    except RuntimeError as error:
        refused = str(error)
    said = [[each.category.__name__, str(each.message)] for each in SAID]
    return {"came": came, "stats": shared_context.stats(), "said": said, "refused": refused,
            "contexts": len(shared_context._contexts)}  # fmt: skip


def unknown_context():
    """Connections with a kind of context that is not known to be safe to share: truststore's."""
    shared_context.install()
    os.environ["SSL_CERT_FILE"] = PATHS["file"]
    came = [get(URLS["valid"], verify=PATHS["file"]) for _ in range(3)]
    came.append(get(URLS["unknown issuer"], verify=PATHS["file"]))
    kind = urllib3.util.ssl_.SSLContext
    return {"came": came, "kind": kind.__module__.partition(".")[0],
            "stats": shared_context.stats()}  # fmt: skip


def for_others():
    """One context for httpx and for urllib3 used directly."""
    import httpx

    def ask(client, name):
        try:
            return client.get(URLS[name]).status_code
        except httpx.ConnectError:
            return "refused"

    found = {}
    for name in ("valid", "unknown issuer"):
        found["httpx, " + name] = []
        for protocols in ((), ("http/1.1", "h2")):
            context = shared_context.context(PATHS["file"], alpn=protocols)
            with httpx.Client(verify=context, http2=bool(protocols)) as client:
                found["httpx, " + name].append(ask(client, name))
    with urllib3.PoolManager(ssl_context=shared_context.context(PATHS["file"])) as pool:
        found["urllib3, valid"] = pool.request("GET", URLS["valid"]).status
        try:
            pool.request("GET", URLS["unknown issuer"], retries=False)
        except urllib3.exceptions.SSLError:
            found["urllib3, unknown issuer"] = "refused"
    return found


if __name__ == "__main__":
    answer(dict(vars(sys.modules["__main__"])))
