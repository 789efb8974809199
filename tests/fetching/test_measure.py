"""Real stacks against the real server: verdicts, counters, refusals."""

import pytest
from here import environment

from casebook import places, stacks
from casebook.cases import reference_run
from casebook.cases.fetching import analysis, modes, phases, run_record, runs, server
from casebook.cases.fetching.verdicts_under_load import busy_cores
from casebook.errors import MissingInterpreter, RunFailed, UsageError

SERIAL = {
    *("stage-2-py27", "stage-2-py37", "stage-3-py37", "stage-3-today", "requests-2.23-py37"),
    *("stage-2-injected-today", "google-auth-2.55.1-today", "toolbelt-x509-today"),
}
VERDICTS = {name: "serial" if name in SERIAL else "concurrent" for name in reference_run.matrix()}
PUBLISHED = {"serial": "slow", "concurrent": "fast"}


def run_of(name, n=10, **more):
    """One run of a stack, each response 0.1 s late; later, if that does not tell on a busy machine.

    Noise can hide concurrency but cannot make it, and the later a response, the less noise counts.
    """
    for delay_s in (0.1, 0.2, 0.4, 0.8):
        (run,) = runs.measure_runs([name], n=[n], delay_s=delay_s, repeats=1, **more)
        if run.verdict != analysis.BETWEEN:
            break
    return run


@pytest.mark.parametrize("name", VERDICTS)
def test_verdict_of_each_stack(name):
    environment(name)
    run = run_of(name)
    assert run.verdict == VERDICTS[name]
    if published := stacks.get(name).says:
        assert PUBLISHED[run.verdict] == published["verdict"]
    assert run.ok == 10
    assert run.counters["requests"] == run.counters["handshakes"] == 10
    if run.verdict == "serial":
        assert run.counters["peak_in_flight"] == 1
        # The event loop stood still for one delay after another.
        assert run.counters["longest_stall_s"] >= 0.1


# The toolbelt's adapter makes a context for each session, also where no handshake comes.
@pytest.mark.parametrize(
    "name", [name for name in VERDICTS if name in SERIAL - {"toolbelt-x509-today"}]
)
def test_over_plain_http_nothing_is_slow(name):
    environment(name)
    run = run_of(name, scheme="http")
    assert run.verdict == "concurrent" and run.counters["peak_in_flight"] > 1
    for counter in ("handshakes", "contexts", "load_verify_locations"):
        assert run.counters[counter] == 0


def test_the_heartbeat_runs_during_a_wait_only_where_the_wait_leaves_the_loop_free():
    ways = {("stage-1-today", "https"): True, ("stage-2-injected-today", "https"): False}
    ways[("stage-2-injected-today", "http")] = True
    for (name, scheme), free in ways.items():
        seen = runs.observe(name, "timeline", n=3, delay_s=0.1, scheme=scheme)
        assert (analysis.beats_while_waiting(seen) > 0) == free, (name, scheme)


def test_requests_one_at_a_time_is_serial_on_any_stack():
    run = run_of("stage-1-today", n=3, client="requests")
    assert run.verdict == "serial"
    assert run.counters["peak_in_flight"] == 1
    assert run.counters["longest_stall_s"] is None


def test_requests_before_grequests_is_an_error_and_no_timing():
    with pytest.raises(RunFailed, match="RecursionError"):
        run_of("requests-first-today", n=3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (dict(n=[0]), "n is 0"),
        (dict(n=[6000]), "choose 1 to"),
        (dict(delay_s=-1), "delay is -1"),
        (dict(delay_s=float("nan")), "delay is nan"),
        (dict(delay_s=server.MAX_DELAY_S + 1), "delay is"),
        (dict(repeats=0), "repeats is 0"),
        (dict(client="curl"), "client is 'curl'"),
        (dict(scheme="ftp"), "scheme is 'ftp'; choose one of: https"),
        (dict(trust="blind"), "trust is 'blind'; .* off-hidden"),
        (dict(trust="bundle", scheme="http"), "'bundle' means nothing over http: choose https"),
    ],
)
def test_parameters_out_of_range_are_refused(arguments, said):
    with pytest.raises(UsageError, match=said):
        runs.measure_runs(["stage-1-today"], **arguments)


def test_a_stack_without_its_interpreter_falls_back_to_the_reference_and_says_so(no_old_pythons):
    frame = runs.measure(["stage-2-py27", "stage-1-today"], n=10, repeats=1)
    sources = frame.groupby("stack")["source"].unique().str.join(",")
    assert sources.to_dict() == {"stage-2-py27": "reference", "stage-1-today": "live"}
    assert analysis.verdicts(frame)["stage-2-py27"] == "serial"
    seen = runs.observe("stage-2-py27", "profile")
    assert seen.source == "reference"
    assert "do_poll" in set(seen.frame["function"])


def test_a_required_interpreter_that_is_missing_is_a_failure(no_old_pythons, monkeypatch):
    monkeypatch.setenv("CASEBOOK_REQUIRE", "2.7")
    with pytest.raises(MissingInterpreter, match="needs Python 2"):
        runs.measure("stage-2-py27", n=10)


def test_a_build_reuses_a_measurement_and_a_reader_measures_anew(monkeypatch, tmp_path):
    monkeypatch.setattr(places, "RUNS", tmp_path)
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    first = run_of("stage-1-today", n=3)
    assert run_of("stage-1-today", n=3) == first
    assert run_of("stage-1-today", n=4).wall_s != first.wall_s
    monkeypatch.delenv("CASEBOOK_BUILD")
    assert run_of("stage-1-today", n=3).wall_s != first.wall_s


@pytest.mark.parametrize("name", ["stage-2-injected-today", "stage-1-today"])
@pytest.mark.parametrize("many", [10, pytest.param(100, marks=pytest.mark.nightly)])
def test_verdicts_on_a_busy_machine_are_all_right(name, many):
    with busy_cores(True):
        measured = runs.measure_runs([name], n=[10], delay_s=0.1, repeats=many)
    # Noise can hide that a run was concurrent, so that it cannot be told; it never turns one round.
    assert {run.verdict for run in measured} <= {VERDICTS[name], analysis.BETWEEN}
    assert analysis.verdict_of(run_record.frame(measured)) == VERDICTS[name]


@pytest.mark.parametrize("name", ["cured-today", "requests-2.34.2-today"])
def test_a_timeline_of_a_cured_program_shows_it_cured(name):
    """The instrument itself does not keep the cure from sharing, and sees all of its handshakes."""
    seen = runs.observe(name, "timeline", n=5, delay_s=0.1, trust="bundle")
    loads = seen.answer["counters"]["load_verify_locations"]
    assert loads == (1 if name == "cured-today" else 5)
    begun = seen.frame[seen.frame["event"].isin(["connect", "handshake"])]
    assert sorted(begun.groupby("event")["page"].apply(sorted)) == [[0, 1, 2, 3, 4]] * 2


def test_a_timeline_of_another_client_is_not_recorded(no_old_pythons):
    assert runs.observe("stage-1-py37", "timeline", n=5).source == "reference"
    for other in (dict(client="requests"), dict(trust="bundle")):
        with pytest.raises(MissingInterpreter):
            runs.observe("stage-1-py37", "timeline", n=5, **other)
    # Over plain HTTP it is: the explorer shows it, with other numbers of requests.
    over_http = runs.observe("stage-2-py37", "timeline", n=5, scheme="http")
    assert over_http.n in (3, 10) and over_http.instead.endswith("instead of 5")
    assert phases.most_waiting(over_http.frame) > 1  # over HTTPS it is one at a time


def test_more_is_asked_only_of_what_is_concurrent_in_its_own_way():
    """One stack, serial over HTTPS and concurrent over HTTP: the larger size is for the second."""
    mode = modes.Mode("own", 0.5, ns=(6,), ns_if_concurrent=(8,), repeats=1, crowd_ns=())
    schemes = ("https", "http")
    both = runs.measure_runs(["stage-2-injected-today"], scheme=schemes, mode=mode)
    found = {(run.scheme, run.n): run.verdict for run in both}
    serial, concurrent = analysis.SERIAL, analysis.CONCURRENT
    assert found == {("https", 6): serial, ("http", 6): concurrent, ("http", 8): concurrent}


@pytest.mark.parametrize("twice", [{}, {"client": ["loop", "requests"]}, {"n": [2, 2]}])
def test_what_is_asked_for_twice_is_measured_once_and_stands_once(twice):
    asked = {"n": 2, "delay_s": 0, "repeats": 1, "client": "requests"} | twice
    assert len(runs.measure(["stage-1-today", "stage-1-today"], **asked)) == 1


def test_what_is_asked_for_twice_is_recorded_once(no_old_pythons):
    frame = runs.measure(["stage-1-py37"] * 2, n=10, delay_s=0.1, client=[None, "grequests"])
    assert frame["source"].eq("reference").all() and not frame.duplicated(["n", "repeat"]).any()
