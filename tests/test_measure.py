"""Real stacks against the real server: verdicts, counters, refusals."""

import pytest
from here import environment

from casebook import places, server, stacks
from casebook.cases import reference_run
from casebook.cases.verdicts_under_load import busy_cores
from casebook.errors import MissingInterpreter, RunFailed, UsageError
from casebook.runs import analysis, measure, run_record

SERIAL = {
    *("stage-2-py27", "stage-2-py37", "stage-3-py37", "stage-3-today", "requests-2.23-py37"),
    *("stage-2-injected-today", "google-auth-2.55.1-today", "toolbelt-x509-today"),
}
VERDICTS = {name: "serial" if name in SERIAL else "concurrent" for name in reference_run.matrix()}
PUBLISHED = {"serial": "slow", "concurrent": "fast"}


def run_of(name, n=10, **more):
    """One run of a stack, each response 0.1 s late."""
    (run,) = measure.measure_runs([name], n=[n], delay_s=0.1, repeats=1, **more)
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
        seen = measure.observe(name, "timeline", n=3, delay_s=0.1, scheme=scheme)
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
        measure.measure_runs(["stage-1-today"], **arguments)


def test_a_stack_without_its_interpreter_falls_back_to_the_reference_and_says_so(no_old_pythons):
    frame = measure.measure(["stage-2-py27", "stage-1-today"], n=10, repeats=1)
    sources = frame.groupby("stack")["source"].unique().str.join(",")
    assert sources.to_dict() == {"stage-2-py27": "reference", "stage-1-today": "live"}
    assert analysis.verdicts(frame)["stage-2-py27"] == "serial"
    seen = measure.observe("stage-2-py27", "profile")
    assert seen.source == "reference"
    assert "do_poll" in set(seen.frame["function"])


def test_a_required_interpreter_that_is_missing_is_a_failure(no_old_pythons, monkeypatch):
    monkeypatch.setenv("CASEBOOK_REQUIRE", "2.7")
    with pytest.raises(MissingInterpreter, match="needs Python 2"):
        measure.measure("stage-2-py27", n=10)


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
        measured = measure.measure_runs([name], n=[10], delay_s=0.1, repeats=many)
    # Noise can hide that a run was concurrent, so that it cannot be told; it never turns one round.
    assert {run.verdict for run in measured} <= {VERDICTS[name], analysis.BETWEEN}
    assert analysis.verdict_of(run_record.frame(measured)) == VERDICTS[name]
