"""What follows from what the probes answer, with answers that are written down here.

Nothing is loaded, and no stack runs.
"""

import json
import re
import sys
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from casebook import stacks
from casebook.cases.certificates import (
    complaints,
    connection_costs,
    cores,
    counts,
    in_threads,
    loading,
    reading,
    weights,
)
from casebook.cases.certificates.loading import Task
from casebook.cases.fetching import modes, trust
from casebook.errors import RunFailed
from casebook.laboratory.decisions import ratio
from casebook.laboratory.experiment import never
from casebook.stacks import digests

ALL = len(trust.certificates())

# ---------------------------------------------------------------- loads

#: What the probe says of ten loads: 0.5 s of user, 0.25 s of the system, 2 s by the clock.
TEN = dict(
    user_s=0.5, system_s=0.25, wall_s=2.0, faults=40, beats=30, stall_s=0.125, locks=None,
    contexts=10, loads=10, certificates=ALL,
)  # fmt: skip


def row_of(task, **changed):
    asked = {"tasks": [asdict(task)]}
    answer = {"python": "3", "openssl": "OpenSSL 3.0.2 15 Mar 2022", "results": [TEN | changed]}
    [row] = loading._figures(asked, answer)
    return row


def test_ten_loads_are_told_for_one_of_them_and_the_longest_silence_as_it_was():
    row = row_of(Task(loads=10, watched=True))
    assert (row["user_ms"], row["system_ms"], row["cpu_ms"]) == (50, 25, 75)
    assert (row["wall_ms"], row["faults"], row["beats"]) == (200, 4, 3)
    assert (row["stall_ms"], row["contexts"], row["loads"]) == (125, 10, 10)
    assert (row["release"], row["openssl"]) == ("OpenSSL 3.0.2", "OpenSSL 3.0.2 15 Mar 2022")
    assert (row["asked"], row["certificates"], row["way"]) == (None, ALL, "file")
    unwatched = row_of(Task(loads=10), beats=None, stall_s=None)
    assert unwatched["beats"] is unwatched["stall_ms"] is unwatched["locks"] is None


def test_in_processes_the_contexts_are_those_that_were_asked_for_and_loads_are_not_known():
    row = row_of(Task(loads=10, processes=2), contexts=0, loads=0)
    assert (row["contexts"], row["loads"], row["how"]) == (10, None, "2 processes")
    assert (row["cpu_ms"], row["wall_ms"]) == (75, 200)


def test_locks_are_told_for_a_load_and_where_none_was_counted_there_is_no_measurement():
    assert row_of(replace(loading.COUNTED, loads=4), locks=100)["locks"] == 25
    for none in (0, None):
        with pytest.raises(RunFailed, match="no lock was counted"):
            row_of(loading.COUNTED, locks=none)
    assert row_of(loading.ONE_APART)["locks"] is None  # where nobody counts


@pytest.mark.parametrize(
    ("task", "how", "does"),
    [
        (Task(), "one thread", "file"),
        (Task(threads=10), "10 threads", "file"),
        (Task(processes=5, way="default"), "5 processes", "default"),
        (Task(certificates=0), "one thread", "none"),
        (cores.COMPUTING, "2 processes, computing", "compute"),
        (loading.TEN_APART, "10 threads, locks apart", "file"),
        (loading.ONE_APART, "one thread, locks apart", "file"),
        (loading.COUNTED, "one thread", "file"),
    ],
)
def test_a_task_says_who_loads_and_in_which_way(task, how, does):
    assert (task.manner, task.does) == (how, does)


def test_each_task_has_the_bundle_that_it_asks_for(tmp_path):
    known = trust.certificates()
    bundles = {
        (certificates, copies): Task(certificates=certificates, copies=copies).bundle(tmp_path)
        for certificates in (1, 2, None)
        for copies in (1, 3)
    }
    for (certificates, copies), path in bundles.items():
        assert path.read_text() == "".join(known[:certificates] * copies), (certificates, copies)
    assert len(set(bundles.values())) == 6
    assert Task(certificates=0).bundle(tmp_path) is cores.COMPUTING.bundle(tmp_path) is None


def test_what_is_preloaded_is_part_of_what_made_an_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "tool", lambda name: f"{name} 1.0")
    depends_on = {
        preload: loading._process("stage-1-today", [Task(preload=preload)], preload, tmp_path)[0]
        for preload in loading.PRELOADS
    }
    files = {
        preload: {part.name for part in experiment.depends_on if isinstance(part, Path)}
        for preload, experiment in depends_on.items()
    }
    assert files[""] == {"loading.py"}
    assert files[loading.APART] == {"loading.py", "locks_apart.c"}
    assert files[loading.COUNTER] == {"loading.py", "rwlocks.c"}
    tools = {
        preload: {part.name for part in experiment.depends_on if not isinstance(part, Path)}
        for preload, experiment in depends_on.items()
    }
    assert tools[""] == {"certifi's certificates"}
    assert tools[loading.COUNTER] == {"certifi's certificates", "cc"}
    # Another source is another digest.
    assert (
        loading._source(loading.APART).read_text() != loading._source(loading.COUNTER).read_text()
    )


def test_the_probe_is_told_the_library_of_the_stack_and_how_many_certificates_there_are(tmp_path):
    def told(name, *tasks):
        experiment, stack, asked = loading._process(name, list(tasks), "", tmp_path)
        assert stack == name and asked == {"tasks": [asdict(task) for task in tasks]}
        assert experiment.lacks() == "" and experiment.variables() == {}
        return experiment.tells()

    stock = told("stage-1-today", Task(certificates=3, copies=2), Task(certificates=0))
    assert stock["library"] == "ssl" and not Path(stock["nowhere"]).exists()
    few, none = stock["tasks"]
    assert (few["way"], few["holds"], few["bundle"].name) == ("file", 3, "3x2.pem")
    assert (none["way"], none["holds"], none["bundle"]) == ("none", 0, None)
    assert "pyopenssl" in stacks.get("openssl-3.0-today").packages
    assert told("openssl-3.0-today", Task())["library"] == "pyopenssl"


def test_tasks_with_something_preloaded_are_done_in_another_process(monkeypatch):
    seen = []

    def in_rounds(ways, *_):
        seen.extend((name, asked["tasks"]) for _, name, asked in ways)
        return pd.DataFrame()

    monkeypatch.setattr(loading, "in_rounds", in_rounds)
    tasks = [Task(loads=1), loading.ONE_APART, Task(loads=2), loading.COUNTED]
    loading.measure(["one", "two"], {"one": tasks, "two": tasks[:1]})
    preloads = [(name, [task["preload"] for task in those]) for name, those in seen]
    assert preloads == [
        ("one", ["", ""]), ("one", ["locks_apart"]), ("one", ["rwlocks"]), ("two", [""]),
    ]  # fmt: skip


def test_a_watch_counts_the_beats_between_two_moments_and_the_longest_time_without(monkeypatch):
    monkeypatch.syspath_prepend(str(loading._PROBES))
    monkeypatch.syspath_prepend(str(loading.places.PROBES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "loading", raising=False)
    import loading as probe

    def end(*times):
        watch = probe.Watch.__new__(probe.Watch)
        watch._times, watch._thread = list(times), SimpleNamespace(join=lambda: None)
        return watch.end(1.0, 2.0)

    assert end(0.5, 0.9, 1.25, 1.5, 2.5) == (2, 0.5)  # from the last beat to the end
    assert end(0.5, 1.75, 2.5) == (1, 0.75)  # from the start to the first
    assert end() == (0, 1.0)
    monkeypatch.delitem(sys.modules, "loading")


# ---------------------------------------------------------------- cores


def test_cores_are_processor_time_by_wall_time_of_the_computing_alone():
    frame = pd.DataFrame(
        {
            "repeat": [1, 1, 2],
            "way": ["compute", "file", "compute"],
            "cpu_ms": [30.0, 99.0, 15.0],
            "wall_ms": [20.0, 1.0, 15.0],
        }
    )
    assert cores.busy(frame).to_dict() == {1: 1.5, 2: 1.0}


def test_a_round_counts_from_one_and_a_half_cores_on():
    asked = cores.on_two_cores(ratio("cpu_ms", "ten", "one", by="how", above=1.2))
    rows = [
        row
        for repeat in range(1, 9)
        for row in (
            (repeat, "ten", 3.0 if repeat != 8 else 90.0, 1.0, "file"),
            (repeat, "one", 1.0, 1.0, "file"),
            (repeat, "both", 1.5 if repeat != 8 else 1.49, 1.0, "compute"),
        )
    ]
    frame = pd.DataFrame(rows, columns=["repeat", "how", "cpu_ms", "wall_ms", "way"])
    decided = asked.decide(frame)
    assert (decided.rounds, decided.value) == (7, 3.0)


# ---------------------------------------------------------------- instructions


def test_the_instructions_of_a_load_are_those_beyond_the_idle_process(monkeypatch):
    """Valgrind writes a log for each process; the program says which of them loaded."""

    def output(command, *_):
        assert "--tool=cachegrind" in command and "-S" in command
        [log] = [part.partition("=")[2] for part in command if part.startswith("--log-file=")]
        for pid, refs in ((11, "1,000,000"), (22, "251,000,500"), (33, "9")):
            text = f"==1== D   refs: 77\n=={pid}== I   refs:      {refs}\n"
            Path(log.replace("%p", str(pid))).write_text(text)
        return json.dumps({"openssl": "OpenSSL 4.0.0 1 Apr 2026", "idle": 11, "loading": 22})

    monkeypatch.setattr(counts.commands, "output", output)
    environment = SimpleNamespace(python=Path("/env/bin/python"), stack=SimpleNamespace(name="s"))
    answer = counts._under_valgrind(environment, {})
    assert answer == {"openssl": "OpenSSL 4.0.0 1 Apr 2026", "instructions": 250_000_500}
    assert counts._figures({}, answer)["release"] == "OpenSSL 4.0.0"


def test_a_log_without_a_count_is_no_measurement(tmp_path):
    (tmp_path / "5").write_text("==5== Cachegrind, a high-precision tracing profiler\n")
    with pytest.raises(RunFailed, match="log 5"):
        counts._read(tmp_path / "5")


def test_instructions_are_counted_in_full_mode_and_when_they_are_recorded(monkeypatch):
    counting = counts._counting()
    monkeypatch.setattr(modes, "current", lambda: modes.QUICK)
    assert counting.spares({}) and not replace(counting, spares=never).spares({})
    monkeypatch.setattr(modes, "current", lambda: modes.FULL)
    assert not counting.spares({})
    assert {part.name for part in counting.depends_on} == {
        "counts.py", "valgrind", "certifi's certificates",
    }  # fmt: skip


# ---------------------------------------------------------------- connections with one context


def test_a_connection_costs_its_part_and_the_context_all_of_its_own():
    answer = {
        "openssl": "OpenSSL 3", "handshakes": 4,
        "making": {"loads": 1, "wall_s": 0.02, "cpu_s": 0.01},
        "connecting": {"loads": 5, "wall_s": 0.4, "cpu_s": 0.2},
    }  # fmt: skip
    assert connection_costs._figures({"n": 4, "context": "ssl"}, answer) == {
        "handshakes": 4, "loads_before": 1, "loads": 5, "making_ms": 20, "wall_ms": 100,
        "cpu_ms": 50, "openssl": "OpenSSL 3",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pages", "wrong"),
    [
        ([[200, 0], [200, 1]], None),
        ([[200, 0], [200, 0]], "page 1 came back as status 200, page 0"),
        ([[503, 0], [200, 1]], "page 0 came back as status 503"),
    ],
)
def test_a_wrong_page_is_no_connection(monkeypatch, pages, wrong):
    lab = SimpleNamespace(
        ca_file="ca.pem", url="u", reset=lambda: None, counters=lambda: {"handshakes": 2}
    )
    monkeypatch.setattr(connection_costs, "lab_server", lambda: lab)
    monkeypatch.setattr(connection_costs.trust, "of_name", lambda *_: trust.Trust(True))
    monkeypatch.setattr(
        connection_costs.scripts, "answer_of", lambda *_, **__: {"pages": list(pages)}
    )
    with pytest.raises(RunFailed, match=wrong) if wrong else nullcontext():
        assert connection_costs._run_probe(None, {"n": 2, "context": "ssl"}) == {"handshakes": 2}


# ---------------------------------------------------------------- what contexts weigh


def weighed(contexts, certificates, **kib):
    """Rows of `measure`: (resident, in use) KiB at each step."""
    same = {"stack": "s", "openssl": "o", "source": "live"}
    return [
        same | {"contexts": contexts, "certificates": certificates, "what": what}
        | {"rss_kib": rss, "in_use_kib": in_use}
        for what, (rss, in_use) in kib.items()
    ]  # fmt: skip


def test_a_context_weighs_its_part_of_what_was_added():
    full = dict(
        before=(1000, 100), made=(6000, 3100), freed=(5000, 140), trimmed=(1200, 140),
        one=(1300, 300), again=(1400, 350),
    )  # fmt: skip
    empty = dict(
        before=(1000, 100), made=(1040, 120), freed=(1020, 102), trimmed=(1010, 102),
        one=(1010, 103), again=(1010, 103),
    )  # fmt: skip
    frame = pd.DataFrame(weighed(10, ALL, **full) + weighed(20, 0, **empty))
    first, second = weights.per_context(frame).to_dict("records")
    assert first == {
        "stack": "s", "openssl": "o", "certificates": ALL, "contexts": 10, "source": "live",
        "in_use": 300, "kept": 4, "rss": 500, "rss_freed": 400, "rss_trimmed": 20, "again": 50,
    }  # fmt: skip
    assert (second["in_use"], second["rss"], second["again"]) == (1, 2, 0)


def test_steps_that_are_missing_or_in_another_order_are_no_measurement():
    asked = {"certificates": None, "contexts": 1, "loads": 2}
    steps = [{"what": what, "rss_kib": 1} for what in weights.STEPS]
    answer = {"openssl": "o", "certificates": ALL, "steps": steps}
    rows = weights._figures(asked, answer)
    assert [row["what"] for row in rows] == weights.STEPS
    assert {row["further_loads"] for row in rows} == {2}
    assert {row["certificates"] for row in rows} == {ALL}
    for wrong in (steps[:-1], steps[::-1]):
        with pytest.raises(RunFailed, match="steps are missing"):
            weights._figures(asked, answer | {"steps": wrong})


def test_what_threads_leave_behind_is_counted_from_before_them():
    names = ("what", "rss_kib", "in_use_kib")
    rows = ("before", 100, 40), ("dropped", 900, 70), ("ended", 600, 60), ("trimmed", 150, 45)
    answer = {"peak": 1, "openssl": "OpenSSL 3.0.19",
              "steps": [dict(zip(names, row, strict=True)) for row in rows]}  # fmt: skip
    parameters = in_threads.WAYS["30 threads, one arena"]
    figures = in_threads._figures(parameters, answer)
    assert figures == {
        "how": "30 threads, one arena", "openssl": "OpenSSL 3.0.19", "peak": 1, "in_use_kib": 5,
        "dropped_kib": 800, "ended_kib": 500, "trimmed_kib": 50,
    }  # fmt: skip
    for step in answer["steps"]:
        step["in_use_kib"] = None  # another C library does not say
    assert in_threads._figures(parameters, answer)["in_use_kib"] is None


def test_half_of_the_free_memory_may_be_taken(monkeypatch):
    monkeypatch.setattr(weights, "free_mib", lambda: 100.0)
    weights._look_for_room(100, 512)  # exactly 50 MiB
    with pytest.raises(RunFailed, match="101 contexts would take about 50 MiB"):
        weights._look_for_room(101, 512)


def test_the_memory_that_is_free_is_also_that_of_the_container(monkeypatch, tmp_path):
    monkeypatch.setattr(weights, "_GROUP", tmp_path)
    on_machine = weights.free_mib()
    (tmp_path / "memory.max").write_text(f"{5 << 20}\n")
    (tmp_path / "memory.current").write_text(f"{2 << 20}\n")
    assert weights.free_mib() == 3 < on_machine
    (tmp_path / "memory.max").write_text("max\n")
    assert weights.free_mib() > 3


# ---------------------------------------------------------------- complaints and reading


def test_a_complaint_is_told_apart_from_its_import_and_its_rounds_are_numbered():
    asked = {"complaint": "first", "size": 2, "rounds": 2}
    counted = [(0, 1, 1), (1, 1, 2), (0, 0, 0), (1, 1, 3), (0, 0, 0)]
    rows = [dict(zip(("connections", "contexts", "loads"), row, strict=True)) for row in counted]
    rows = complaints._figures(asked, {"python": "3", "openssl": "o", "rows": rows})
    assert [(row["step"], row["round"]) for row in rows] == [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2)]
    same = {"stack": "s", "complaint": "first", "source": "live", "measured_at": "today"}
    [total] = complaints.totals(pd.DataFrame([same | row for row in rows])).to_dict("records")
    assert total == same | {
        "requests": 4, "connections": 2, "contexts": 2, "loads": 5, "loads_before": 1,
    }  # fmt: skip


def test_bundles_are_bytes_read_by_the_bundles_size(monkeypatch, tmp_path):
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(b"x" * 1000)
    monkeypatch.setattr(reading.trust, "full_bundle", lambda *_: bundle)
    lab = SimpleNamespace(ca_file="ca.pem", url="u")
    monkeypatch.setattr(reading.server, "start", lambda: nullcontext(lab))
    told = []
    monkeypatch.setattr(
        reading.programs, "run", lambda *those: told.append(those) or "[9600, 23300]"
    )
    assert reading.bundles("stage-1-today", "threads") == [10, 23]
    [(stack, _, folder, client, *more)] = told
    assert (stack, client, more) == ("stage-1-today", "threads", ["u", str(bundle), "10", "23"])
    assert re.search(r"fetching.clients$", folder)
