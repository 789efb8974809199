"""What the cure loads, keeps apart, refuses and says: tests that run inside a stack.

They use trust_client.py. In which, says tests/cure/test_shared_context_inside.py.
"""

# ruff: noqa: UP031, I001
import copy
import inspect
import json
import os
import pickle
import shutil
import signal
import ssl
import sys
import threading
import unittest
from functools import partial
from operator import methodcaller
from unittest import mock

# requests and shared_context come from there too: something has to happen before their import.
from trust_client import (
    ASKED, CERTS, NOTHING, PATHS, PROXIES, SAID, URLS, WORLD, answer, at_once, get, names,
    loads, once, outcome, requests, session, shared_context, socket_of, urllib3,
)  # fmt: skip

RELEASE = tuple(int(part) for part in requests.__version__.split(".")[:2])
SSL_ERROR = "requests.exceptions.SSLError"
#: The urllib3 of 2019 loads the system's certificates into any context for verify=False. That is
#: no step that the cure knows, so these connections make their own.
UNVERIFIED_SHARE = urllib3.__version__ not in ("1.24", "1.24.1")
FINE = [200, []]
DEMANDING = WORLD["demanding"]["demanding"]
#: Loads of one bundle.
ONE = dict(NOTHING, bundles=1)


def alike(work):
    """What work("stock") and work("cured") both come to."""
    stock, cured = work("stock"), work("cured")
    assert stock == cured
    return cured


def raised_by(work):
    """The exception that some work ends with, or None."""
    try:
        work()
    except Exception as error:
        return error


def logged(level):
    """What the cure logs in a block: its `records`, and their words in `output`."""
    return unittest.TestCase().assertLogs(shared_context.logger, level)


# What is loaded


def test_a_hundred_threads_race_for_the_first_request_and_one_loads():
    shared_context.install()
    file = PATHS["file"]
    assert in_threads(True) == in_threads(file) == ONE
    assert in_threads(False) == (NOTHING if UNVERIFIED_SHARE else dict(NOTHING, defaults=100))
    # The control: what stock requests of this version does.
    shared_context.uninstall()
    assert in_threads(True)["bundles"] == in_threads(file)["bundles"] == 100
    # Each of these versions' urllib3 loads what nobody will look at.
    assert in_threads(False)["defaults"] == 100


def in_threads(verify):
    """A hundred threads at once, each with requests.get: what they load."""
    assert at_once(100, lambda _: get(URLS["valid"], verify=verify)) == [200] * 100
    return loads()


def test_ten_hosts_share():
    """In 300 sessions of their own, and in one session."""
    shared_context.install()
    hosts = WORLD["hosts"]
    came = at_once(300, lambda i: get(hosts[i % 10]))
    with session("cured") as made:
        came += [outcome(made, url)[0] for url in hosts]
    assert came == [200] * 310
    assert loads() == ONE


def test_proxies_share():
    by_adapter = through("http proxy", "cured")
    shared_context.install()
    assert by_adapter == through("http proxy", "stock") == (FINE, ONE)
    if RELEASE < (2, 25):
        return  # urllib3 before 1.26 cannot speak TLS with a proxy
    # The connection to the proxy itself is stock: 30 loads, and one for the servers behind it.
    assert through("https proxy", "cured") == (FINE, dict(NOTHING, bundles=31))


def through(proxy, kind):
    """What the last of 30 sessions gets through a proxy, and what all of them load."""
    shared_context._slots.clear()
    for _ in range(30):
        came = once(kind, URLS["valid"], proxies={"https": PROXIES[proxy]})
    return came, loads()


def test_a_changed_bundle_is_picked_up():
    mine = PATHS["missing"] + "-yet"

    def rename(new):
        shutil.copy(PATHS[new], mine + ".new")
        os.replace(mine + ".new", mine)

    def write(new):
        shutil.copyfile(PATHS[new], mine)

    def remove(_):
        os.remove(mine)

    for change, new, good in (
        (rename, "file", True), (rename, "other", False), (write, "file", True),
        (write, "corrupt", False), (rename, "file", True), (remove, "", False),
        (write, "file", True),
    ):  # fmt: skip
        change(new)
        stock = once("stock", URLS["valid"], verify=mine)
        assert (stock == FINE) == good
        assert once("cured", URLS["valid"], verify=mine) == stock
        shared_context._slots.clear()
        loads()
        with session("cured") as made:
            assert [outcome(made, URLS["valid"], verify=mine) for _ in range(3)] == [stock] * 3
        assert loads() == ONE or not good
    os.remove(mine)


def test_a_bundle_can_be_loaded_beforehand():
    shared_context.install()
    shared_context.preload()
    shared_context.preload(PATHS["file"])
    assert loads() == dict(NOTHING, bundles=2)
    came = at_once(30, lambda i: get(URLS["valid"], verify=PATHS["file"] if i % 2 else True))
    assert came == [200] * 30
    assert loads() == NOTHING
    for path, kind in ((PATHS["missing"], FileNotFoundError), (PATHS["corrupt"], ssl.SSLError)):
        assert type(raised_by(partial(shared_context.preload, path))) is kind
    assert loads() == ONE  # the corrupt one


def test_only_so_many_contexts_are_kept_and_the_least_recently_used_goes_first():
    most = shared_context.KEPT
    paths = ["%s-%d" % (PATHS["missing"], number) for number in range(most + 8)]
    with session("cured") as made:
        for path in paths:
            shutil.copy(PATHS["file"], path)
            for each in (paths[0], path):  # the first is used again and again
                assert outcome(made, URLS["valid"], verify=each) == FINE
    kept = [paths.index(way.bundle) for way in shared_context._slots]
    for path in paths:
        os.remove(path)
    assert sorted(kept) == [0, *range(9, most + 8)]
    assert loads()["bundles"] == most + 8


def test_greenlets_share():
    import grequests

    shared_context.install()
    came = grequests.map([grequests.get(URLS["valid"]) for _ in range(30)])
    assert [each.status_code for each in came] == [200] * 30
    assert grequests.map([grequests.get(URLS["expired"])]) == [None]
    assert loads() == ONE
    assert urllib3.util.ssl_.SSLContext.__module__.startswith("gevent.")


def test_threads_beside_gevents_loop_share():
    """Its threadpool's, which wait for a greenlet that loads, and the other way round."""
    import gevent.monkey
    import gevent.threadpool

    pause, loading = (
        gevent.monkey.get_original("time", "sleep"),
        shared_context._make_sealed_context,
    )

    def slowly(*args):
        pause(0.2)
        return loading(*args)

    pool, paths = gevent.threadpool.ThreadPool(8), []
    # A first request imports more, and Python's locks of modules are gevent's here: native threads
    # that import the same at once may wait for ever, with no requests and no cure in sight.
    assert pool.spawn(get, URLS["valid"]).get() == get(URLS["valid"]) == 200
    shared_context.install()
    with mock.patch.multiple(shared_context, _make_sealed_context=slowly, WAITS_S=60):
        for number in range(4):
            paths.append(PATHS["missing"] + "-beside-%d" % number)
            shutil.copyfile(PATHS["file"], paths[-1])
            tasks = [
                spawn(get, URLS["valid"], verify=paths[-1])
                for spawn in (pool.spawn, gevent.spawn) * 8
            ]
            gevent.wait(tasks)
            assert [task.get() for task in tasks] == [200] * 16
    for path in paths:
        os.remove(path)
    stats = shared_context.stats()
    assert (stats["loads"], stats["shared"], stats["own"]) == (4, 64, {})


def test_certifi_in_a_zip_archive():
    """The bundle that verify=True trusts."""
    import certifi

    assert certifi.__file__.startswith(ASKED["zip"])
    shared_context.install()
    assert get(URLS["valid"]) == 200  # which unpacks it
    shared_context._slots.clear()
    loads()
    assert at_once(10, lambda _: get(URLS["valid"])) == [200] * 10
    assert get(URLS["expired"]) != 200
    assert loads() == ONE
    shared_context.preload()
    assert loads() == NOTHING


# What is kept apart


def test_verifying_and_not_verifying_never_share():
    shared_context.install()
    url = URLS["unknown issuer"]
    came = at_once(100, lambda i: get(url, verify=bool(i % 2)))
    assert came[1::2] == [SSL_ERROR] * 50
    assert came[::2] == [200] * 50
    assert get(url) == SSL_ERROR
    kept = shared_context._slots.items()
    modes = sorted((way.settings[0][1], slot.lent[1].verify_mode) for way, slot in kept)
    unverified = [(ssl.CERT_NONE,) * 2] if UNVERIFIED_SHARE else []
    assert modes == [*unverified, (ssl.CERT_REQUIRED,) * 2]


def test_one_session_that_verifies_now_and_then():
    """To the same host in the same session, which keeps connections."""

    def replies(kind):
        with session(kind) as made:
            url = URLS["unknown issuer"] + "/?keep"
            return [outcome(made, url, verify=verify) for verify in (False, True, False)]

    # Before 2.32, stock requests goes on over the connection that it did not verify
    # (CVE-2024-35195), and the cure for contexts is none for that.
    assert alike(replies)[1][0] == (200 if RELEASE < (2, 32) else SSL_ERROR)


def test_a_client_certificate_never_enters_a_shared_context():
    """Two sessions with two client certificates, 50 threads each, and then one with none."""
    cured = [partial(shown, session("cured"), CERTS[name]) for name in ("alice", "bob")]
    assert at_once(100, lambda i: cured[i % 2]()) == ["alice", "bob"] * 50
    assert shown(session("cured"), None) is None
    assert shared_context.stats()["shared"] == 101


def test_what_requests_preloaded_is_left_to_it():
    """The cure leaves the context alone that requests 2.32.2 to 2.32.4 preloaded.

    These have one of their own for verify=True, into which they load client certificates. The cure
    leaves it alone, leak and all: it is stock requests.
    """
    assert alike(first_and_second) == ["alice", "alice"]
    assert shared_context.stats()["own"] == {"it was given ssl_context": 2}
    assert once("cured", URLS["valid"], verify=PATHS["file"]) == FINE
    assert shared_context.stats()["shared"] == 1


def first_and_second(kind):
    """Whose certificate the server sees: of a session that has one, then of one that has none."""
    return [shown(session(kind), CERTS["alice"]), shown(session(kind), None)]


def test_clients_with_the_same_certificate_share_and_a_new_one_is_seen():
    alice, bob = CERTS["alice"], CERTS["bob"]
    names = ("alice", "bob", "alice")
    came = [shown(session("cured"), CERTS[name]) for name in names for _ in range(5)]
    assert came == ["alice"] * 5 + ["bob"] * 5 + ["alice"] * 5
    assert loads() == {"bundles": 2, "defaults": 0, "client certificates": 2}
    shutil.copy(alice, alice + ".kept")
    shutil.copy(bob, alice + ".new")
    os.replace(alice + ".new", alice)
    after = [shown(session("cured"), alice) for _ in range(3)]
    os.replace(alice + ".kept", alice)
    assert after == ["bob"] * 3
    assert loads() == {"bundles": 1, "defaults": 0, "client certificates": 1}


def shown(made, cert):
    """The name that the server read in the client's certificate; None if it got none."""
    try:
        return made.get(DEMANDING, cert=cert, timeout=30).json()["shown"]
    except requests.exceptions.RequestException:
        return None


def test_sessions_can_be_pickled_and_copied():
    with session("cured") as made:
        made.headers["X-Kept"] = "yes"
        assert outcome(made, URLS["valid"]) == FINE
        loads()
        for each in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
            assert outcome(each, URLS["valid"]) == FINE
            assert outcome(each, URLS["expired"])[0] == SSL_ERROR
            assert each.headers["X-Kept"] == "yes"
            assert type(each.adapters["https://"]) is shared_context.SharedContextAdapter
    assert loads()["bundles"] == 0


def test_a_forked_child_keeps_contexts_that_no_other_thread_could_hold():
    shared_context.install()
    both = [(URLS["valid"], None), (DEMANDING, CERTS["alice"])]
    assert [get(url, cert=cert) for url, cert in both] == [200, 200]
    loads()
    # What came, loads without and with a client certificate, shared connections in this process.
    came = [200, 200, SSL_ERROR, 200, 200]
    assert in_child() == [came, 0, 1, 5]
    held, release = threading.Event(), threading.Event()

    def hold():
        [*_, slot] = shared_context._slots.values()
        with slot.lock, shared_context._guard:
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    beside_a_thread = in_child()
    release.set()
    holder.join()
    assert beside_a_thread == [came, 1, 1, 5]
    assert [get(url, cert=cert) for url, cert in both] == [200, 200]
    assert loads()["bundles"] == 0


def in_child():
    """Return what a forked child gets, or the signal that ended it.

    It gets [the outcome, its loads, those with a client certificate, shared connections].
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a lock that nobody releases would be waited for for ever
        loads()
        came = [get(URLS[name]) for name in ("valid", "valid", "expired")]
        without = loads()["bundles"]
        came += [get(DEMANDING, cert=CERTS["alice"]) for _ in range(2)]
        said = [came, without, loads()["bundles"], shared_context.stats()["shared"]]
        os.write(writer, json.dumps(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(said) if status == 0 else status


def test_pyopenssls_contexts_are_not_shared():
    shared_context.install()
    assert [get(URLS[name], verify=PATHS["file"]) for name in ("valid", "expired")] == [
        200,
        SSL_ERROR,
    ]
    stats = shared_context.stats()
    assert (stats["own"], stats["shared"]) == ({"pyOpenSSL was injected into urllib3": 2}, 0)
    refused = raised_by(partial(shared_context.preload, PATHS["file"]))
    assert type(refused) is RuntimeError and "pyOpenSSL" in str(refused)


# What someone can do with the context of a response's socket: nothing, or he goes round the seal


def test_a_responses_socket_carries_a_context_that_refuses_to_change():
    shared_context.install()
    with socket_of("cured", URLS["valid"], verify=PATHS["file"]) as sock:
        context = sock.context
        refused = 0
        for words, change in changes(context).items():
            error = raised_by(change)
            refused += 1
            assert type(error) is shared_context.SharedContextError, words
            assert "is shared with other connections" in str(error)
            assert "verify=, cert=" in str(error)
    assert refused > 15
    # Nobody swallows it by accident: not hasattr, and not who expects an attribute to be missing.
    assert not issubclass(shared_context.SharedContextError, (AttributeError, OSError, ValueError))
    assert hasattr(context, "set_ciphers") and hasattr(context, "load_cert_chain")
    assert isinstance(context, ssl.SSLContext)
    assert others() == [200, SSL_ERROR]
    assert of_connections() is context
    assert shared_context.stats()["loads"] == 1


def changes(context):
    """Ways to change what connections trust or offer, as {words: call}."""
    other, cert = PATHS["other"], CERTS["alice"]
    calls = [
        ("load_verify_locations", other), ("load_cert_chain", cert), ("load_default_certs",),
        ("set_default_verify_paths",), ("set_ciphers", "ALL"), ("set_alpn_protocols", ["h2"]),
        ("set_ecdh_curve", "prime256v1"), ("set_servername_callback", print),
        ("__delattr__", "verify_mode"),
        ("wrap_socket", None, False, True, True, None, object()),
        ("wrap_bio", None, None, False, None, object()),
    ]  # fmt: skip
    values = {
        "verify_mode": ssl.CERT_NONE, "check_hostname": not context.check_hostname, "options": 0,
        "verify_flags": 0, "minimum_version": ssl.TLSVersion.TLSv1_1, "sslsocket_class": object,
        "maximum_version": ssl.TLSVersion.TLSv1_2, "keylog_filename": PATHS["missing"] + "-keys",
        "sni_callback": print, "hostname_checks_common_name": not getattr(
            context, "hostname_checks_common_name", None),
        "post_handshake_auth": not getattr(context, "post_handshake_auth", None),
        "_msg_callback": print, "__class__": ssl.SSLContext,
    }  # fmt: skip
    # Not each Python has each attribute.
    calls += [("__setattr__", *pair) for pair in values.items() if hasattr(context, pair[0])]
    found = {str(call): partial(methodcaller(*call), context) for call in calls}
    return found


def of_connections():
    """The context of connections that trust the root."""
    [found] = [
        slot.lent[1] for way, slot in shared_context._slots.items() if way.bundle == PATHS["file"]
    ]
    return found


def others():
    """What sessions that trust the root get from those of the root and of another issuer."""
    return [get(URLS[name], verify=PATHS["file"]) for name in ("valid", "unknown issuer")]


def test_a_context_that_was_changed_all_the_same_is_left_to_who_did_it():
    """Somebody calls ssl.SSLContext's own setters on a shared context."""
    shared_context.install()
    assert others() == [200, SSL_ERROR]
    context = of_connections()
    if context.check_hostname:
        ssl.SSLContext.check_hostname.__set__(context, False)
    ssl.SSLContext.verify_mode.__set__(context, ssl.CERT_NONE)
    assert others() == [200, SSL_ERROR]
    assert context.verify_mode == ssl.CERT_NONE
    changed = of_connections()
    assert changed is not context
    ssl.SSLContext.load_verify_locations(changed, PATHS["other"])
    assert others() == [200, SSL_ERROR]
    assert of_connections() is not changed
    assert loads()["bundles"] == 4  # three of the cure, and the one that went round it


def test_truststores_contexts_are_not_shared():
    import truststore

    truststore.inject_into_ssl()
    shared_context.install()
    os.environ["SSL_CERT_FILE"] = PATHS["file"]
    assert [get(URLS["valid"], verify=PATHS["file"]) for _ in range(3)] == [200] * 3
    assert get(URLS["unknown issuer"], verify=PATHS["file"]) == SSL_ERROR
    assert urllib3.util.ssl_.SSLContext.__module__.startswith("truststore.")
    why = "truststore._api.SSLContext is not known to be safe to share"
    stats = shared_context.stats()
    assert (stats["own"], stats["shared"]) == ({why: 4}, 0)


# What others have exchanged


def test_a_manager_that_allows_a_proxy_another_name_keeps_doing_so():
    assert alike(partial(proxy_asserting, name=False)) == FINE
    # The control: with no such word the same proxy is refused.
    assert alike(partial(proxy_asserting, name=None)) != FINE


def proxy_asserting(kind, name):
    """Open an https proxy with a certificate for another name.

    A manager is told to assert that name.
    """
    with session(kind) as made:
        adapter = made.adapters["https://"]
        adapter.proxy_manager_for = partial(adapter.proxy_manager_for, proxy_assert_hostname=name)
        made.proxies = {"https": WORLD["proxy of another name"]}
        return outcome(made, URLS["valid"])


def test_functions_that_a_program_replaced_are_called_as_ever():
    used = {}
    for name in ("create_urllib3_context", "ssl_wrap_socket"):
        for module in (urllib3.connection, urllib3.util.ssl_):
            used[module.__name__ + "." + name] = alike(partial(calls_of, module, name))
    # Connections use the names that urllib3.connection imported.
    assert list(used.values()) == [3, 0, 3, 0]
    assert shared_context.stats()["own"] == {"%s was replaced" % name: 3 for name in used}


def calls_of(module, name, kind):
    """How often three connections call a function in the place of one of urllib3's."""
    stock, calls = getattr(module, name), []

    def replacing(*args, **kwargs):
        calls.append(1)
        return stock(*args, **kwargs)

    with mock.patch.object(module, name, replacing):
        for _ in range(3):
            assert once(kind, URLS["valid"], verify=PATHS["file"]) == FINE
    return len(calls)


def test_a_later_sslkeylogfile_is_written_to_as_ever():
    """Before, while and after it is set: the keys that are written."""
    path = PATHS["missing"] + "-key-log"

    def written(kind):
        lines = []
        for variables in ({}, {"SSLKEYLOGFILE": path}, {}):
            with mock.patch.dict(os.environ, variables):
                assert once(kind, URLS["valid"]) == FINE
            with open(path, "a+") as file:
                file.seek(0)
                lines.append(sum(not line.startswith("#") for line in file))
        os.remove(path)
        return lines

    before, meanwhile, after = alike(written)
    assert before == 0 < meanwhile == after


def test_other_ciphers_in_urllib3s_variable_make_another_context():
    """urllib3 before version 2 takes its ciphers from a variable, which programs change."""
    for ciphers, sign in (("ECDHE+AESGCM", "GCM"), ("ECDHE+CHACHA20", "CHACHA20")):
        urllib3.util.ssl_.DEFAULT_CIPHERS = ciphers + ":!aNULL"
        assert sign in alike(cipher)


def cipher(kind):
    with socket_of(kind, WORLD["demanding TLS 1.2"], cert=CERTS["alice"]) as sock:
        return sock.cipher()[0]


def test_connections_of_other_classes_stay_stock_and_switch_nothing_off():
    """They are of a class of the program's own, put into urllib3's pools after `install`."""
    shared_context.install()
    pools, told = urllib3.connectionpool.HTTPSConnectionPool, []
    stock = pools.ConnectionCls

    class Changing(stock):
        def connect(self):
            told.append((self.ssl_context, self.ca_certs))
            return super().connect()

    for kind, n in ((stock, 1), (Changing, 3), (stock, 1)):
        pools.ConnectionCls = kind
        assert [get(URLS["valid"], verify=PATHS["file"]) for _ in range(n)] == [200] * n
    # Nothing is blanked before their code runs.
    assert told == [(None, PATHS["file"])] * 3
    stats = shared_context.stats()
    assert stats["own"] == {"its class is not urllib3's": 3}
    assert (stats["shared"], stats["loads"]) == (2, 1)


# install(), stats() and what is not known here


class Mounted(requests.adapters.HTTPAdapter):
    """As requests' documentation has it: it makes its pools itself, and asks nobody."""

    def init_poolmanager(self, connections, maxsize, block=False, **_):
        self.poolmanager = urllib3.PoolManager(num_pools=connections, maxsize=maxsize, block=block)


#: Adapters of a program's own; None: requests' as it comes.
ADAPTERS = (
    None,
    lambda: requests.adapters.HTTPAdapter(max_retries=3),
    Mounted,
    lambda: pickle.loads(pickle.dumps(requests.adapters.HTTPAdapter())),
)


def test_install_covers_adapters_that_are_mounted_afterwards():
    signature = inspect.signature(requests.adapters.HTTPAdapter)
    assert loads_of_adapters() == [2, 2, 2, 2]
    for _ in range(2):  # again, and nothing comes of it
        shared_context.install()
        assert sum(loads_of_adapters()) == 1
        assert inspect.signature(requests.adapters.HTTPAdapter) == signature
    shared_context.uninstall()
    assert loads_of_adapters() == [2, 2, 2, 2]
    assert inspect.signature(requests.adapters.HTTPAdapter) == signature


def loads_of_adapters():
    """How often two connections load, for each of the adapters."""
    found = []
    shared_context._slots.clear()
    for adapter in ADAPTERS:
        for _ in range(2):
            made = requests.Session()
            if adapter:
                made.mount("https://", adapter())
            assert outcome(made, URLS["valid"], verify=PATHS["file"]) == FINE
        found.append(loads()["bundles"])
    return found


def test_stats_and_the_log_say_who_shares_and_why_others_do_not():
    """After one connection of each kind."""
    shared_context.install()
    its_own = ssl.create_default_context()
    with logged("INFO") as log:
        for verify in (True, True, PATHS["file"], False, PATHS["directory"], PATHS["corrupt"]):
            get(URLS["valid"], verify=verify)
        for name, value in (("assert_hostname", "127.0.0.1"), ("ssl_context", its_own)):
            with session("cured") as made:
                made.adapters["https://"].poolmanager.connection_pool_kw[name] = value
                outcome(made, URLS["valid"], verify=PATHS["file"] if value is its_own else True)
    [said] = log.output
    assert said.startswith("INFO") and "its files cannot be loaded" in said
    why = ("it was given ca_cert_dir", "its files cannot be loaded", "it was given assert_hostname",
           "it was given ssl_context")  # fmt: skip
    own, contexts, shared = dict.fromkeys(why, 1), 3, 4
    if not UNVERIFIED_SHARE:
        own, contexts, shared = {**own, "urllib3 asked for its load_default_certs": 1}, 2, 3
    assert shared_context.stats() == {
        "contexts": contexts, "loads": 2, "shared": shared, "own": own, "unknown": "",
    }  # fmt: skip


def test_an_error_that_was_not_expected_ends_the_connection():
    """Such as somebody's time limit, raised by a signal in the middle of a load."""
    shared_context.install()

    class LimitError(Exception):
        pass

    for error in (LimitError("over"), TimeoutError("over"), OSError("over"), KeyboardInterrupt()):
        with mock.patch.object(shared_context, "_make_sealed_context", side_effect=error):
            for _ in range(2):
                try:
                    requests.get(URLS["valid"], verify=PATHS["file"])
                except BaseException as caught:
                    found = caught
                else:
                    raise AssertionError("the request was sent")
                inside = names(found) if isinstance(found, Exception) else [type(found).__name__]
                assert any(type(error).__name__ in each for each in inside), inside
    assert shared_context.stats()["shared"] == 0
    assert get(URLS["valid"], verify=PATHS["file"]) == 200


def test_with_releases_that_were_not_tried_requests_stays_stock_and_says_so():
    """See `release` in trust_client.py."""
    shared_context.install()
    assert [get(URLS[name]) for name in ("valid", "valid", "expired")] == [200, 200, SSL_ERROR]
    assert once("cured", URLS["valid"]) == FINE
    assert loads()["bundles"] == 4
    assert shared_context.stats()["contexts"] == shared_context.stats()["shared"] == 0
    [warning] = SAID
    assert warning.category is RuntimeWarning
    assert "with urllib3 2.99.0 was not tried" in str(warning.message)
    assert "2.99.0" in shared_context.stats()["unknown"]
    refused = raised_by(shared_context.preload)
    assert type(refused) is RuntimeError and "2.99.0" in str(refused)


if __name__ == "__main__":
    answer(dict(vars(sys.modules["__main__"])))
