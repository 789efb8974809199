"""What looks at a running process tell, on stacks that were written down by hand."""

import ast
import contextlib
import os
import socket
import ssl
import threading

import pytest
import trustme
from tls_doctor import attaching, looks

LIBRARY = "/srv/venv/lib/python3.11/"
SITE = LIBRARY + "site-packages/"
READ = (LIBRARY + "ssl.py", "SSLSocket.read")
LOAD = (LIBRARY + "ssl.py", "SSLContext.load_default_certs")
REQUESTS = (SITE + "requests/sessions.py", "Session.request")
HTTPX = (SITE + "httpx/_config.py", "create_ssl_context")
RUNNER = (LIBRARY + "asyncio/runners.py", "Runner.run")
GREENS = (SITE + "eventlet/greenpool.py", "GreenPool._spawn_n_impl")
SCRIPT = ("/srv/venv/bin/uvicorn", "<module>")
WAIT = (
    (SITE + "urllib3/util/wait.py", "poll_wait_for_socket"),
    (SITE + "urllib3/contrib/pyopenssl.py", "recv_into"),
)


def stack(*frames, line=1):
    return [{"filename": path, "name": name, "line": line} for path, name in frames]


def own(folder, text):
    (folder / "app.py").write_text(text)
    return str(folder / "app.py"), "endpoint"


def looked_at(monkeypatch, *threads, gevent=False, connections=1, children=(), times=10):
    """What `attach` returns, where each of some looks finds these threads."""
    monkeypatch.setattr(attaching, "has_gevent", lambda _: gevent)
    monkeypatch.setattr(attaching, "connections_of", lambda _: connections)
    monkeypatch.setattr(attaching, "children_of", lambda _: list(children))
    monkeypatch.setattr(attaching, "answered_of", lambda _: set())
    found = attaching.Looks(1)
    for _ in range(times):
        found.add([{"frames": frames, "active": False} for frames in threads])
    return found.judge("by hand", 5)


ONCE = (LIBRARY + "asyncio/base_events.py", "BaseEventLoop._run_once")
AT_REST = stack((LIBRARY + "selectors.py", "EpollSelector.select"), ONCE, RUNNER, SCRIPT)
ASLEEP = stack(("/srv/app.py", "<module>"))


@pytest.mark.parametrize(
    ("frames", "gevent", "connections", "status"),
    [
        (AT_REST, False, 1, 0),
        (AT_REST, False, None, 0),  # nobody tells
        (AT_REST, False, 0, 2),  # it had nothing to do
        (ASLEEP, False, 1, 2),  # of whatever
        (ASLEEP, True, 1, 0),  # its greenlets wait
        (ASLEEP, True, 0, 2),
        (stack(READ, REQUESTS, ("/srv/app.py", "<module>")), False, None, 0),
        (stack((SITE + "httpx/_client.py", "Client.get"), ("/a.py", "run")), False, 0, 0),
    ],
)
def test_an_all_clear_is_given_to_what_was_seen_at_work_alone(
    frames, gevent, connections, status, monkeypatch
):
    report = looked_at(monkeypatch, frames, gevent=gevent, connections=connections)
    assert (report["exit_status"], report["advice"]) == (status, [])
    text = " ".join(attaching.attach_text(report).split())
    assert ("nothing to tell: look longer" in text) == bool(status)
    assert ("while it was at work, with" in text) == (not status)


def test_of_a_parent_the_children_are_named(monkeypatch):
    """What a process file names is gunicorn's arbiter, and no worker."""
    report = looked_at(monkeypatch, ASLEEP, children=[17, 18])
    assert report["exit_status"] == 2
    text = " ".join(attaching.attach_text(report).split())
    assert "has started 2 other Pythons: attach 17 or attach 18." in text
    fetching = stack(READ, REQUESTS, ("/srv/app.py", "<module>"))
    assert looked_at(monkeypatch, fetching, children=[17])["exit_status"] == 0


def looked_at_loads(monkeypatch, times, answered):
    """What `attach` returns, where so many of 25 looks find a load.

    answered: the connections that each of them finds.
    """
    connections = iter(answered)
    monkeypatch.setattr(attaching, "answered_of", lambda _: set(next(connections)))
    monkeypatch.setattr(attaching, "connections_of", lambda _: 1)
    monkeypatch.setattr(attaching, "has_gevent", lambda _: False)
    monkeypatch.setattr(attaching, "children_of", lambda _: [])
    monkeypatch.setattr(
        attaching, "kind_of", lambda it, _: "loading" if it["frames"] is loading else None
    )
    loading = stack(LOAD, HTTPX, ("/srv/app.py", "fetch"))
    found = attaching.Looks(1)
    for number in range(25):
        found.add([{"frames": loading if number < times else AT_REST, "active": True}])
    return found.judge("by hand", 5)


@pytest.mark.parametrize(("times", "status"), [(2, 0), (3, 2), (5, 2), (6, 1)])
def test_loads_that_are_too_few_to_judge_are_no_all_clear(times, status, monkeypatch):
    report = looked_at_loads(monkeypatch, times, ["", "a", *["ab"] * 23])  # 5 of 25 are 20 percent
    assert report["exit_status"] == status
    assert [each["id"] for each in report["advice"]] == (["keep-one"] if status else [])
    assert ("doctor.py run" in str(report["why"])) == (status == 2)


@pytest.mark.parametrize(
    ("answered", "came_through"),
    [
        ([""] * 25, False),  # refused, or not found
        (["a"] * 25, False),  # a database's, which was there before
        (["", "a", "b", *"cdefghijklmnopqrstuvwx"], False),  # none is there for two looks
        (["", "", "a", "a", *[""] * 21], True),
    ],
)
def test_loads_are_no_fault_where_no_connection_is_seen_to_come_through(
    answered, came_through, monkeypatch
):
    report = looked_at_loads(monkeypatch, 20, answered)
    assert (report["came_through"], report["exit_status"]) == (came_through, 2 - came_through)
    assert bool(report["advice"]) == came_through
    told = "no connection was seen to come through. If none does, its loads are no fault"
    assert (told in str(report["why"])) == (not came_through)


@pytest.mark.parametrize(
    ("frames", "answered"),
    [
        ([READ, REQUESTS], True),
        ([(LIBRARY + "ssl.py", "SSLSocket.do_handshake"), REQUESTS], False),
        ([READ, (LIBRARY + "ssl.py", "do_handshake"), REQUESTS], False),
        ([(LIBRARY + "socket.py", "SocketIO.readinto"), REQUESTS], False),  # a proxy's answer
        ([*WAIT, REQUESTS], True),
        ([(SITE + "urllib3/util/wait.py", "poll_wait_for_socket"), REQUESTS], False),
        ([LOAD, HTTPX], False),
        ([], False),
    ],
)
def test_a_thread_that_reads_over_tls_has_a_connection_that_came_through(frames, answered):
    assert looks.is_answered(stack(*frames)) == answered


@pytest.mark.parametrize(("times", "status"), [(2, 2), (3, 1)])
def test_one_look_at_a_loop_that_is_kept_is_no_all_clear(times, status, monkeypatch):
    """The first look has none before that it could be the same as."""
    waiting = stack(READ, REQUESTS, ("/srv/app.py", "endpoint"), RUNNER, SCRIPT)
    report = looked_at(monkeypatch, waiting, times=times)
    assert (report["seen"]["kept"], report["exit_status"]) == (times - 1, status)
    assert bool(report["advice"]) == (status == 1)


ENDPOINT = "import requests\nasync def endpoint():\n    x = CALL\n"


@pytest.mark.parametrize(
    ("call", "python", "line"),
    [
        ("requests.get(URL, timeout=3).text", "3.11",
         "await asyncio.to_thread(lambda: requests.get(URL, timeout=3))"),
        ("requests.get(URL)", "3.8", "run_in_executor(None, lambda: requests.get(URL))"),
        # The only call on its line; str waits for nobody.
        ("str(client.list_tables(1)[0])", "3.11", "to_thread(lambda: client.list_tables(1))"),
        ("ask()", "3.11", "to_thread(lambda: ask())"),
        ("ask(tell())", "3.11", "await asyncio.to_thread(...)"),  # which of them?
        ("requests.get(d.get('url'))", "3.11", "await asyncio.to_thread(...)"),  # which of them?
    ],
)  # fmt: skip
def test_who_keeps_a_loop_is_told_its_own_call(call, python, line, tmp_path):
    path = own(tmp_path, ENDPOINT.replace("CALL", call))
    frames = stack(READ, REQUESTS, path, RUNNER, SCRIPT, line=3)
    for frame in frames:
        frame["filename"] = frame["filename"].replace("python3.11", "python" + python)
    [advice] = looks.advice_on_sights({"kept": frames}, 40, 0)
    assert line in advice["add"]
    assert "requests waited in the thread of the running asyncio loop" in advice["what"]
    assert "app.py:3," in advice["what"]


def test_what_cannot_await_is_not_told_to(tmp_path):
    """It is called by a coroutine, and none itself."""
    path = own(tmp_path, "import requests\ndef endpoint():\n    return requests.get(URL)\n")
    frames = stack(READ, REQUESTS, path, RUNNER, SCRIPT, line=3)
    [advice] = looks.advice_on_sights({"kept": frames}, 40, 0)
    assert advice["add"].startswith("reply = await asyncio.to_thread(...)")


@pytest.mark.parametrize(
    ("sight", "frames", "names", "line"),
    [
        ("kept", [("/srv/app.py", "download")], ["in-a-thread"], "gevent.get_hub().threadpool"),
        ("kept", [READ, REQUESTS, ("/srv/app.py", "page"), GREENS], ["in-a-thread"],
         "eventlet.tpool.execute"),
        ("not patched", [READ, REQUESTS, ("/srv/app.py", "page")], ["unpatched-read"],
         "from gevent import monkey; monkey.patch_all()"),
        ("not patched", [READ, REQUESTS, ("/srv/app.py", "page"), GREENS], ["unpatched-read"],
         "import eventlet; eventlet.monkey_patch()"),
        ("blocked", [*WAIT, REQUESTS, ("/srv/app.py", "page")],
         ["through-pyopenssl", "patch-select"], "monkey.patch_select()"),
        ("kept", [READ, REQUESTS, ("/srv/app.py", "page"),
                  (SITE + "trio/_core/_run.py", "unrolled_run")],
         ["asyncio"], "await trio.to_thread.run_sync(...)"),
    ],
)  # fmt: skip
def test_what_was_seen_has_its_advice(sight, frames, names, line):
    advice = looks.advice_on_sights({sight: stack(*frames)}, 40, 0)
    assert [each["id"] for each in advice] == names
    assert line in advice[-1]["add"]
    ast.parse(advice[-1]["add"].partition("await ")[2] or advice[-1]["add"])


def test_who_loads_again_and_again_is_told_its_own_client(tmp_path):
    path = own(tmp_path, "import httpx\nasync def f():\n    httpx.AsyncClient(verify=CA)\n")
    frames = stack(LOAD, HTTPX, path, RUNNER, SCRIPT, line=3)
    [advice] = looks.advice_on_sights({"loading": frames}, 40, 31)
    assert advice["add"].startswith("client = httpx.AsyncClient(verify=CA)  # once")
    assert "httpx loaded certificates in 31 of 40 looks, from " in advice["what"]


def test_a_session_that_a_library_has_made_its_own_of_is_kept_as_it_is(tmp_path):
    text = "from google.auth.transport.requests import AuthorizedSession\n"
    path = own(tmp_path, text + "def page():\n    AuthorizedSession(key).get(URL)\n")
    authorized = (SITE + "google/auth/transport/requests.py", "AuthorizedSession.request")
    frames = stack(LOAD, REQUESTS, authorized, REQUESTS, path, line=3)
    [advice] = looks.advice_on_sights({"loading": frames}, 40, 31)
    assert advice["add"].startswith("client = AuthorizedSession(key)  # once")
    [advice] = looks.advice_on_sights({"loading": stack(LOAD, REQUESTS, path, line=3)}, 40, 31)
    assert advice["add"] == "session = requests.Session()"


def test_twisteds_own_line_is_told():
    frames = [(SITE + "OpenSSL/SSL.py", "Context.set_default_verify_paths"),
              (SITE + "twisted/internet/_sslverify.py", "OpenSSLDefaultPaths._addCACerts"),
              ("/srv/app.py", "page")]  # fmt: skip
    [advice] = looks.advice_on_sights({"loading": stack(*frames)}, 40, 9)
    assert "HTTPConnectionPool(reactor)" in advice["add"]


def test_connections_are_those_of_the_process():
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = looks.connections_of(os.getpid())
        if before is None:
            pytest.skip("this system does not tell")
        known = looks.answered_of(os.getpid())
        with socket.create_connection(server.getsockname()) as client, server.accept()[0] as other:
            assert looks.connections_of(os.getpid()) == before + 2  # both ends are here
            number = str(os.fstat(client.fileno()).st_ino)
            if looks.received():
                assert looks.answered_of(os.getpid()) == known  # nothing has come
            client.send(b"question")  # what was accepted is a server's
            other.send(b"answer")
            assert client.recv(6) == b"answer"
            assert looks.answered_of(os.getpid()) == known | {number}
            assert looks.received().get(number, (6,))[0] == 6
    assert looks.connections_of(2**30) is None
    assert looks.answered_of(2**30) == set()


@pytest.mark.parametrize("trusts", [True, False])
def test_a_connection_that_lives_for_milliseconds_is_seen_to_come_through(trusts):
    """One whose client does not trust the server is not, whatever comes before: a proxy's word."""
    if not looks.received():
        pytest.skip("this system does not tell")
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    known = ssl.create_default_context()
    if trusts:
        authority.configure_trust(known)
    steps = threading.Barrier(2, timeout=60)
    looked = looks.Connections(os.getpid())

    def look():  # while the other thread waits
        steps.wait()
        steps.wait()

    def answer(connection):
        connection.recv(9)
        connection.send(b"200")
        with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as tls:
            tls.send(b"page" * len(tls.recv(9)))
            tls.recv(9)

    def ask():
        with contextlib.suppress(ssl.SSLError), socket.create_connection(place) as plain:
            plain.send(b"CONNECT")
            plain.recv(9)
            look()
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = known.wrap_bio(incoming, outgoing, server_hostname="localhost")
            for step in (tls.do_handshake, lambda: tls.write(b"ask"), tls.read):
                while True:
                    try:
                        step()
                        break
                    except ssl.SSLWantReadError:
                        plain.sendall(outgoing.read())
                        incoming.write(plain.recv(9999))
                        look()
        steps.abort()

    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()
        looked.listening = looks.listening_in(looks.table_of(os.getpid()))
        threading.Thread(target=lambda: answer(server.accept()[0]), daemon=True).start()
        threading.Thread(target=ask, daemon=True).start()
        with contextlib.suppress(threading.BrokenBarrierError):
            while True:
                steps.wait()
                looked.update()
                steps.wait()
    assert bool(looked.through) == trusts


def test_a_function_of_a_library_is_given_the_context_that_it_takes(tmp_path):
    program, library = tmp_path / "program.py", tmp_path / "site-packages" / "dialing.py"
    library.parent.mkdir()
    program.write_text("import dialing\ndialing.dial(URL)\n")
    library.write_text("class C:\n    def call(self): pass\ndef dial(url, *, ssl=None): pass\n")
    of_library, of_program = (str(library), "dial"), (str(program), "<module>")
    frames = [*stack(LOAD, of_library, line=3), *stack(of_program, line=2)]
    [advice] = looks.advice_on_sights({"loading": frames}, 40, 31)
    assert advice["add"].endswith("# once; then dialing.dial(URL, ssl=context)")
    frames = [*stack(LOAD, (str(library), "call"), line=2), *stack(of_program, line=2)]
    [advice] = looks.advice_on_sights({"loading": frames}, 40, 31)
    assert advice["add"].startswith("client = ...  # of dialing")
