"""The probe inside real stacks, against a real server: what it finds, counts and refuses."""

import itertools
import json
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from casebook import clients, server, stacks
from casebook.runs.bench import PROBES, ask_probe
from casebook.runs.measure import measure_runs
from casebook.stacks import environments

SERIAL = [
    "stage-2-py27",
    "stage-2-py37",
    "stage-3-py37",
    "stage-2-injected-today",
    "stage-3-today",
]
CONCURRENT = ["stage-1-py27", "stage-3-py27", "stage-1-py37", "stage-4-py37", "stage-1-today"]
#: Stacks that differ in nothing from `import grequests`, as the client by itself has it.
PLAIN = ["stage-1-py27", "stage-2-py27", "stage-1-py37", "stage-2-py37", "stage-1-today"]
EVENTS = ["connect", "handshake", "send", "wait", "receive"]


@pytest.fixture(scope="module")
def https():
    with server.start() as lab:
        yield lab


@pytest.fixture(scope="module")
def http():
    with server.start("http") as lab:
        yield lab


def environment_of(name):
    stack = stacks.get(name)
    if environments.find_interpreter(stack.python) is None:
        assert stack.python not in environments.required()
        pytest.skip(f"no Python {stack.python} here")
    return environments.ensure(stack)


def ask(name, target, gather=(), n=5, delay_s=0.1, client="grequests", **other):
    """The probe's answer for this stack; other keys go into its specification."""
    environment = environment_of(name)
    target.reset()
    return ask_probe(environment, target, n, delay_s, client, tuple(gather), **other)[0]


def all_right(answer, n=5):
    assert answer["failure"] is None
    rows = [{"page": page, "status": 200, "got_page": page} for page in range(n)]
    assert answer["responses"] == rows
    return answer


def names_of(answer, step):
    return {row["name"]: row["class"] for row in answer["provenance"] if row["step"] == step}


# ---------------------------------------------------------------- it changes nothing


@pytest.mark.parametrize("name", ["stage-1-py27", "stage-1-py37", "stage-1-today"])
def test_importing_the_probe_imports_nothing_that_gevent_patches(name):
    environment = environment_of(name)
    patched = "ssl _ssl socket _socket select _select selectors threading subprocess queue".split()
    script = "import sys; sys.path.insert(0, sys.argv[1]); import fetch; print(list(sys.modules))"
    found = subprocess.run(
        [environment.python, "-c", script, PROBES],
        env=environments.clean_environ(environment),
        capture_output=True,
        text=True,
        check=True,
    )
    assert not set(patched) & set(re.findall(r"'([\w.]+)'", found.stdout))


@pytest.mark.parametrize("name", PLAIN)
def test_the_client_by_itself_comes_out_the_same(name, https):
    environment = environment_of(name)
    all_right(ask(name, https, n=3), n=3)
    probe = https.counters()
    https.reset()
    said = subprocess.run(
        [environment.python, clients.file_of("grequests"), https.url, "3", https.ca_file],
        env=environments.clean_environ(environment),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith("[" + ", ".join(["<Response [200]>"] * 3) + "]\n")
    script = https.counters()
    assert (probe["peak_in_flight"] == 1) == (script["peak_in_flight"] == 1) == (name in SERIAL)
    assert probe["handshakes"] == script["handshakes"] == 3
    assert probe["requests"] == script["requests"] == 3


def test_nothing_is_left_beside_the_probes(https):
    before = sorted(PROBES.rglob("*"))
    environment = environment_of("stage-1-today")
    environ = environments.clean_environ(environment)
    del environ["PYTHONDONTWRITEBYTECODE"]
    spec = {"client": str(clients.file_of("grequests")), "steps": ["grequests"], "n": 1}
    spec |= {"url": https.url, "delay_s": 0, "ca_file": str(https.ca_file)}
    subprocess.run(
        [environment.python, PROBES / "fetch.py"],
        env=environ,
        input=json.dumps(spec),
        text=True,
        check=True,
        capture_output=True,
    )
    assert sorted([*PROBES.rglob("*"), *clients.FOLDER.glob("*.pyc")]) == before


# ---------------------------------------------------------------- counters


@pytest.mark.parametrize("name", ["stage-1-py27", "stage-2-py27", "stage-1-today", *SERIAL[-2:]])
def test_one_context_and_one_load_for_each_connection(name, https):
    counters = all_right(ask(name, https))["counters"]
    assert counters["contexts"] == 5
    assert counters["load_verify_locations"] == 5
    assert counters["default_loads"] == 0


def test_without_verification_the_default_certificates_are_loaded_all_the_same(https):
    counters = all_right(ask("stage-1-today", https, verify=False))["counters"]
    assert counters["default_loads"] == 5
    assert counters["load_verify_locations"] == 0


@pytest.mark.parametrize("name", SERIAL)
def test_the_loop_stands_still_while_a_serial_stack_waits(name, https):
    answer = all_right(ask(name, https, delay_s=0.3))
    assert answer["counters"]["longest_stall_s"] >= 0.28
    assert https.counters()["peak_in_flight"] == 1


def test_without_gevent_there_is_no_loop_to_stand_still(https):
    answer = all_right(ask("stage-2-py37", https, client="requests"))
    assert answer["counters"]["longest_stall_s"] is None
    assert https.counters()["peak_in_flight"] == 1


def test_pythons_openssls_and_times(https):
    answer = all_right(ask("stage-2-py27", https))
    assert answer["python"].startswith("2.7.")
    assert answer["openssl"].startswith("OpenSSL")
    assert answer["openssl_of_pyopenssl"].startswith("OpenSSL 1.1.1")
    assert answer["wall_s"] >= 0.5
    assert 0 < answer["user_s"] < answer["wall_s"]
    assert answer["peak_rss_kib"] > 10_000


# ---------------------------------------------------------------- provenance


@pytest.mark.parametrize(
    ("name", "context", "connected"),
    [
        ("stage-1-py27", "gevent._sslgte279.SSLContext", "gevent._sslgte279.SSLSocket"),
        (
            "stage-2-py27",
            "urllib3.contrib.pyopenssl.PyOpenSSLContext",
            "urllib3.contrib.pyopenssl.WrappedSocket",
        ),
        ("stage-1-py37", "gevent._ssl3.SSLContext", "gevent._ssl3.SSLSocket"),
        (
            "stage-2-py37",
            "urllib3.contrib.pyopenssl.PyOpenSSLContext",
            "urllib3.contrib.pyopenssl.WrappedSocket",
        ),
        ("stage-1-today", "gevent.ssl.SSLContext", "gevent.ssl.SSLSocket"),
        ("stage-2-today", "gevent.ssl.SSLContext", "gevent.ssl.SSLSocket"),
    ],
)
def test_provenance_as_published(name, context, connected, https):
    answer = all_right(ask(name, https, ["provenance"]))
    assert set(names_of(answer, "start").values()) == {None}
    after = names_of(answer, "after grequests")
    assert after["urllib3.util.ssl_.SSLContext"] == context
    assert after["ssl.SSLContext"].startswith("gevent.")
    assert after["socket.socket"].startswith("gevent._socket")
    assert after["select.poll"] == "select.poll"  # grequests leaves select out
    end = names_of(answer, "connected")
    assert end["connected socket"] == connected
    if "pyopenssl" in context:
        assert end["urllib3.util.wait.wait_for_socket"] == "urllib3.util.wait.poll_wait_for_socket"
    files = {row["class"]: row["module_file"] for row in answer["provenance"]}
    assert files[connected] == connected.rpartition(".")[0].replace(".", "/") + ".py"


@pytest.mark.parametrize(
    ("steps", "context"),
    [(["urllib3"], "ssl.SSLContext"), (["patch_all", "urllib3"], "gevent._sslgte279.SSLContext")],
)
@pytest.mark.parametrize("name", ["stage-1-py27", "stage-2-py27"])
def test_urllib3_alone_as_published(name, steps, context, https):
    answer = all_right(ask(name, https, ["provenance"], n=0, steps=steps), n=0)
    assert names_of(answer, "after urllib3")["urllib3.util.ssl_.SSLContext"] == context
    assert https.counters()["requests"] == 0


def test_the_three_cures_show(https):
    patched = ask("patch-select-today", https, ["provenance"], n=1)
    assert names_of(patched, "after inject")["select.poll"] == "select.poll"
    assert names_of(patched, "after patch_select")["select.poll"] == "gevent.select.poll"
    first = ask("patch-all-first-today", https, ["provenance"], n=1)
    assert names_of(first, "after patch_all")["select.poll"] == "gevent.select.poll"
    extracted = ask("extract-today", https, ["provenance"], n=1)
    name = "urllib3.util.ssl_.SSLContext"
    assert names_of(extracted, "after inject")[name].endswith("PyOpenSSLContext")
    assert names_of(extracted, "after extract")[name] == "gevent.ssl.SSLContext"


# ---------------------------------------------------------------- timeline


def intervals(answer, event):
    rows = [row for row in answer["timeline"] if row["event"] == event]
    return sorted((row["start_s"], row["end_s"]) for row in rows)


@pytest.mark.parametrize("name", SERIAL + CONCURRENT)
def test_timeline_shows_who_waits_for_whom(name, https):
    answer = all_right(ask(name, https, ["timeline"], delay_s=0.1 if name in SERIAL else 0.3))
    for page in range(5):
        rows = [row for row in answer["timeline"] if row["page"] == page]
        rows.sort(key=lambda row: row["start_s"])
        assert [row["event"] for row in rows] == EVENTS
        assert all(a["end_s"] <= b["start_s"] for a, b in itertools.pairwise(rows))
    waits, receives = intervals(answer, "wait"), intervals(answer, "receive")
    if name in SERIAL:  # send, block, receive, send, block, receive
        turns = sorted(waits + receives)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(turns))
    else:  # send, send, ..., receive, receive
        assert max(start for start, _ in waits) < min(end for _, end in waits)
        assert max(end for _, end in intervals(answer, "send")) < min(receives)[0]
    # The loop beats while concurrent stacks wait, and not at all in the middle of a serial wait.
    beats = answer["heartbeats"]
    start, end = waits[0]
    assert any(start < beat < end for beat in beats) == (name not in SERIAL)


def test_timeline_over_plain_http_has_no_handshake(http):
    answer = all_right(ask("stage-2-py27", http, ["timeline"]))
    assert {row["event"] for row in answer["timeline"]} == set(EVENTS) - {"handshake"}
    assert not intervals(answer, "handshake")
    waits = intervals(answer, "wait")
    assert max(start for start, _ in waits) < min(end for _, end in waits)


# ---------------------------------------------------------------- profile


def row_of(answer, file, function):
    rows = answer["profile"]
    (row,) = [row for row in rows if row["file"] == file and row["function"] == function]
    return row


def test_the_profile_of_stage_2_ends_in_poll(https):
    answer = all_right(ask("stage-2-py27", https, ["profile"]))
    poll = row_of(answer, "urllib3/util/wait.py", "do_poll")
    assert poll["nc"] >= 5
    assert poll["line"] == 99
    assert [caller[2] for caller in poll["callers"]] == ["_retry_on_intr"]
    recv = row_of(answer, "urllib3/contrib/pyopenssl.py", "recv")
    assert recv["cc"] == 5
    assert recv["nc"] >= 10  # published: 20/10, it calls itself again after each wait
    assert all(caller[3] <= caller[4] for caller in recv["callers"])
    assert poll["ct"] > 0.9 * answer["wall_s"] - 0.1


def test_the_profile_of_stage_1_has_one_recv_that_never_ended(https):
    answer = all_right(ask("stage-1-py27", https, ["profile"]))
    recv = row_of(answer, "gevent/_sslgte279.py", "recv")
    assert (recv["nc"], recv["cc"]) == (5, 1)  # published: 10/1
    assert not [row for row in answer["profile"] if row["function"] == "do_poll"]


# ---------------------------------------------------------------- trace


def greenlet_of_poll(trace):
    return next(r["greenlet"] for r in trace if (r["function"], r["event"]) == ("poll", "c_call"))


@pytest.mark.parametrize("name", SERIAL)
def test_the_trace_of_a_serial_stack_goes_from_send_to_a_poll_that_blocks(name, https):
    trace = all_right(ask(name, https, ["trace"], n=2), n=2)["trace"]
    mine = greenlet_of_poll(trace)
    steps = [row["function"] for row in trace if row["greenlet"] == mine]
    send, read = steps.index("SSL_write"), steps.index("SSL_read")
    poll = steps.index("poll", read)
    assert send < read < steps.index("wait_for_read", read) < poll
    # Nobody else runs between the call of poll and its return.
    calls = [i for i, row in enumerate(trace) if row["function"] == "poll"]
    for call in calls:
        if trace[call]["event"] == "c_call":
            assert trace[call + 1]["event"] == "c_return"
            assert trace[call + 1]["depth"] == trace[call]["depth"]


@pytest.mark.parametrize("name", ["stage-1-py27", "stage-1-py37", "stage-1-today"])
def test_the_trace_of_a_concurrent_stack_goes_to_the_hub(name, https):
    trace = all_right(ask(name, https, ["trace"], n=2), n=2)["trace"]
    assert not [row for row in trace if row["function"] == "poll"]
    read = next(
        i
        for i, row in enumerate(trace)
        if row["function"] == "read" and row["event"] == "c_call" and "ssl" in row["file"]
    )
    switch = next(row for row in trace[read:] if row["event"] == "switch")
    assert switch["greenlet"] == -1


def test_the_trace_is_bounded(https):
    trace = all_right(ask("stage-1-today", https, ["trace"], trace_limit=30))["trace"]
    assert len(trace) == 31
    assert trace[-1]["event"] == "limit"


@pytest.mark.parametrize("name", ["stage-2-py27", "stage-2-injected-today"])
def test_no_path_of_this_machine_comes_out(name, https):
    gathered = ["provenance", "profile", "timeline"]
    for gather in (gathered, ["trace"]):
        text = json.dumps(all_right(ask(name, https, gather, n=2), n=2))
        assert not re.search(r'["\s(]/[a-z]', text)
        assert str(environment_of(name).python.parent.parent) not in text


# ---------------------------------------------------------------- failures


def test_requests_first_fails_by_recursion(https):
    answer = ask("requests-first-today", https)
    assert answer["failure"]["type"] == "RecursionError"
    assert answer["failure"]["page"] == 0
    assert [row["status"] for row in answer["responses"]] == [None] * 5
    assert https.counters()["requests"] == 0


def test_a_step_that_cannot_be_taken_is_a_failure_without_a_page(https):
    for name, kind in (("stage-1-py27", "ImportError"), ("stage-1-today", "ModuleNotFoundError")):
        answer = ask(name, https, steps=["grequests", "inject"])
        assert (answer["failure"]["page"], answer["failure"]["type"]) == (None, kind)
        assert "OpenSSL" in answer["failure"]["message"]
        assert answer["responses"] == []


def test_a_step_that_does_not_exist_is_named(https):
    answer = ask("stage-1-today", https, steps=["grequest"])
    assert "'grequest'" in answer["failure"]["message"]


class Wrong(BaseHTTPRequestHandler):
    """Right answers, except: page 1 is not found at /a, page 2 gets page 7's answer at /b."""

    def do_GET(self):
        page = int(self.path.rpartition("=")[2])
        missing = self.path.startswith("/a") and page == 1
        if self.path.startswith("/b") and page == 2:
            page = 7
        body = json.dumps({"args": {"page": str(page)}}).encode()
        self.send_response(404 if missing else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def wrong_url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Wrong)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", ["stage-1-py27", "stage-1-today"])
@pytest.mark.parametrize("client", ["grequests", "requests"])
def test_wrong_responses_are_named(name, client, http, wrong_url):
    status = ask(name, http, client=client, url=wrong_url + "/a")
    assert status["failure"]["page"] == 1
    assert status["failure"]["type"] == "WrongStatus"
    assert "404" in status["failure"]["message"]
    page = ask(name, http, client=client, url=wrong_url + "/b")
    assert page["failure"]["page"] == 2
    assert page["failure"]["message"] == "asked for page 2, got 7"


@pytest.mark.parametrize("name", ["stage-2-py27", "stage-1-today"])
def test_an_untrusted_server_is_a_failure_that_says_so(name, https):
    answer = ask(name, https, ca_file=None)
    assert answer["failure"]["page"] == 0
    assert "verify failed" in answer["failure"]["message"]


PATCHED = """import sys; sys.path.append(sys.argv[1]); import steps; steps.take(sys.argv[2])
from gevent import monkey; print(sorted((m, sorted(n)) for m, n in monkey.saved.items()))"""


@pytest.mark.parametrize("name", ["stage-1-py27", "stage-1-py37", "stage-1-today"])
def test_one_step_patches_what_grequests_patches(name):
    environment = environment_of(name)
    clean = environments.clean_environ(environment)
    said = {
        step: subprocess.check_output(
            [environment.python, "-Wignore", "-c", PATCHED, PROBES, step], env=clean
        )
        for step in ("patch_as_grequests", "grequests", "patch_all")
    }
    assert said["patch_as_grequests"] == said["grequests"] != said["patch_all"]


# ---------------------------------------------------------------- controls and culprits


@pytest.mark.parametrize("name", SERIAL)
def test_over_plain_http_nothing_is_serial(name, http):
    counters = all_right(ask(name, http))["counters"]
    assert http.counters()["peak_in_flight"] > 1
    assert (counters["contexts"], counters["load_verify_locations"]) == (0, 0)


@pytest.mark.parametrize("name", ["google-auth-2.55.1-today", "toolbelt-x509-today"])
def test_packages_that_still_set_it_off(name, https):
    answer = all_right(ask(name, https, ["provenance"]))
    assert https.counters()["peak_in_flight"] == 1
    end = names_of(answer, "connected")
    # The toolbelt imports urllib3 under requests' old name for it: a second copy of the module.
    assert end["connected socket"].endswith("urllib3.contrib.pyopenssl.WrappedSocket")
    # google-auth injects for everybody, the toolbelt only for its own sessions.
    injected = end["urllib3.util.ssl_.SSLContext"].endswith("PyOpenSSLContext")
    assert injected == name.startswith("google-auth")
    control = ask(name, https, steps=["grequests"])
    assert control["failure"] is None
    assert https.counters()["peak_in_flight"] > 1


def test_peak_memory_is_the_probes_own_and_not_its_starters():
    ballast = bytearray(400 << 20)  # ru_maxrss would pass this on to the probe
    ballast[:: 1 << 12] = b"x" * len(ballast[:: 1 << 12])
    (run,) = measure_runs(["stage-1-today"], n=[3], delay_s=0.1, repeats=1)
    assert 10_000 < run.peak_rss_kib < 200_000
