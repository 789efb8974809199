"""The probe inside real stacks, against a real server: what it finds, counts and refuses."""

import functools
import itertools
import json
import re
from types import SimpleNamespace

import pytest
from here import environment, python_in

from casebook import places
from casebook.cases.fetching import clients, server
from casebook.cases.fetching.bench import ask_probe
from casebook.cases.fetching.runs import measure_runs
from casebook.places import PROBES

SERIAL = ["stage-2-py27", "stage-2-py37", "stage-3-py37"]
SERIAL += ["stage-2-injected-today", "stage-3-today"]
CONCURRENT = ["stage-1-py27", "stage-3-py27", "stage-1-py37", "stage-4-py37", "stage-1-today"]
#: Stacks that differ in nothing from `import grequests`, as the client by itself has it.
PLAIN = ["stage-1-py27", "stage-2-py27", "stage-1-py37", "stage-2-py37", "stage-1-today"]
EVENTS = ["connect", "handshake", "send", "wait", "receive"]


#: Which of some files Python cannot read.
UNREADABLE = """
import sys
for path in sys.argv[1:]:
    try:
        compile(open(path).read(), path, "exec")
    except SyntaxError as error:
        print(error)
"""


FOR_PYTHON_3 = re.compile(r"on Python 3\.\d+ and newer")


def test_python_2_can_read_each_probe_that_does_not_say_otherwise():
    files = [*places.PACKAGE.glob("cases/*/probes/*.py"), places.DOCTOR]
    every = {path: path.read_text() for path in files}
    for_it = [path for path, text in every.items() if not FOR_PYTHON_3.search(text)]
    assert len(for_it) > 15
    said = python_in("stage-1-py27", "-c", UNREADABLE, *for_it)
    assert (said.stdout, said.stderr) == ("", "")


def ask(name, target, gather=(), n=5, delay_s=0.1, client="grequests", **other):
    """The probe's answer for this stack; other keys go into its specification."""
    target.reset()
    return ask_probe(environment(name), target, n, delay_s, client, gather=tuple(gather), **other)[
        0
    ]


@pytest.fixture(scope="module")
def seen():
    """seen(stack): one run with what goes together in it, and the server's counters after it."""
    with server.start() as lab:

        @functools.cache
        def once(name):
            answer = all_right(ask(name, lab, ["provenance", "timeline"], delay_s=0.3))
            return SimpleNamespace(answer=answer, server=lab.counters(), **answer)

        yield once


@pytest.fixture(scope="module")
def traced(https):
    """traced(stack): the trace of two requests."""
    return functools.cache(lambda name: all_right(ask(name, https, ["trace"], n=2), n=2)["trace"])


@pytest.fixture(scope="module")
def profiled(https):
    """profiled(stack): one run with a profile beside the other instruments."""
    gather = ["profile", "provenance", "timeline"]
    return functools.cache(lambda name: all_right(ask(name, https, gather)))


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
    patched = "ssl _ssl socket _socket select _select selectors threading subprocess queue".split()
    script = "import sys; sys.path.insert(0, sys.argv[1]); import fetch; print(list(sys.modules))"
    found = python_in(name, "-c", script, PROBES, check=True)
    assert not set(patched) & set(re.findall(r"'([\w.]+)'", found.stdout))


@pytest.mark.parametrize("name", PLAIN)
def test_the_client_by_itself_comes_out_the_same(name, https, seen):
    probe = seen(name).server
    https.reset()
    script = clients.file_of("grequests")
    said = python_in(name, script, https.url, 3, https.ca_file, check=True).stdout
    assert said.startswith("[" + ", ".join(["<Response [200]>"] * 3) + "]\n")
    alone = https.counters()
    assert (probe["peak_in_flight"] == 1) == (alone["peak_in_flight"] == 1) == (name in SERIAL)
    assert alone["handshakes"] == alone["requests"] == 3
    assert probe["handshakes"] == probe["requests"] == 5


# ---------------------------------------------------------------- counters


@pytest.mark.parametrize("name", ["stage-1-py27", "stage-2-py27", "stage-1-today", *SERIAL[-2:]])
def test_one_context_and_one_load_for_each_connection(name, seen):
    counters = seen(name).counters
    assert counters["contexts"] == 5
    assert counters["load_verify_locations"] == 5
    assert counters["default_loads"] == 0


def test_pythons_openssls_and_times(seen):
    found = seen("stage-2-py27")
    assert found.python.startswith("2.7.")
    assert found.openssl.startswith("OpenSSL")
    assert found.openssl_of_pyopenssl.startswith("OpenSSL 1.1.1")
    assert found.wall_s >= 5 * 0.3
    assert 0 < found.user_s < found.wall_s
    assert found.peak_rss_kib > 10_000


# ---------------------------------------------------------------- provenance


INJECTED = "urllib3.contrib.pyopenssl.PyOpenSSLContext"


@pytest.mark.parametrize(
    ("name", "context", "connected"),
    [
        ("stage-1-py27", "gevent._sslgte279.SSLContext", "gevent._sslgte279.SSLSocket"),
        ("stage-2-py27", INJECTED, "urllib3.contrib.pyopenssl.WrappedSocket"),
        ("stage-1-py37", "gevent._ssl3.SSLContext", "gevent._ssl3.SSLSocket"),
        ("stage-2-py37", INJECTED, "urllib3.contrib.pyopenssl.WrappedSocket"),
        ("stage-1-today", "gevent.ssl.SSLContext", "gevent.ssl.SSLSocket"),
        ("stage-2-today", "gevent.ssl.SSLContext", "gevent.ssl.SSLSocket"),
    ],
)
def test_provenance_as_published(name, context, connected, seen):
    answer = seen(name).answer
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
    ("stack", "step", "name", "found"),
    [
        ("patch-select-today", "inject", "select.poll", "select.poll"),
        ("patch-select-today", "patch_select", "select.poll", "gevent.select.poll"),
        ("patch-all-first-today", "patch_all", "select.poll", "gevent.select.poll"),
        ("extract-today", "inject", "urllib3.util.ssl_.SSLContext", INJECTED),
        ("extract-today", "extract", "urllib3.util.ssl_.SSLContext", "gevent.ssl.SSLContext"),
    ],
)
def test_the_three_cures_show(stack, step, name, found, https):
    answer = all_right(ask(stack, https, ["provenance"], n=0), n=0)
    assert names_of(answer, "after " + step)[name] == found
    assert https.counters()["requests"] == 0


@pytest.mark.parametrize(
    ("steps", "context"),
    [(["urllib3"], "ssl.SSLContext"), (["patch_all", "urllib3"], "gevent._sslgte279.SSLContext")],
)
@pytest.mark.parametrize("name", ["stage-1-py27", "stage-2-py27"])
def test_urllib3_alone_as_published(name, steps, context, https):
    answer = all_right(ask(name, https, ["provenance"], n=0, steps=steps), n=0)
    assert names_of(answer, "after urllib3")["urllib3.util.ssl_.SSLContext"] == context


# ---------------------------------------------------------------- timeline


def intervals(answer, event):
    rows = [row for row in answer["timeline"] if row["event"] == event]
    return sorted((row["start_s"], row["end_s"]) for row in rows)


@pytest.mark.parametrize("name", SERIAL + CONCURRENT)
def test_timeline_shows_who_waits_for_whom(name, seen):
    answer = seen(name).answer
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
    waits = intervals(answer, "wait")
    assert max(start for start, _ in waits) < min(end for _, end in waits)


# ---------------------------------------------------------------- profile


def row_of(answer, file, function):
    rows = answer["profile"]
    (row,) = [row for row in rows if row["file"] == file and row["function"] == function]
    return row


def test_the_profile_of_stage_2_ends_in_poll(profiled):
    answer = profiled("stage-2-py27")
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
def test_the_trace_of_a_serial_stack_goes_from_send_to_a_poll_that_blocks(name, traced):
    trace = traced(name)
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
def test_the_trace_of_a_concurrent_stack_goes_to_the_hub(name, traced):
    trace = traced(name)
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
def test_no_path_of_this_machine_comes_out(name, profiled, traced):
    for came in (profiled(name), traced(name)):
        text = json.dumps(came)
        assert not re.search(r'["\s(]/[a-z]', text)
        assert str(environment(name).python.parent.parent) not in text


# ---------------------------------------------------------------- failures


def test_a_step_that_cannot_be_taken_is_a_failure_without_a_page(https):
    for name, kind in (("stage-1-py27", "ImportError"), ("stage-1-today", "ModuleNotFoundError")):
        answer = ask(name, https, steps=["grequests", "inject"])
        assert (answer["failure"]["page"], answer["failure"]["type"]) == (None, kind)
        assert "OpenSSL" in answer["failure"]["message"]
        assert answer["responses"] == []


def test_a_step_that_does_not_exist_is_named(https):
    answer = ask("stage-1-today", https, steps=["grequest"])
    assert "'grequest'" in answer["failure"]["message"]


PATCHED = """import sys; sys.path.append(sys.argv[1]); import steps; steps.take(sys.argv[2])
from gevent import monkey; print(sorted((m, sorted(n)) for m, n in monkey.saved.items()))"""


@pytest.mark.parametrize("name", ["stage-1-py27", "stage-1-py37", "stage-1-today"])
def test_one_step_patches_what_grequests_patches(name):
    said = {
        step: python_in(name, "-Wignore", "-c", PATCHED, PROBES, step, check=True).stdout
        for step in ("patch_as_grequests", "grequests", "patch_all")
    }
    assert said["patch_as_grequests"] == said["grequests"] != said["patch_all"]


# ---------------------------------------------------------------- controls and culprits


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
