"""What the doctor promises, advises and takes for a silence, on numbers that are written down."""

import types

import pytest
from tls_doctor import advice, command_line, heartbeat, report, rerun
from tls_doctor.basis import BLOCKED, FREE, ITS_OWN, UNSEEN, DoctorError, defaults
from tls_doctor.examination import Examination

# ------------------------------------------------------------------------------------ the promise


def a_run(loads, promised=(), advised="keep-one", **ended):
    """A report of a run whose clients made these loads: client -> (loads, needed)."""
    clients = [
        {"client": None if name == ITS_OWN else name, "loads": number, "needed": needed,
         "kept": False, "contexts": number, "default": number, "sessions": number,
         "connections": number, "closed": {}, "requests": number, "http": True}
        for name, (number, needed) in loads.items()
    ]  # fmt: skip
    counts = {"clients": clients, "loads": sum(row["loads"] for row in clients), "cpu_ms": 9}
    return {
        "counts": counts, "advice": [{"id": advised, "add": ""}], "loop": None,
        "verdicts": {"event loop": UNSEEN},
        "tried": {name: {"then": {"loads": number}} for name, number in dict(promised).items()},
        "ended": dict({"why": None, "raised": None, "status": 0}, **ended),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("now", "kept", "promises"),
    [
        ({"httpx": (1, 1), "urllib3": (1, 1)}, True, [("httpx", 1, 1), ("urllib3", 1, 1)]),
        # One client that kept its promise is not enough.
        ({"httpx": (1, 1), "urllib3": (5, 1)}, False, [("httpx", 1, 1), ("urllib3", 1, 5)]),
        ({"httpx": (5, 1), "urllib3": (5, 1)}, False, [("httpx", 1, 5), ("urllib3", 1, 5)]),
        # Two processes need a load each: more was never promised.
        ({"httpx": (2, 2), "urllib3": (1, 1)}, True, [("httpx", 2, 2), ("urllib3", 1, 1)]),
        # A context that the program makes for the pool of urllib3 counts as one of urllib3's.
        ({"httpx": (1, 1), ITS_OWN: (2, 1)}, False, [("httpx", 1, 1), ("urllib3", 1, 2)]),
    ],
)
def test_a_promise_is_kept_where_each_of_them_is(now, kept, promises):
    first = a_run({"httpx": (6, 1), "urllib3": (6, 1)}, {"httpx": 1, "urllib3": 1})
    again = rerun.run_again(first, lambda changes: a_run(now))
    assert again["changes"] == ["httpx", "urllib3"] and again["kept"] is kept
    assert [(row["client"], row["promised"], row["loads"]) for row in again["promises"]] == promises
    assert again["loads"] == [12, sum(loads for loads, _ in now.values())]


# ------------------------------------------------------------------------------------- the advice


@pytest.mark.parametrize(
    ("loads", "load_ms", "module", "openssl", "is_advised"),
    [
        (5, 15, "ssl", "OpenSSL 3.0.19", True),
        (5, 14, "ssl", "OpenSSL 3.0.19", False),  # 2.8 ms each
        (100, 200, "ssl", "OpenSSL 3.0.19", False),  # many that are cheap
        (4, 100, "ssl", "OpenSSL 3.0.19", False),
        (5, 15, "ssl", "OpenSSL 3.5.4", False),
        (5, 15, "ssl", "OpenSSL 1.1.1", False),
        (5, 15, "OpenSSL.SSL", "OpenSSL 3.0.19", False),  # pyOpenSSL's is another one
    ],
)
def test_another_openssl_is_advised_where_each_load_is_dear(
    loads, load_ms, module, openssl, is_advised
):
    found = Examination(openssl={"ssl": openssl, "pyOpenSSL": "OpenSSL 3.5.4", "loads": openssl})
    row = {"loads": loads, "load_ms": load_ms, "by": [(module, loads)]}
    given = advice.advice_on_openssl(found, [row])
    assert [each["id"] for each in given] == ["another-openssl"] * is_advised


@pytest.mark.parametrize(
    ("python", "client", "is_advised"),
    [("3.7.0", "requests", True), ("3.14.0", "requests", True), ("3.6.9", "requests", False),
     ("2.7.18", "requests", False), ("3.14.0", "httpx", False)],
)  # fmt: skip
def test_a_shared_context_is_advised_where_the_cure_runs(python, client, is_advised):
    given = advice.advice_on_sharing(Examination(python=python, counts={}), [{"client": client}])
    assert [each["id"] for each in given] == ["share-context"] * is_advised


# ----------------------------------------------------------------------------------- the silences


@pytest.mark.parametrize(
    ("silent_s", "used_s", "others_s", "noted_s"),
    [
        (1.0, 0.2, 0.4, 0.8),
        (1.0, 0.2, 0.5, 0.8),
        (1.0, 0.2, 0.6, None),  # it waited for Python's lock, which those had that computed
        (1.0, 0.97, 0.0, None),  # the thread computed
        (1.0, 0.9, 0.0, 0.1),
        (0.04, 0.0, 0.0, None),  # too short
    ],
)
def test_a_silence_is_one_in_which_the_thread_waited_and_others_hardly_computed(
    silent_s, used_s, others_s, noted_s
):
    notes = []
    probes = types.SimpleNamespace(note=lambda what, **values: notes.append((what, values)))
    beats = heartbeat.Heartbeat(probes)
    silence = heartbeat.Silence(7, (10.0, 20.0, 30.0))
    silence.s, silence.last, silence.waiting = silent_s, (10 + used_s, 20 + others_s, 30.0), True
    silence.places = {"short": [0.1, False, "there"], "long": [0.9, False, "here"]}
    beats.silences[1] = silence
    beats.end(1, types.SimpleNamespace(name="asyncio"))
    noted = [] if noted_s is None else [
        ("silence", {"by": "asyncio", "s": noted_s, "waiting": True, "who": "here"})
    ]  # fmt: skip
    assert notes == noted and beats.silences == {}


def test_what_was_imported_meanwhile_is_no_silence():
    beats = heartbeat.Heartbeat(types.SimpleNamespace(note=pytest.fail))
    silence = heartbeat.Silence(7, (0.0, 0.0, 0.0))
    silence.s, silence.places = 1.0, {"place": [1.0, True, "here"]}
    beats.silences[1] = silence
    beats.end(1, types.SimpleNamespace(name="asyncio"))


# ------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("text", "names"), [("loads", ["loads"]), ("blocked,handshakes", ["blocked", "handshakes"])]
)
def test_what_fails_is_what_is_named(text, names):
    options = defaults()
    command_line.take_options(options, ["--fail-on", text])
    assert options["fail_on"] == names


@pytest.mark.parametrize("text", ["weather", "loads,weather", "", "loads,"])
def test_what_cannot_fail_is_refused_also_beside_what_can(text):
    with pytest.raises(DoctorError, match="--fail-on takes what exits with 1"):
        command_line.take_options(defaults(), ["--fail-on", text])


def test_a_process_is_looked_at_for_seconds_and_judged_by_a_share(monkeypatch):
    asked = []
    monkeypatch.setattr(command_line, "attach", lambda *given: asked.append(given))
    monkeypatch.setattr(command_line, "attach_text", lambda _: "")
    options = command_line.parse(["attach", "17", "--seconds", "3", "--share", "40"])
    command_line.attach_to(options)
    assert asked == [(17, 3.0, 40.0)]


def test_what_is_ill_is_red_and_what_is_well_green(monkeypatch):
    for name in ("loop_lines", "load_lines", "http_lines", "advice_lines"):
        monkeypatch.setattr(report, name, lambda _: [])
    told = {
        "program": "p.py", "python": "3.14.0", "openssl": {"ssl": "OpenSSL 3.5.4"}, "http": {},
        "provides": [], "injections": [], "advice": [], "exit_status": 1,
    }  # fmt: skip
    for verdict, colour in ((BLOCKED, 31), (FREE, 32), (UNSEEN, 33)):
        verdicts = {"event loop": verdict, "certificate loads": UNSEEN}
        text = report.text_of(dict(told, verdicts=verdicts), True)
        assert f"\033[1;{colour}m{verdict.upper()}\033[0m" in text
        assert "\033" not in report.text_of(dict(told, verdicts=verdicts), False)


@pytest.mark.parametrize(
    ("failure", "variable", "client", "line", "is_before"),
    [
        ("unable to get local issuer certificate", "", "requests", "requests.get(url, verify=", 0),
        ("self-signed certificate in chain", "/b.pem", "requests", "requests.get(url, verify=", 1),
        ("self signed certificate", "/b.pem", "httpx", "httpx.Client(verify=", 0),
        ("self signed certificate", "/b.pem", None, "context = ssl.create_default", 0),
        ("certificate has expired", "/b.pem", "requests", None, 0),
    ],
)
def test_who_trusts_nobody_that_signed_is_told_whom_it_trusts(
    failure, variable, client, line, is_before, monkeypatch
):
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", variable)
    row = dict(client=client, connections=4, trusts=[["/a/cacert.pem", 4]])
    counts = {"failures": [[failure, 4]], "clients": [row]}
    advised = advice.advice_on_failures(Examination(program="p.py", counts=counts))
    assert [each["id"] for each in advised] == (["untrusted"] if line else [])
    for each in advised:
        assert each["add"].startswith(line) or line in each["add"]
        assert ("REQUESTS_CA_BUNDLE is set" in each["what"]) == bool(is_before)
        assert "/a/cacert.pem" in each["what"]
