"""The store: names of measurements, what is asked, what has changed, and what a reader meets."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from casebook import places, spans, stacks
from casebook.errors import NotInFile, RunFailed, ServerFailed, VisitFailed
from casebook.laboratory import conditions, measurements
from casebook.laboratory.measurements import Using, changed_since, key_of, question_of
from casebook.stacks import environments

STACK = stacks.get("stage-2-py37")

pytestmark = pytest.mark.usefixtures("locks_of_our_own")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty store, which a build reads."""
    monkeypatch.setattr(places, "RUNS", tmp_path / "store" / "runs")
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    return tmp_path / "store" / "runs"


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What environments of stacks hold and declare: no environment is made here."""
    has = {"holds": "h1", "declared": {"A": "1"}}
    monkeypatch.setattr(environments, "fingerprint", lambda stack: stack.name and has["holds"])
    monkeypatch.setattr(environments, "declared", lambda stack: stack.name and has["declared"])
    return has


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    path = tmp_path / "probe.py"
    path.write_text("x = 1\n")
    return path


def test_a_key_changes_with_each_thing_that_made_the_answer(holding, probe, monkeypatch):
    """One after the other, so that none of them stands for another."""
    other = probe.with_name("other.py")
    other.write_text("y = 1\n")

    def key() -> str:
        return key_of([probe, other], "case", STACK, {"n": 3}, 1, Using("go", "1.22"))

    first, changed = key(), []
    assert key() == first
    probe.write_text("x = 2\n")
    changed.append(key())
    other.write_text("y = 2\n")
    changed.append(key())
    holding["holds"] = "h2"
    changed.append(key())
    holding["declared"] = {"A": "2"}
    changed.append(key())
    monkeypatch.setattr(measurements, "SCHEMA", measurements.SCHEMA + 1)
    changed.append(key())
    assert len({first, *changed}) == 6
    of = ("case", STACK, {"n": 3}, 1, Using("go", "1.22"))
    without = [
        key_of([probe], *of),
        key_of([probe, other], "other case", *of[1:]),
        key_of([probe, other], "case", replace(STACK, name="another"), *of[2:]),
        key_of([probe, other], "case", replace(STACK, steps=STACK.steps[:-1]), *of[2:]),
        key_of([probe, other], "case", replace(STACK, patch="x.patch"), *of[2:]),
        key_of([probe, other], "case", STACK, {"n": 4}, *of[3:]),
        key_of([probe, other], "case", STACK, {"n": 3}, 2, of[4]),
        key_of([probe, other], "case", STACK, {"n": 3}, 1, Using("go", "1.23")),
        key_of([probe, other], "case", STACK, {"n": 3}, 1),
    ]
    assert len({key_of([probe, other], *of), *without}) == 1 + len(without)


def test_a_key_changes_with_what_runs_every_script(holding, probe, monkeypatch):
    first = key_of([probe], 1)
    monkeypatch.setattr(measurements.digests, "files", lambda *modules: [])
    assert key_of([probe], 1) != first


def test_a_key_says_what_it_depends_on(holding, probe):
    key = key_of([probe, places.PACKAGE / "words.py"], STACK, Using("go", "1.22"), 3)
    assert sorted(key.depends_on) == sorted([
        "probe.py", "words.py", "laboratory/scripts.py", "stacks/commands.py", "go",
        "the environment of stage-2-py37", "the variables of stage-2-py37",
    ])  # fmt: skip
    assert key.depends_on["the environment of stage-2-py37"] == "h1"
    assert key.depends_on["probe.py"] == measurements.digests.digest(probe)
    assert key.depends_on["go"] == measurements.digests.digest("1.22")
    # A version may only be known where it can be measured.
    asked = key_of([probe, places.PACKAGE / "words.py"], STACK, Using("go", lambda: "1.22"), 3)
    assert asked == key and asked.depends_on == key.depends_on


def test_a_question_is_the_same_on_every_machine(holding, probe):
    key = key_of([probe], "case", STACK, {"n": 3}, (1, 2), Using("go", "1.22"))
    asked = ["probe", "case", ["stage-2-py37", *STACK.steps], {"n": 3}, [1, 2]]
    assert key.question == asked == question_of(probe, "case", STACK, {"n": 3}, (1, 2))
    holding["holds"], holding["declared"] = "of another machine", {}
    again = key_of([probe], "case", STACK, {"n": 3}, (1, 2), Using("go", "1.23"))
    assert again.question_digest == key.question_digest and again != key
    assert key_of([probe], "case", STACK, {"n": 4}, (1, 2)).question_digest != key.question_digest


def test_what_has_changed_since_an_answer_is_named(holding, runs, probe):
    key = key_of([probe], STACK, Using("go", "1.22"), 3)
    assert changed_since(key) == []  # it was never asked
    measurements.save(key.name, {"n": 1}, key)
    assert changed_since(key) == []
    probe.write_text("x = 2\n")
    holding["holds"] = "h2"
    holding["declared"] = {"A": "2"}
    names = ["probe.py", "the environment of stage-2-py37", "the variables of stage-2-py37"]
    assert changed_since(key_of([probe], STACK, Using("go", "1.22"), 3)) == names
    # What is no part of it any more has changed, and so has what is new.
    assert changed_since(key_of([probe], STACK, Using("curl", "8"), 3)) == [
        "curl", "go", *names,
    ]  # fmt: skip
    measurements._note_of(key).write_text("{half a no")
    assert changed_since(key) == []


def test_what_is_stored_is_read_in_a_build_alone(runs, monkeypatch):
    measurements.save("k", {"n": 1}, None)
    assert measurements.load("k") == {"n": 1}
    assert measurements.load("another") is None
    monkeypatch.setenv("CASEBOOK_BUILD", "0")
    assert measurements.load("k") is None
    monkeypatch.delenv("CASEBOOK_BUILD")
    assert measurements.load("k") is None


def test_half_an_answer_is_none_and_so_is_a_failure(runs, holding, probe):
    key = key_of([probe], 1)
    measurements.save(key.name, {"n": 1}, key)
    assert json.loads((runs / f"{key.name}.json").read_text()) == {"n": 1, "asked": ["probe", 1]}
    assert measurements.load(key.name) == {"n": 1}  # the question is for machine files
    (runs / "half.json").write_text('{"n": 1')
    assert measurements.load("half") is None
    measurements.save("bad", {"failed": ["RunFailed", "why"], "n": 1})
    assert measurements.load("bad") is None


def test_a_reader_never_meets_half_an_answer(runs, monkeypatch):
    """While a new answer is written, the old one is there whole."""
    measurements.save("k", {"n": 1})
    whole = Path.write_text
    seen, drafts = [], []

    def stopped(path: Path, text: str) -> int:
        whole(path, text[: len(text) // 2])
        drafts.append(path.name)
        seen.append(measurements.load("k"))
        raise OSError("no space left on device")

    with pytest.MonkeyPatch.context() as full, pytest.raises(OSError, match="no space"):
        full.setattr(Path, "write_text", stopped)
        measurements.save("k", {"n": 2})
    assert seen == [{"n": 1}] and measurements.load("k") == {"n": 1}
    # Two processes that write the same never share their drafts.
    assert f".{os.getpid()}." in drafts[0]
    measurements.save("k", {"n": 3})
    assert measurements.load("k") == {"n": 3}
    assert [path.name for path in runs.iterdir()] == ["k.json"]


@pytest.mark.parametrize("kind", [RunFailed, VisitFailed, ServerFailed])
def test_a_failure_is_kept_for_machine_files_and_tried_again(runs, holding, probe, kind):
    key, calls = key_of([probe], 1), []

    def fails() -> dict:
        calls.append(1)
        raise kind("page 3 came back wrong")

    for _ in range(2):
        with pytest.raises(kind, match="page 3"):
            measurements.stored_or_new(key, fails)
    assert len(calls) == 2
    stored = json.loads((runs / f"{key.name}.json").read_text())
    assert stored["failed"] == [kind.__name__, "page 3 came back wrong"]
    assert stored["asked"] == ["probe", 1] and stored["schema"] == measurements.SCHEMA
    assert stored["commit"] == measurements.commit() and stored["measured_at"]
    # In the book of that machine, its chapter shows the error.
    measurements.answer_from([stored])
    try:
        with pytest.raises(kind, match="page 3"):
            measurements.stored_or_new(key_of([probe], 1), fails)
        with pytest.raises(NotInFile, match=r"^its machine file has no answer to this$"):
            measurements.stored_or_new(key_of([probe], 2), fails)
    finally:
        measurements._answers = None
    assert len(calls) == 2


@pytest.mark.parametrize(
    "answer",
    [
        {"n": 1},
        # Of another form, or another error: as a later version of this project may write it.
        {"failed": "RunFailed"}, {"failed": ["RunFailed"]}, {"failed": ["RunFailed", "why", 3]},
        {"failed": ["ZeroDivisionError", "why"]},
    ],
)  # fmt: skip
def test_what_is_no_failure_is_handed_on_as_it_is(answer, probe):
    measurements.answer_from([answer | {"asked": ["probe", 1]}])
    try:
        assert measurements.stored_or_new(key_of([probe], 1), pytest.fail) == answer
    finally:
        measurements._answers = None


def test_what_a_file_has_no_answer_to_waits_for_no_measurement(runs, probe, monkeypatch):
    monkeypatch.setattr(measurements.reservation, "shared", pytest.fail)
    measurements.answer_from([])
    try:
        with pytest.raises(NotInFile):
            measurements.stored_or_new(key_of([probe], 1), pytest.fail)
        with pytest.raises(NotInFile, match=r"^its machine file has no answer to this$"):
            measurements.new(pytest.fail)
    finally:
        measurements._answers = None


def test_another_error_is_no_answer(runs, holding, probe):
    key = key_of([probe], 1)

    def broken() -> dict:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measurements.stored_or_new(key, broken)
    assert not runs.exists() or not list(runs.glob("*.json"))


def test_what_is_stored_is_not_measured_again(runs, holding, probe, monkeypatch):
    monkeypatch.setattr(conditions, "watched", lambda measure: measure() | {"unit_ms": 1.5})
    key, calls = key_of([probe], 1), []

    def measure() -> dict:
        calls.append(1)
        return {"n": len(calls)}

    first = measurements.stored_or_new(key, measure)
    assert first["n"] == 1 and first["key"] == key.name and first["unit_ms"] == 1.5
    assert first["schema"] == measurements.SCHEMA and first["commit"] == measurements.commit()
    assert first["measured_at"]
    assert json.loads((runs / f"{key.name}.json").read_text())["asked"] == ["probe", 1]
    assert measurements.stored_or_new(key, measure) == first and len(calls) == 1
    monkeypatch.delenv("CASEBOOK_BUILD")  # a reader's cell measures anew
    assert measurements.stored_or_new(key, measure)["n"] == 2


def test_a_build_is_told_what_was_measured_and_why(runs, holding, probe, tmp_path, monkeypatch):
    told: list[list[str]] = []
    monkeypatch.setattr(conditions, "watched", lambda measure: measure())
    monkeypatch.setattr(measurements.progress, "tell_changed", told.append)
    monkeypatch.setenv(spans.VARIABLE, str(tmp_path / "spans"))
    measurements.stored_or_new(key_of([probe], 1), lambda: {"n": 1})
    probe.write_text("x = 2\n")
    measurements.stored_or_new(key_of([probe], 1), lambda: {"n": 2})
    assert told == [[], ["probe.py"]]
    assert measurements.new(lambda: {"n": 3})["key"] == ""
    notes = map(json.loads, (tmp_path / "spans").read_text().splitlines())
    labels = [note["label"] for note in notes if note["kind"] == spans.MEASUREMENT]
    assert labels == ["probe", "probe", ""]


def test_the_time_of_a_measurement_is_that_of_the_world():
    class Clock:
        @staticmethod
        def now(zone):
            return datetime(2026, 3, 4, 15, 6, 7, tzinfo=UTC).astimezone(zone)

    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setattr(measurements, "datetime", Clock)
        elsewhere.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        now = measurements.utc_now()
    time.tzset()
    assert now == "2026-03-04T15:06:07Z"


@pytest.mark.parametrize(
    ("stored", "answer"),
    [
        ({"key": "k", "answer": {"n": 1}}, {"n": 1}),
        # As older machine files have it: the version of its Python beside it, or all of it.
        ({"key": "k", "python": "3.7.1", "answer": {"n": 1}}, {"python": "3.7.1", "n": 1}),
        ({"key": "k", "n": 1}, {"key": "k", "n": 1}),
    ],
)
def test_the_answer_is_told_from_how_it_was_made(stored, answer):
    assert measurements.answer_in(stored) == answer


def test_of_what_is_stored_a_class_takes_its_own_fields():
    stored = {"name": "go", "value": "1.22", "unit_ms": 1.5}
    assert measurements.of_class(Using, stored) == {"name": "go", "value": "1.22"}


def test_of_two_chapters_that_measured_the_same_the_book_shows_one(runs, holding, probe):
    key = key_of([probe], 1)

    def measure() -> dict:
        measurements.save(key.name, {"n": "of the other chapter"}, key)
        return {"n": "mine"}

    assert measurements.stored_or_new(key, measure) == {"n": "of the other chapter"}


def test_two_chapters_that_ask_the_same_measure_it_once(holding, probe, runs, monkeypatch):
    """Each is a thread here, with a lock of its own file, as two processes have."""
    monkeypatch.setattr(conditions, "watched", lambda measure: measure())
    key, begun, may_end = key_of([probe], STACK, 1), threading.Event(), threading.Event()

    def measure() -> dict:
        begun.set()
        assert may_end.wait(30)
        return {"n": "of the first"}

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(measurements.stored_or_new, key, measure)
        assert begun.wait(30)
        second = pool.submit(measurements.stored_or_new, key, lambda: pytest.fail("measured twice"))
        other = key_of([probe], STACK, 2)
        assert measurements.stored_or_new(other, lambda: {"n": 2})["n"] == 2  # waits for nobody
        may_end.set()
        assert first.result(30)["n"] == second.result(30)["n"] == "of the first"
    assert not [*places.LOCAL.glob("measuring-*")]


def test_who_asks_the_same_tries_it_where_the_first_failed(holding, probe, runs, monkeypatch):
    monkeypatch.setattr(conditions, "watched", lambda measure: measure())
    key = key_of([probe], STACK, 1)

    def fails() -> dict:
        raise RunFailed("no page came")

    with pytest.raises(RunFailed):
        measurements.stored_or_new(key, fails)
    assert measurements.stored_or_new(key, lambda: {"n": 2})["n"] == 2


def test_an_answer_of_a_file_is_the_readers_own(holding, probe):
    asked = question_of(probe, 1)
    measurements.answer_from([{"asked": asked, "rows": [1]}, {"rows": [2]}])
    try:
        first = measurements.answered(asked)
        assert first == {"rows": [1]}
        first["rows"].append(9)
        assert measurements.answered(asked) == {"rows": [1]}
        assert measurements.answered(question_of(probe, 2)) is None
        key = key_of([probe], STACK, 1)
        assert (key.question, key.depends_on) == (question_of(probe, STACK, 1), {})
        assert key == key_of([probe], STACK, 1) != key_of([probe], STACK, 2)
        assert key.name == key.question_digest
    finally:
        measurements._answers = None


def test_while_something_is_measured_that_is_known(monkeypatch):
    monkeypatch.setattr(conditions, "watched", lambda measure: measure())
    assert not measurements.is_under_way()
    assert measurements.new(lambda: {"busy": measurements.is_under_way()})["busy"] is True
    assert not measurements.is_under_way()
    with pytest.raises(ZeroDivisionError):
        measurements.new(lambda: {"n": 1 // 0})
    assert not measurements.is_under_way()


# ------------------------------------------------------------------- what the machine was doing


class Times:
    """Seconds stolen since the system began: 5,000 before, 5,000.25 after."""

    def __init__(self) -> None:
        self.steal = 4999.75

    def __call__(self) -> "Times":
        self.steal += 0.25
        return self


def test_steal_time_is_that_of_the_measurement_and_not_since_the_system_began(monkeypatch):
    units = iter([2.0, 3.0])
    monkeypatch.setattr(conditions, "unit_ms", lambda: next(units))
    monkeypatch.setattr(conditions.psutil, "cpu_times", Times())
    monkeypatch.setattr(conditions.psutil, "cpu_freq", lambda: None)
    monkeypatch.setattr(conditions.os, "getloadavg", lambda: (1.234, 9, 9))
    monkeypatch.setattr(conditions, "_cores", lambda: 2)
    found = conditions.watched(lambda: {"n": 7})
    assert found == {
        "n": 7, "steal_s": 0.25, "unit_ms": 2.5, "unit_change": 1.5, "load_1min": 1.23, "cores": 2,
        "mhz": None,
    }  # fmt: skip
    assert set(found) - {"n"} == set(conditions.COLUMNS)


def test_a_system_that_does_not_say_what_was_stolen_says_none(monkeypatch):
    monkeypatch.setattr(conditions.psutil, "cpu_times", lambda: object())
    assert conditions.watched(dict)["steal_s"] is None


def test_the_unit_of_work_is_the_least_of_its_tries_in_milliseconds(monkeypatch):
    def repeat(work, timer, number, repeat):
        assert (work, timer) == (conditions._work, conditions.time.thread_time)
        assert (number, repeat) == (1, 3)
        return [0.003, 0.002, 0.004]

    monkeypatch.setattr(conditions.timeit, "repeat", repeat)
    assert conditions.unit_ms() == 2.0
