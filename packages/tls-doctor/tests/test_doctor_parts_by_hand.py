"""Small parts of the doctor, on values that are written down: clocks, looks, words, changes."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
import types

import pytest
from tls_doctor import (
    advice,
    attaching,
    callers,
    changes,
    clients,
    heartbeat,
    loads,
    probed,
    processes,
    report,
    rerun,
    state,
    which_http,
)
from tls_doctor.basis import ITS_OWN
from tls_doctor.probes import Probes

# ------------------------------------------------------------------------------------- the clocks


def test_a_thread_has_or_wants_a_processor_in_nanoseconds(monkeypatch):
    asked = []
    read = lambda path: asked.append(path) or b"1250000000 500000000 42\n"  # noqa: E731
    monkeypatch.setattr(heartbeat, "read", read)
    assert heartbeat.seconds_of("7") == 1.75
    assert asked == ["/proc/self/task/7/schedstat"]


@pytest.mark.parametrize(
    ("start", "end", "used_s", "others_s"),
    [
        ((1.0, 5.0, 9.0), (1.5, 5.75, 10.5), 0.5, 0.75),
        # Too many threads to ask: what the process used beside this one.
        ((1.0, None, 9.0), (1.5, 5.75, 10.5), 0.5, 1.0),
        ((1.0, 5.0, 9.0), (1.5, None, 9.25), 0.5, 0.0),
        # Others have ended, and took their time along.
        ((1.0, 5.0, 9.0), (1.5, 4.0, 10.5), 0.5, 0.0),
        # Nobody tells: all of it is this thread's.
        ((None, None, 9.0), (1.5, 5.75, 10.5), 1.5, 0.0),
        ((1.0, 5.0, 9.0), (None, None, 10.5), 1.5, 0.0),
    ],
)
def test_what_a_thread_used_and_what_all_others_did(start, end, used_s, others_s):
    assert heartbeat.used_between(start, end) == (used_s, others_s)


@pytest.fixture
def beats():
    probes = types.SimpleNamespace(active=True, note=lambda *_, **__: None)
    watching = heartbeat.Heartbeat(probes)
    watching.begin = lambda *_: None
    return watching


def test_a_process_forks_when_the_doctors_thread_has_ended(beats, monkeypatch):
    beats.looking, sleeps = os.getpid(), []

    def sleep(seconds):
        sleeps.append(seconds)
        if len(sleeps) == 3:
            beats.looking = None  # it has seen that it is to stop

    monkeypatch.setattr(heartbeat, "sleep", sleep)
    beats.pause()
    assert beats.stop and len(sleeps) == 3


def test_a_silence_of_the_parent_is_none_of_its_childs(beats):
    beats.looking, beats.loops = os.getpid() + 1, {7: "a loop"}
    beats.silences = {7: heartbeat.Silence(1, (0.0, 0.0, 0.0))}
    beats.look_on()
    assert beats.silences == {} and beats.looking == os.getpid()
    # In the process that looks already, what goes on goes on.
    silence = beats.silences[7] = heartbeat.Silence(1, (0.0, 0.0, 0.0))
    beats.look_on()
    assert beats.silences == {7: silence}


# -------------------------------------------------------------------------------------- the looks


def thread(*frames, active=False):
    rows = [{"filename": file, "name": name, "line": 1} for file, name in frames]
    return {"frames": rows, "active": active}


READ = ("/usr/lib/python3.13/ssl.py", "SSLSocket.read")
WAIT = (
    ("/site-packages/urllib3/util/wait.py", "poll_wait_for_socket"),
    ("/site-packages/urllib3/contrib/pyopenssl.py", "recv_into"),
)
GREENLET, MAIN = ("/program.py", "fetch"), ("/program.py", "<module>")
THREAD = ("/usr/lib/python3.13/threading.py", "Thread._bootstrap")


@pytest.mark.parametrize(
    ("caught", "loop", "kind"),
    [
        (thread(READ, GREENLET), True, "not patched"),
        (thread(READ, GREENLET, active=True), True, None),  # it decrypts
        (thread(READ, GREENLET), False, None),
        (thread(READ, MAIN), True, None),
        (thread(READ, THREAD), True, None),
        (thread(("/site-packages/gevent/ssl.py", "SSLSocket.read"), GREENLET), True, None),
        (thread(("/usr/lib/python3.13/ssl.py", "SSLContext.wrap_socket"), GREENLET), True, None),
        (thread(*WAIT, GREENLET), True, "blocked"),
        (thread(*WAIT, MAIN), True, "perhaps blocked"),
        (thread(*WAIT, GREENLET), None, "perhaps blocked"),  # nobody can see whether there is one
        (thread(*WAIT, GREENLET), False, None),
        (thread(*WAIT, THREAD), True, None),
        (thread(WAIT[0], GREENLET), True, None),  # without pyOpenSSL
        (thread(), True, None),
    ],
)
def test_what_a_thread_is_caught_at(caught, loop, kind):
    assert attaching.kind_of(caught, loop) == kind


# -------------------------------------------------------------------------------------- the loads


def test_a_load_inside_a_load_is_one(monkeypatch):
    now = iter((1.0, 1.004, 2.0, 2.001))
    monkeypatch.setattr(loads, "cpu_clock", lambda: next(now))
    watch = loads.Watch()
    names = {"load_verify_locations": "of ssl", "set_default_verify_paths": "of pyOpenSSL"}
    inner, outer = (types.SimpleNamespace(__name__=name) for name in names)
    for event, function in (
        ("c_call", outer), ("c_call", inner), ("c_return", inner), ("c_return", outer),
        ("c_call", inner), ("c_exception", inner),
        ("c_call", types.SimpleNamespace(__name__="read")),
    ):  # fmt: skip
        watch._see(None, event, function)
    assert watch.loads == pytest.approx([4.0, 1.0])


# -------------------------------------------------------------------------------------- the words


@pytest.mark.parametrize(
    ("needed", "connections", "words"),
    [(2, 9, "9 loads for 9 connections; 2 needed."), (9, 2, "9 loads for 2 connections; 2 needed."),
     (0, 1, "9 loads for 1 connection; 0 needed.")],
)  # fmt: skip
def test_no_more_loads_are_needed_than_there_are_connections(needed, connections, words):
    counts = dict.fromkeys(
        ("spare_ms", "share", "cpu_ms", "compiled_ms", "handshakes", "peak", "open", "contexts"), 0
    )
    counts.update(loads=9, needed=needed, connections=connections, processes=2)
    text = report.sentence_of_counts(counts)
    assert text.startswith(words + " ") and "in 2 processes" in text


@pytest.mark.parametrize(
    ("trust", "is_named"),
    [
        ("/own/bundle.pem", True),
        ("/of/ssl.pem", False),  # the variables say so already
        ("/of/requests.pem", False),
        ("/site-packages/certifi/cacert.pem", False),
        ("/etc/ssl/cert.pem", False),
        ("system", False),
        ("data 7c9f", False),
        (None, False),
    ],
)
def test_certificates_are_named_where_nothing_else_names_them(trust, is_named, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/of/ssl.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/of/requests.pem")
    row = {"trusts": [[trust, 3]] if trust else []}
    line = advice.with_trust("context = ssl.create_default_context()", row)
    assert ("cafile='/own/bundle.pem'" in line) is is_named
    assert is_named or line == "context = ssl.create_default_context()"


def test_a_password_is_in_no_error(monkeypatch):
    class Repeating:
        def __init__(self, *_, **__):
            self.close = lambda: None

        def fetch(self, url, *_, **__):
            raise OSError("no way to " + url)

    client = clients.Client("repeating", module="json", kind=Repeating)
    monkeypatch.setattr(which_http, "clients_with_sessions", lambda: [client])
    monkeypatch.setattr(which_http, "print_line", lambda _: None)
    for url, public in (
        ("http://reader:s3cret@127.0.0.1:9/a", "http://127.0.0.1:9/a"),
        ("http://127.0.0.1:9/a", "http://127.0.0.1:9/a"),
    ):
        results = which_http.check_http(url, {"json"})
        [row] = results["clients"]
        assert results["url"] == public and row["error"] == f"OSError: no way to {public}"


# ------------------------------------------------------------------------------------ the changes

#: What a request of tornado says of TLS.
ALIKE = dict.fromkeys(("ssl_options", "validate_cert", "ca_certs", "client_cert", "client_key"))


@pytest.mark.parametrize(
    ("is_own", "block", "places"),
    [(False, False, (1000, 1000)), (False, True, (10, 4)), (True, False, (10, 4))],
)
def test_pools_get_more_places_where_the_program_has_not_limited_them(is_own, block, places):
    class HTTPAdapter:
        def init_poolmanager(self, connections, maxsize, block=False, **options):
            self.places, self.options = (connections, maxsize), dict(options, block=block)

    class Own(HTTPAdapter):
        pass

    changes.keep_all_connections(types.SimpleNamespace(HTTPAdapter=HTTPAdapter))
    adapter = (Own if is_own else HTTPAdapter)()
    adapter.init_poolmanager(10, 4, block=block, strict=True)
    assert (adapter.places, adapter.options) == (places, {"block": block, "strict": True})


def test_requests_of_tornado_share_a_context_only_if_they_trust_alike():
    made = []

    class _HTTPConnection:
        def __init__(self, **settings):
            self.request = types.SimpleNamespace(**dict(ALIKE, **settings))

        def _get_ssl_options(self, scheme):
            made.append(scheme)
            return len(made)

    changes.one_context_of_tornado(types.SimpleNamespace(_HTTPConnection=_HTTPConnection))
    options = lambda scheme="https", **own: _HTTPConnection(**own)._get_ssl_options(scheme)  # noqa: E731
    assert [options(), options()] == [1, 1]
    for number, name in enumerate(("validate_cert", "ca_certs", "client_cert", "client_key"), 2):
        assert options(**{name: "another"}) == options(**{name: "another"}) == number
    assert [options("http"), options("http"), options(ssl_options="its own")] == [6, 7, 8]
    assert options() == 1


def test_a_context_is_made_once_for_the_same_arguments(monkeypatch):
    made = []
    once = changes.one_of_each(lambda *args, **kwargs: made.append((args, kwargs)) or len(made))
    assert [once(1, a=2, b=3), once(1, b=3, a=2), once(2, a=2, b=3), once(1, a=2)] == [1, 1, 2, 3]
    assert [once([]), once([])] == [4, 5]  # what cannot be compared
    monkeypatch.setattr(os, "getpid", lambda: -1)  # no child takes its parent's
    assert [once(1, a=2), once(1, a=2)] == [6, 6]


def test_clients_of_botocore_share_what_they_keep_if_their_settings_are_alike(monkeypatch):
    class URLLib3Session:
        def __init__(self, *settings, **options):
            self._manager = object()

        def close(self):
            pytest.fail("another client may go on with it")

    changes.one_client_of_botocore(types.SimpleNamespace(URLLib3Session=URLLib3Session))
    first, second = URLLib3Session("a", b=[1]), URLLib3Session("a", b=[1])
    first.close()
    assert first._manager is second._manager
    others = URLLib3Session("c", b=[1]), URLLib3Session("a", b=[2]), URLLib3Session("a")
    assert len({id(client._manager) for client in (first, *others)}) == 4
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert URLLib3Session("a", b=[1])._manager is not first._manager


def test_only_the_header_that_closes_is_left_out():
    sent = []

    class HTTPConnection:
        def putheader(self, header, *values):
            sent.append((header, *values))

    changes.no_closing(types.SimpleNamespace(HTTPConnection=HTTPConnection))
    for header in (
        ("Connection", "close"), (b"connection", b"Close"), ("Connection", "keep-alive"),
        ("Accept", "close"), ("Accept", "a", "b"),
    ):  # fmt: skip
        HTTPConnection().putheader(*header)
    assert sent == [("Connection", "keep-alive"), ("Accept", "close"), ("Accept", "a", "b")]


def test_what_a_client_loaded_is_added_up_over_all_that_called_it():
    rows = [("httpx", 5, 2), (None, 1, 1), ("httpx", 3, 1), (None, 4, 0)]
    rows = [{"client": name, "loads": number, "needed": needed} for name, number, needed in rows]
    totals = rerun.by_client({"counts": {"clients": rows}})
    assert totals == {"httpx": (8, 3), ITS_OWN: (5, 1)}


# ---------------------------------------------------------------------------------- the processes


@pytest.mark.skipif(shutil.which("ps") is None, reason="ps is not on the PATH")
@pytest.mark.parametrize("name", ["running_processes", "processes_of_ps"])
def test_what_runs_is_told_with_its_parent_and_when_it_began(name):
    running = getattr(processes, name)
    first = running()[os.getpid()]
    child = subprocess.Popen(["sleep", "99"])
    try:
        parent, born = running()[child.pid]
        assert first[0] == os.getppid() and parent == os.getpid() and born
        assert running()[os.getpid()] == first
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert child.pid not in running()  # it has ended, and nobody has fetched it
    finally:
        child.kill()
        child.wait()


def test_a_later_process_of_the_same_number_is_another(monkeypatch):
    running = {10: (1, "a"), 11: (10, "b"), 12: (11, "c")}
    monkeypatch.setattr(processes, "running_processes", lambda: dict(running))
    monkeypatch.setattr(processes, "session_of", lambda pid: 7)
    offspring, sent = processes.Offspring(10), []

    def send_all(pids, number):
        sent.extend(pids)
        for pid in pids:
            running.pop(pid, None)

    monkeypatch.setattr(processes, "send_all", send_all)
    assert sorted(offspring.found) == [11, 12]
    running.update({10: (1, "z"), 11: (1, "y"), 12: (1, "c"), 13: (12, "d")})
    offspring.end()
    assert sent == [12, 13] and not offspring.runs()


@pytest.mark.parametrize("method", ["send", "send_with_data_passthrough"])
@pytest.mark.parametrize(("header", "side"), [("close", "program"), ("keep-alive", "server")])
def test_who_asks_first_for_the_end_of_a_connection_of_h11_has_asked(method, header, side):
    """The server says close, too, as it was asked to."""
    h11, events = pytest.importorskip("h11"), []
    probes = Probes(events.append).install()
    try:
        connection = h11.Connection(h11.CLIENT)
        headers = [("Host", "a"), ("Connection", header)]
        getattr(connection, method)(h11.Request(method="GET", target="/", headers=headers))
        getattr(connection, method)(h11.EndOfMessage())
        connection.receive_data(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        connection.next_event()
    finally:
        probes.remove()
    assert [event["by"] for event in events if event["is"] == "closing"] == [side]


@pytest.mark.parametrize(
    ("error", "answer", "told"),
    [
        ("ConnectionLost", None, True), ("Error", None, True),
        ("ConnectionLost", b"200", False), ("ConnectionDone", None, False),
        ("ConnectionAborted", None, False),  # by the program
    ],
)  # fmt: skip
def test_a_connection_of_twisteds_that_is_lost_before_an_answer_is_refused(error, answer, told):
    methods = {"dataReceived": lambda self, data: None, "connectionLost": lambda self, reason: None}
    wrapper = type("ProtocolWrapper", (), methods)
    values = {"_reason": None, "_tlsConnection": type("Connection", (), {})()}
    kind = type("TLSMemoryBIOProtocol", (wrapper,), values)
    events = []
    probes = Probes(events.append)
    probes.active = True
    tls, number = kind(), probes.number(kind._tlsConnection)
    module = types.SimpleNamespace(TLSMemoryBIOProtocol=kind, ProtocolWrapper=wrapper)
    probed.probe_twisteds_tls(probes, module)
    if answer:
        tls.dataReceived(answer)
    tls.connectionLost(types.SimpleNamespace(value=type(error, (Exception,), {})("gone")))
    noted = [each["h"] for each in events if each["is"] == "rejected"]
    assert noted == ([number] if told else [])
    wrapper().dataReceived(b"")  # of what is no TLS


MAILS = """
class Client:
    def __init__(self, host, ssl_context=None): self.load()
    def load(self): self.frame = look()
class _Hidden(Client): pass
class Other(Client):
    def __init__(self, *hosts): super().__init__(*hosts)
"""


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [("Client", ["self", "host", "ssl_context"]), ("Other", ["self"]), ("_Hidden", None)],
)
def test_a_class_that_loads_when_one_is_made_is_told_with_what_it_takes(
    kind, parameters, monkeypatch
):
    module = types.ModuleType("mails")
    module.look = lambda: sys._getframe(1)
    exec(MAILS, module.__dict__)
    monkeypatch.setitem(sys.modules, "mails", module)
    frames = [getattr(module, kind)("host").frame]
    while frames[-1].f_back.f_globals is module.__dict__:
        frames.append(frames[-1].f_back)
    told = {"name": f"mails.{kind}", "parameters": parameters, "makes": True}
    assert callers.function_called("mails", frames) == (parameters and told)
    assert callers.function_called("mails", frames[:1]) is None  # by a method


# ------------------------------------------------------------------------------ whoever else waits


@pytest.mark.parametrize(
    ("kind", "cancelled", "waits"),
    [("soon", False, True), ("soon", True, False), ("due", False, True), ("due", True, False),
     ("later", False, False), ("", False, False)],
)  # fmt: skip
def test_what_is_cancelled_does_not_wait_for_the_loop(kind, cancelled, waits):
    """A socket that has connected leaves a cancelled callback behind."""

    async def look():
        loop = asyncio.get_running_loop()
        if kind == "soon":
            handle = loop.call_soon(lambda: None)
        elif kind:
            handle = loop.call_later(0 if kind == "due" else 60, lambda: None)
        if kind and cancelled:
            handle.cancel()
        time.sleep(0.002)
        return state.others_wait(loop)

    assert asyncio.run(look()) is waits


def test_before_python_3_7_a_task_is_asked_of_its_class(monkeypatch):
    stack, current_task = callers.CallStack(), asyncio.current_task
    monkeypatch.delattr(asyncio, "current_task")
    monkeypatch.setattr(asyncio, "Task", types.SimpleNamespace(current_task=current_task))

    async def fetch():
        stack.tasks[current_task()] = "program.py:3"
        return stack.line_of_task()

    assert asyncio.run(fetch()) == "program.py:3"


def test_frames_that_cannot_be_read_are_no_reason_for_a_program_to_fail(monkeypatch):
    stack = callers.CallStack()
    monkeypatch.setattr(stack, "kind_of_file", None)
    told = stack.callers(sys._getframe())
    assert told == {"client": None, "through": None, "at": None, "awaits": False}


@pytest.mark.parametrize(("active", "told"), [(True, ["injection"]), (False, [])])
def test_what_the_doctors_own_trials_inject_is_not_told(active, told):
    noted = []
    module = types.SimpleNamespace(inject_into_urllib3=lambda: "injected")
    note = lambda event, where: noted.append(event)  # noqa: E731
    probed.probe_injection(types.SimpleNamespace(note=note, active=active), module)
    assert module.inject_into_urllib3() == "injected" and noted == told
