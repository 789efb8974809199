"""What was tried against the first version of the cure, and more of the kind.

Each with stock and cured sessions, with one pair of releases.
tests/cure/test_shared_context_attacks.py asks.
"""

# ruff: noqa: UP031
import contextlib
import ctypes
import errno
import json
import mmap
import os
import resource
import shutil
import signal
import ssl
import sys
import tempfile
import threading
import time
from unittest import mock

from trust_ears import Ear, server_context
from trust_received import ASKED, CERTS, PATHS, SERVERS, outcome, requests, shared_context, urllib3


def session(kind):
    made = requests.Session()
    made.trust_env = False
    if kind == "cured":
        made.mount("https://", shared_context.SharedContextAdapter())
    return made


def both(work):
    """What work("stock") and work("cured") come to, which has to be the same."""
    stock, cured = work("stock"), work("cured")
    assert stock == cured, (stock, cured)
    return cured


def ask(made, ear, **options):
    return outcome(made, "https://127.0.0.1:%d/" % ear.port, **options)


def folder(name):
    path = os.path.join(os.path.dirname(PATHS["file"]), "%s-%d" % (name, time.monotonic_ns()))
    os.mkdir(path)
    return path


def point(link, target):
    """Let a link lead somewhere else, at once."""
    os.symlink(target, link + ".new")
    os.replace(link + ".new", link)


def a_link_that_moves_while_it_is_loaded():
    """And moves back: at rest it leads to alice, or to the root's bundle."""
    place = folder("link")
    cert, bundle = os.path.join(place, "cert"), os.path.join(place, "bundle")
    loading = shared_context._make_sealed_context

    def moving(*args):
        point(cert, CERTS["bob"])
        point(bundle, PATHS["other"])
        try:
            return loading(*args)
        finally:
            point(cert, CERTS["alice"])
            point(bundle, PATHS["file"])

    demanding = server_context(SERVERS["root"], PATHS["file"])
    for _ in range(5):
        point(cert, CERTS["alice"])
        point(bundle, PATHS["file"])
        patched = mock.patch.object(shared_context, "_make_sealed_context", moving)
        with Ear(demanding) as ear, patched:
            ask(session("cured"), ear, verify=bundle, cert=cert)
        with Ear(demanding) as ear:
            for _ in range(3):
                came = ask(session("cured"), ear, verify=bundle, cert=cert)
                assert came == [200, "THE SERVER"], came
        assert [each["shown"] for each in ear.heard] == ["alice"] * 3


def a_bundle_that_changes_while_it_is_loaded():
    """By writing, by renaming, and back; then an authority stays removed."""
    place = folder("bundle")
    bundle = os.path.join(place, "bundle")
    loading = shared_context._make_sealed_context

    def write(source):
        shutil.copyfile(source, bundle)

    def rename(source):
        shutil.copyfile(source, bundle + ".new")
        os.replace(bundle + ".new", bundle)

    for change in (write, rename):
        change(PATHS["other"])

        def changing(*args, change=change):
            change(PATHS["file"])
            try:
                return loading(*args)
            finally:
                change(PATHS["other"])

        context = server_context(SERVERS["root"])
        patched = mock.patch.object(shared_context, "_make_sealed_context", changing)
        with Ear(context) as ear, patched:
            ask(session("cured"), ear, verify=bundle)
        with Ear(context) as ear:
            for _ in range(3):
                assert both(lambda kind: ask(session(kind), ear, verify=bundle))[0] == "SSLError"


def one_sessions_files_hold_up_nobody_else():
    """Somebody's bundle is a pipe in which nobody writes: stock waits for ever in its load."""
    pipe = os.path.join(folder("pipe"), "bundle")
    os.mkfifo(pipe)
    with Ear(server_context(SERVERS["root"])) as ear:
        hanging = threading.Thread(
            target=ask, args=(session("cured"), ear), kwargs={"verify": pipe}, daemon=True
        )
        hanging.start()
        time.sleep(0.5)
        came = []
        other = threading.Thread(
            target=lambda: came.append(ask(session("cured"), ear, verify=PATHS["file"])),
            daemon=True,
        )
        other.start()
        other.join(15)
        assert hanging.is_alive() and came == [[200, "THE SERVER"]]
        # Let it end: what it reads now is no bundle.
        writer = os.open(pipe, os.O_WRONLY)
        os.close(writer)
        hanging.join(15)
        assert not hanging.is_alive()
    assert "it trusts what is no regular file" in shared_context.stats()["own"]


def an_authority_is_removed_while_the_proxy_takes_its_time():
    """Between CONNECT and its answer: the handshake that follows must not trust it any more."""

    def removed(kind):
        bundle = os.path.join(folder("slow"), "bundle")
        shutil.copyfile(PATHS["file"], bundle)
        with Ear(server_context(SERVERS["root"])) as server:
            assert ask(session(kind), server, verify=bundle) == [200, "THE SERVER"]
        pause = lambda: shutil.copyfile(PATHS["other"], bundle)  # noqa: E731
        with Ear(server_context(SERVERS["root"])) as server, Ear(None, True, pause) as proxy:
            made = session(kind)
            made.proxies = {"https": "http://127.0.0.1:%d" % proxy.port}
            came = ask(made, server, verify=bundle)
        return came, [each["requests"] for each in server.heard]

    came, heard = both(removed)
    assert came[0] == "SSLError" and heard == [[]]


def a_private_key_that_may_no_longer_be_read():
    """A process gives up its rights after it has connected: it must not use the key any more."""
    if os.geteuid() != 0:
        return  # nothing to give up
    place = tempfile.mkdtemp()  # which others can find, unlike the folders of the tests
    os.chmod(place, 0o755)
    key, bundle = os.path.join(place, "key"), os.path.join(place, "bundle")
    for path, source, rights in ((key, CERTS["alice"], 0o600), (bundle, PATHS["file"], 0o644)):
        shutil.copyfile(source, path)
        os.chmod(path, rights)

    def given_up(kind):
        with Ear(server_context(SERVERS["root"], PATHS["file"])) as ear:
            first = ask(session(kind), ear, verify=bundle, cert=key)
            os.seteuid(65534)
            try:
                return first, ask(session(kind), ear, verify=bundle, cert=key)[0]
            finally:
                os.seteuid(0)

    first, after = both(given_up)
    shutil.rmtree(place)
    assert first == [200, "THE SERVER"] and after != 200


def an_encrypted_key_is_stocks_affair():
    """With an empty passphrase, and with another: the same error, and nothing is shared."""
    if urllib3.__version__ < "1.25":
        return  # it lets OpenSSL ask on the terminal
    empty = os.path.join(os.path.dirname(CERTS["alice"]), "key-locked-with-nothing")
    for locked in (empty, CERTS["alice with a locked key"][1]):

        def shown(kind, locked=locked):
            with Ear(server_context(SERVERS["root"], PATHS["file"])) as ear:
                came = ask(session(kind), ear, verify=PATHS["file"], cert=(CERTS["alice"], locked))
            return came, [each["requests"] for each in ear.heard]

        came, heard = both(shown)
        assert came[0] != 200 and heard == [[]]
    assert shared_context.stats()["shared"] == 0


def a_tightening_is_not_swallowed():
    """Whoever tightens a shared context is refused, also by way of hasattr and of suppress."""
    with Ear(server_context(SERVERS["root"])) as ear, session("cured") as made:
        response = made.get(
            "https://127.0.0.1:%d/" % ear.port, verify=PATHS["file"], stream=True, timeout=20
        )
        context = response.raw._fp.fp.raw._sock.context
        assert hasattr(context, "set_ciphers")
        refused = 0
        try:
            with contextlib.suppress(AttributeError, TypeError, ValueError, OSError):
                context.set_ciphers("ECDHE+AESGCM")
        except shared_context.SharedContextError:
            refused += 1
        try:
            with contextlib.suppress(AttributeError, TypeError, ValueError, OSError):
                context.minimum_version = ssl.TLSVersion.TLSv1_3
        except shared_context.SharedContextError:
            refused += 1
        response.close()
    assert refused == 2


def a_class_with_its_own_context_switches_nothing_off():
    """Nor does a connection that fails, a replaced function, or a strange context."""
    stock = urllib3.connection.HTTPSConnection
    pool = urllib3.connectionpool.HTTPSConnectionPool

    class Own(stock):
        def connect(self):
            self.ssl_context = ssl.create_default_context(cafile=self.ca_certs)
            return super().connect()

    with Ear(server_context(SERVERS["root"])) as ear, Ear(server_context(SERVERS["other"])) as bad:
        for disturb in (
            mock.patch.object(pool, "ConnectionCls", Own),
            mock.patch.object(stock, "connect", lambda self: Own.connect(self)),
            mock.patch.object(urllib3.connection, "ssl_wrap_socket", lambda *_, **__: None),
            mock.patch.dict(os.environ, SSLKEYLOGFILE=os.path.join(folder("log"), "keys")),
        ):
            with disturb:
                ask(session("cured"), ear, verify=PATHS["file"])
                ask(session("cured"), bad, verify=PATHS["file"])
            before = shared_context.stats()["shared"]
            assert ask(session("cured"), ear, verify=PATHS["file"]) == [200, "THE SERVER"]
            assert shared_context.stats()["shared"] == before + 1


def a_session_of_tls_stays_with_its_connection():
    with Ear(server_context(SERVERS["root"])) as ear, session("cured") as made:
        response = made.get(
            "https://127.0.0.1:%d/" % ear.port, verify=PATHS["file"], stream=True, timeout=20
        )
        sock = response.raw._fp.fp.raw._sock
        found = None
        try:
            sock.context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), session=sock.session or 1)
        except shared_context.SharedContextError as error:
            found = error
        response.close()
    assert found is not None


def a_time_limit_in_the_middle_of_a_load():
    """Raised by a signal, as job queues do it: the server must not hear of the request."""
    bundle = os.path.join(folder("slow"), "bundle")
    with open(PATHS["file"]) as file, open(bundle, "w") as large:
        large.write(2000 * file.read())  # which takes a while to load

    class LimitError(Exception):
        pass

    for limit in (LimitError(), TimeoutError("over"), OSError(errno.ETIME, "over")):

        def over(*_, limit=limit):
            raise limit

        def limited(kind, over=over):
            before = signal.signal(signal.SIGALRM, over)
            with Ear(server_context(SERVERS["root"])) as ear:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.1)
                    session(kind).post(
                        "https://127.0.0.1:%d/" % ear.port, data="money", verify=bundle
                    )
                except Exception:
                    pass
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    signal.signal(signal.SIGALRM, before)
            return [each["requests"] for each in ear.heard if each["requests"]]

        assert both(limited) == []


def a_policy_that_arrives_later():
    """No TLS 1.2, in each of the ways in which a program can say it for all contexts."""
    kind = ssl.SSLContext
    fresh = kind.__new__

    def strict(cls, *args, **kwargs):
        made = fresh(cls, *args, **kwargs)
        kind.options.__set__(made, kind.options.__get__(made) | ssl.OP_NO_TLSv1_2)
        return made

    def refusing(*args, **kwargs):
        raise ssl.SSLError(1, "refused by policy")

    old = server_context(SERVERS["root"])
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    policies = [
        lambda: mock.patch.object(kind, "load_verify_locations", refusing),
        lambda: mock.patch.object(kind, "__new__", strict),
    ]
    if hasattr(urllib3.util.ssl_, "OP_NO_COMPRESSION"):
        more = ssl.OP_NO_COMPRESSION | ssl.OP_NO_TLSv1_2
        policies.append(lambda: mock.patch.object(urllib3.util.ssl_, "OP_NO_COMPRESSION", more))
    with Ear(old) as ear:
        for policy in policies:
            assert both(lambda kind: ask(session(kind), ear, verify=PATHS["file"]))[0] == 200

            def under(kind, policy=policy):
                with policy():
                    return ask(session(kind), ear, verify=PATHS["file"])[0]

            assert both(under) == "SSLError"


def a_policy_that_was_lifted():
    """Trust in another authority, for a moment: it must not stay."""
    loading = ssl.SSLContext.load_verify_locations

    def trusting(context, *args, **kwargs):
        loading(context, PATHS["other"])
        return loading(context, *args, **kwargs)

    with Ear(server_context(SERVERS["other"])) as ear:
        with mock.patch.object(ssl.SSLContext, "load_verify_locations", trusting):
            assert both(lambda kind: ask(session(kind), ear, verify=PATHS["file"]))[0] == 200
        for _ in range(2):
            found = both(lambda kind: ask(session(kind), ear, verify=PATHS["file"]))
            assert found[0] == "SSLError", found


def a_bundle_that_is_written_through_a_mapping():
    """Its times may stay as they are."""
    bundle = os.path.join(folder("mapping"), "bundle")
    texts = [open(PATHS[name], "rb").read() for name in ("file", "other")]
    size = max(map(len, texts))
    first, second = (text.ljust(size, b"\n") for text in texts)
    with open(bundle, "wb") as file:
        file.write(first)
    times = os.stat(bundle)
    with Ear(server_context(SERVERS["root"])) as ear:
        assert both(lambda kind: ask(session(kind), ear, verify=bundle))[0] == 200
        with open(bundle, "r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
            mapped[:] = second
            mapped.flush()
        os.utime(bundle, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert both(lambda kind: ask(session(kind), ear, verify=bundle))[0] == "SSLError"


def a_thread_with_a_table_of_files_of_its_own():
    """The numbers of its files are other files in the first thread's table."""
    libc, came = ctypes.CDLL(None, use_errno=True), []
    other = os.open(PATHS["other"], os.O_RDONLY)
    numbers = range(100, 160)
    for number in numbers:
        os.dup2(other, number)

    def work():
        if libc.unshare(0x400):  # CLONE_FILES, which needs no rights
            came.append("unshare failed")
            return
        for number in numbers:
            os.close(number)
        with contextlib.ExitStack() as filling:
            while True:  # the next file to be opened is one of those numbers
                number = os.open(os.devnull, os.O_RDONLY)
                if number >= numbers[0]:
                    os.close(number)
                    break
                filling.callback(os.close, number)
            came.append(ask(session("cured"), stranger, verify=PATHS["file"])[0])
            came.append(ask(session("cured"), ear, verify=PATHS["file"])[0])

    root, others = server_context(SERVERS["root"]), server_context(SERVERS["other"])
    with Ear(root) as ear, Ear(others) as stranger:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        came.append(ask(session("cured"), stranger, verify=PATHS["file"])[0])
        came.append(ask(session("cured"), ear, verify=PATHS["file"])[0])
    for number in (*numbers, other):
        os.close(number)
    assert came == ["SSLError", 200, "SSLError", 200], came


def a_policy_in_the_adapter():
    """Put there by a tool between the import of the cure and its installation."""
    stock = requests.adapters.HTTPAdapter.__init__

    def pinning(adapter, *args, **kwargs):
        stock(adapter, *args, **kwargs)
        adapter.poolmanager.connection_pool_kw["assert_fingerprint"] = 20 * "00"

    def asked(kind):
        with mock.patch.object(requests.adapters.HTTPAdapter, "__init__", pinning):
            if kind == "cured":
                shared_context.install()
            made = requests.Session()
            made.trust_env = False
            return ask(made, ear, verify=PATHS["file"])[0]

    with Ear(server_context(SERVERS["root"])) as ear:
        try:
            assert both(asked) == "SSLError"
        finally:
            shared_context.uninstall()


def a_pipe_with_a_patient_writer():
    """Opened to look at it, it would wake the writer, and the load would wait for another."""
    for kind in ("stock", "cured"):
        pipe = os.path.join(folder("patient"), "bundle")
        os.mkfifo(pipe)
        with open(PATHS["file"], "rb") as file:
            text = file.read()

        def write(pipe=pipe, text=text):
            with open(pipe, "wb") as end:
                end.write(text)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        with Ear(server_context(SERVERS["root"])) as ear:
            came = []
            asking = threading.Thread(
                target=lambda kind=kind, pipe=pipe, ear=ear, came=came: came.append(
                    ask(session(kind), ear, verify=pipe)[0]
                ),
                daemon=True,
            )
            asking.start()
            asking.join(15)
        assert came == [200], (kind, came)


def a_lock_that_a_dead_thread_holds():
    """It was ended between taking the lock and noting that: others wait once, and not each time."""

    def die():
        [slot] = shared_context._slots.values()
        slot.lock.acquire()

    bundle = os.path.join(folder("lock"), "bundle")
    shutil.copyfile(PATHS["file"], bundle)
    with Ear(server_context(SERVERS["root"])) as ear:
        assert ask(session("cured"), ear, verify=bundle)[0] == 200
        dying = threading.Thread(target=die)
        dying.start()
        dying.join()
        with open(bundle, "a") as file:
            file.write("\n")  # so that it is loaded again
        with mock.patch.object(shared_context, "WAITS_S", 0.1):
            came = [ask(session("cured"), ear, verify=bundle)[0] for _ in range(3)]
    stats = shared_context.stats()
    assert came == [200] * 3
    assert stats["own"] == {"another connection takes long to load its files": 1}
    assert (stats["shared"], stats["loads"]) == (3, 2)


def a_thread_that_is_ended_while_it_waits():
    """By an exception from outside, which comes in the instant in which it gets the lock."""
    loading, begun, gate = shared_context._make_sealed_context, threading.Event(), threading.Event()

    def slowly(*args):
        begun.set()
        gate.wait(60)
        return loading(*args)

    def one():
        with contextlib.suppress(SystemExit):
            came.append(ask(session("cured"), ear, verify=PATHS["file"])[0])

    came, waiting = [], mock.patch.multiple(shared_context, _make_sealed_context=slowly, WAITS_S=30)
    with Ear(server_context(SERVERS["root"])) as ear, waiting:
        first, ended, last = (threading.Thread(target=one) for _ in range(3))
        first.start()
        assert begun.wait(60)
        ended.start()
        while sys._current_frames()[ended.ident].f_code.co_name != "_lend":
            time.sleep(0.01)
        time.sleep(0.2)  # from there into the lock
        end = ctypes.pythonapi.PyThreadState_SetAsyncExc
        assert end(ctypes.c_ulong(ended.ident), ctypes.py_object(SystemExit)) == 1
        gate.set()
        first.join()
        ended.join()
        with open(PATHS["file"], "a") as file:
            file.write("\n")  # so that it is loaded again
        last.start()
        last.join()
    stats = shared_context.stats()
    assert came == [200, 200] and (stats["shared"], stats["own"]) == (2, {}), (came, stats)


def a_name_that_another_thread_adds_meanwhile():
    """Such as the register of warnings: a module may get new names at any moment."""
    over = threading.Event()

    def adding():
        names, module = ["added_%d" % n for n in range(200)], vars(urllib3.util.ssl_)
        while not over.is_set():
            for name in names:
                module[name] = None
            for name in names:
                del module[name]

    thread, interval = threading.Thread(target=adding), sys.getswitchinterval()
    thread.start()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3000):
            shared_context._makers()
    finally:
        sys.setswitchinterval(interval)
        over.set()
        thread.join()


def a_function_in_the_place_of_the_class():
    """A program that makes its contexts so is called as ever."""
    kind, made = urllib3.util.ssl_.SSLContext, []

    def making(*args):
        made.append(args)
        return kind(*args)

    def asked(kind):
        made.clear()
        with mock.patch.object(urllib3.util.ssl_, "SSLContext", making):
            came = [ask(session(kind), ear, verify=PATHS["file"])[0] for _ in range(2)]
        return came, len(made)

    with Ear(server_context(SERVERS["root"])) as ear:
        assert both(asked) == ([200, 200], 2)


def a_context_that_arrives_during_the_connection():
    """It demands TLS 1.3, in this handshake and in the next of the same connection."""
    finding = urllib3.util.connection.create_connection

    def connected(kind, by_method):
        strict, came = ssl.create_default_context(cafile=PATHS["file"]), []
        strict.check_hostname = by_method  # which urllib3 1.26 does not have done for addresses
        strict.minimum_version = ssl.TLSVersion.TLSv1_3
        with session(kind) as made:
            pool = made.adapters["https://"].poolmanager.connection_from_url(
                "https://127.0.0.1:%d" % ear.port
            )
            pool.ca_certs, pool.cert_reqs = PATHS["file"], "CERT_REQUIRED"
            connection = pool._new_conn()
            if hasattr(pool, "_prepare_conn"):  # before urllib3 2
                pool._prepare_conn(connection)

            def arriving(*args, **kwargs):
                if connection.ssl_context is None or not by_method:
                    connection.ssl_context = strict
                return stock(*args, **kwargs)

            if by_method:
                stock = connection._new_conn
                connection._new_conn = arriving
            else:
                stock = finding
            first = mock.patch.object(
                urllib3.util.connection, "create_connection", finding if by_method else arriving
            )
            for patched in (first, contextlib.ExitStack()):
                with patched:
                    try:
                        came.append(connection.connect())
                    except Exception as error:
                        came.append(type(error).__name__)
                connection.close()
        return came

    old = server_context(SERVERS["root"], maximum_version=ssl.TLSVersion.TLSv1_2)
    with Ear(old) as ear:
        for by_method in (True, False):
            came = both(lambda kind, by_method=by_method: connected(kind, by_method))
            assert None not in came, came


def a_process_that_may_write_nothing():
    """No copy can be made of what is to be loaded; and none where it has no file left."""
    sizes, numbers = (
        resource.getrlimit(of) for of in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)
    )
    with Ear(server_context(SERVERS["root"], PATHS["file"])) as ear:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, sizes[1]))
        try:
            came = both(
                lambda kind: ask(session(kind), ear, verify=PATHS["file"], cert=CERTS["alice"])
            )
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, sizes)
    assert came[0] == 200 and "its files cannot be loaded" in shared_context.stats()["own"]
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, numbers[1]))
    try:
        shared_context._in_memory()
    except OSError as error:
        assert error.errno == errno.EMFILE
    else:
        raise AssertionError("a file was made")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, numbers)


def a_class_of_pools_that_arrives_later():
    """In the table that all of urllib3's managers share."""
    classes = urllib3.poolmanager.pool_classes_by_scheme

    class Pinning(classes["https"]):
        def _validate_conn(self, conn):
            super()._validate_conn(conn)
            raise ssl.SSLError(1, "refused by policy")

    def later(kind):
        with session(kind) as made, mock.patch.dict(classes, https=Pinning):
            return ask(made, ear, verify=PATHS["file"])[0]

    with Ear(server_context(SERVERS["root"])) as ear:
        assert both(later) == "SSLError"


def a_strange_pool_is_counted_once():
    """Also a proxy's, which is looked up for each request."""
    classes = urllib3.poolmanager.pool_classes_by_scheme

    class Strange(classes["https"]):
        pass

    with mock.patch.dict(classes, https=Strange):
        with Ear(server_context(SERVERS["root"])) as ear, Ear(None, True) as proxy:
            made = session("cured")
            made.proxies = {"https": "http://127.0.0.1:%d" % proxy.port}
            for _ in range(3):
                assert ask(made, ear, verify=PATHS["file"])[0] == 200
    [(why, n)] = shared_context.stats()["own"].items()
    assert "Strange" in why and n == 2, (why, n)  # its manager, and that of the proxy


ATTACKS = [
    a_link_that_moves_while_it_is_loaded, a_bundle_that_changes_while_it_is_loaded,
    one_sessions_files_hold_up_nobody_else, an_authority_is_removed_while_the_proxy_takes_its_time,
    a_private_key_that_may_no_longer_be_read, an_encrypted_key_is_stocks_affair,
    a_tightening_is_not_swallowed, a_class_with_its_own_context_switches_nothing_off,
    a_session_of_tls_stays_with_its_connection, a_time_limit_in_the_middle_of_a_load,
    a_policy_that_arrives_later, a_policy_that_was_lifted,
    a_bundle_that_is_written_through_a_mapping, a_thread_with_a_table_of_files_of_its_own,
    a_policy_in_the_adapter, a_pipe_with_a_patient_writer,
    a_lock_that_a_dead_thread_holds, a_thread_that_is_ended_while_it_waits,
    a_name_that_another_thread_adds_meanwhile,
    a_function_in_the_place_of_the_class, a_context_that_arrives_during_the_connection,
    a_process_that_may_write_nothing, a_class_of_pools_that_arrives_later,
    a_strange_pool_is_counted_once,
]  # fmt: skip


if __name__ == "__main__":
    ATTACK = {each.__name__: each for each in ATTACKS}[ASKED["attack"]]
    ATTACK()
    print(json.dumps(shared_context.stats()))
