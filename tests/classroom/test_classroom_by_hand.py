"""What the classroom judges, on rows that are written down, and what it keeps of each class."""

import contextlib
import json
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from casebook.classroom import archive, grader_runs, grading, prediction, room, whodunit
from casebook.classroom.checks import count_the_loads
from casebook.classroom.checks.one_slow_book import Shelf
from casebook.classroom.grade_report import Report
from casebook.classroom.whodunit import Mark, Run
from casebook.cli import machine
from casebook.errors import UsageError


@pytest.mark.parametrize(
    ("n", "slow", "lanes", "in_order", "before"),
    [
        # Read in the order asked: the nine that stand in front.
        (30, (10,), 100, True, 9),
        # One lane: so does everything on one connection.
        (30, (10,), 1, False, 9),
        # Lanes are left: all that are not slow.
        (30, (10,), 6, False, 29),
        (30, (4, 9), 3, False, 28),
        # Books 4, 9 and 11 hold a lane each; of the ten in front of 11, eight are not slow.
        (30, (4, 9, 11), 3, False, 8),
    ],
)
def test_the_model_of_the_slow_books(n, slow, lanes, in_order, before):
    assert Shelf("kind", "what", "client", n, slow, lanes, in_order).model() == before


MARKS = (
    (Mark("ann", "lock", "lock", ""), True, False),
    (Mark("bob", "lock", "lock", "it does not show"), True, False),
    (Mark("cyd", "none", "none", ""), True, False),
    (Mark("dan", "none", "lock", "it does not show"), False, False),  # she accused nobody
    (Mark("eve", "loads", "none", "it does not show"), False, True),
    (Mark("fay", "loads", "lock", "it does not show"), False, True),
    (Mark("gil", "nothing", "", "there is no answer that can be read"), False, False),
)


@pytest.mark.parametrize(("mark", "is_right", "is_false"), MARKS)
def test_a_mark_is_right_or_wrong_or_an_accusation_of_somebody_else(mark, is_right, is_false):
    assert (mark.is_right, mark.accuses_wrongly) == (is_right, is_false)


def a_run(department="pages", scheme="https", **more):
    usual = {
        "n": 10,
        "came": 10,
        "peak_in_flight": 1,
        "connections": 1,
        "loads": 1,
        "protocols": {},
    }
    return Run(department, scheme, **usual | more)


@pytest.mark.parametrize(
    ("run", "shows"),
    [
        (a_run(came=9), "pages over https: not every page comes"),
        (a_run(n=2, came=2), "pages over https: too few pages to show anything"),
        (a_run(), "pages over https: serial"),
        (a_run(peak_in_flight=2, scheme="http"), "pages over http: concurrent"),
        (a_run("notices", peak_in_flight=2), "notices over https: concurrent"),
        (a_run("shelf", protocols={"HTTP/2": 9, "HTTP/1.1": 1}),
         "shelf over https: HTTP/1.1 and HTTP/2"),
        (a_run("ledger"), "ledger over https: one connection, few loads"),
        # A server may end a connection meanwhile: two of ten are not one for each.
        (a_run("ledger", connections=2, loads=2), "ledger over https: one connection, few loads"),
        (a_run("ledger", loads=10), "ledger over https: one connection, a load for each"),
        (a_run("ledger", connections=10, loads=11),
         "ledger over https: a connection for each, a load for each"),
        (a_run("ledger", loads=None), "ledger over https: one connection, few loads"),
    ],
)  # fmt: skip
def test_what_a_run_shows(run, shows):
    assert run.shows == shows


SERIAL, CONCURRENT = a_run(), a_run(peak_in_flight=5)
OVER_HTTP = a_run(scheme="http", peak_in_flight=5)


@pytest.mark.parametrize(
    ("culprit", "again", "wrong"),
    [
        # Serial over https, concurrent over http; so are they when they are made again.
        ("injected", [SERIAL, OVER_HTTP], ""),
        ("injected", [CONCURRENT, CONCURRENT, SERIAL, OVER_HTTP], ""),  # a busy machine
        ("injected", [CONCURRENT] * 3, "made again, shows: pages over https: concurrent"),
        ("session", [], "it does not show: ledger over https: a connection for each"),
    ],
)
def test_evidence_is_made_again_with_the_program_of_who_did_it(culprit, again, wrong, monkeypatch):
    """Whoever was accused: with the program of the accused each accusation would be right."""
    built, runs = [], {"a": SERIAL, "b": OVER_HTTP}
    world = SimpleNamespace(folder=Path("world"))
    monkeypatch.setattr(whodunit, "World", lambda: contextlib.nullcontext(world))
    monkeypatch.setattr(whodunit, "build", lambda folder, who: built.append((folder.name, who)))
    monkeypatch.setattr(whodunit, "_load_run", lambda _, id_: runs.get(id_))
    monkeypatch.setattr(whodunit, "run_now", lambda *_: again.pop(0))
    judged = whodunit._judge(Path("ann"), culprit, "late", ["a", "b"])
    assert wrong in judged and bool(wrong) is bool(judged)
    assert again == [] and built == [("program", "late")] * (culprit == "injected")
    assert whodunit._judge(Path("ann"), culprit, "late", ["a", "c"]) == (
        "run c is not there, or was changed"
    )


def test_a_case_that_two_hand_in_is_evidence_for_neither(tmp_path, monkeypatch):
    marks = [Mark(name, "lock", "lock", "") for name in ("ann", "bob", "ann")]
    marks.append(Mark("bob", "nothing", "", "there is no answer that can be read"))
    for number in range(len(marks)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "case.json").touch()
    monkeypatch.setattr(whodunit, "_mark", lambda folder, _: marks[int(folder.name)])
    twice = "this case was handed in more than once"
    judged = [mark.evidence for mark in whodunit.mark(tmp_path, b"secret")]
    assert judged == [twice, twice, twice, marks[3].evidence]


@pytest.mark.parametrize(
    ("names", "can_run", "room"),
    [(["here"], True, "here"), (["here", "there"], False, "stage-0"), (["there"], False, "stage-0"),
     (["here", "too"], True, "here")],
)  # fmt: skip
def test_a_lab_is_graded_where_all_of_its_stacks_run(names, can_run, room):
    bench = grader_runs.GraderRuns(
        Path("lab.py"), _runs={"here": True, "too": True, "there": False}
    )
    assert bench.can_run(*names) is can_run and bench.room(*names) == room


def test_a_class_is_added_up():
    lines = whodunit.marks_text([mark for mark, *_ in MARKS]).splitlines()
    assert lines[-1] == "7 answers: 3 right, 2 of them shown by their evidence, 2 false accusations"
    assert [line.endswith(" (a false accusation)") for line in lines] == [
        *(is_false for _, _, is_false in MARKS), False
    ]  # fmt: skip


def test_the_teachers_secret_marks_the_cases_that_were_handed_out(tmp_path):
    archive.whodunits(tmp_path / "whodunit")
    secret = whodunit.secret_of(tmp_path / "whodunit" / "secret")
    lines = (tmp_path / "whodunit" / "culprits.txt").read_text().splitlines()
    assert len(lines) == archive.CASES
    for line in lines:
        name, culprit = line.split()
        case = tmp_path / "whodunit" / "class" / name
        assert whodunit.culprit_of(
            json.loads((case / "case.json").read_text())["seed"], secret
        ) == (culprit)
        whodunit.build(tmp_path / "again" / name, culprit)
        texts = [{path.name: path.read_text() for path in folder.iterdir()}
                 for folder in (case / "program", tmp_path / "again" / name)]  # fmt: skip
        assert texts[0] == texts[1]


def test_the_first_prediction_stays_whatever_is_entered_later(tmp_path):
    submission = tmp_path / "answer.py"
    assert prediction.remember(submission, None) is None
    first = prediction.remember(submission, 30)
    assert first is not None and first["prediction"] == 30
    assert [prediction.remember(submission, later) for later in (1, None)] == [first, first]


def test_what_a_submission_answers_in_our_place_is_left_out(tmp_path, monkeypatch):
    """As many answers as there were jobs, and no more; where some lack, it ended before."""
    here = SimpleNamespace(python=Path("python"))
    monkeypatch.setattr(room.environments, "ensure", lambda _: here)
    monkeypatch.setattr(room.environments, "clean_environ", lambda _: {})
    (tmp_path / "answer.py").touch()
    ended = {"error": "it ended before this was asked"}
    for numbers, answers in (
        ([1, 2, 3], [{"value": 1}, {"value": 2}]),
        ([1], [{"value": 1}, ended]),
        ([], [ended, ended]),
    ):
        told = room.Outcome([{"value": number} for number in numbers], {"PREDICTION": 3})
        monkeypatch.setattr(room, "_run", lambda *_, told=told: told)
        outcome = room.run("stage-0", tmp_path / "answer.py", [{}, {}], names=("PREDICTION",))
        assert outcome.answers == answers and not outcome.error


def test_a_name_that_no_machine_file_can_have_is_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(grading, "measure_answers", pytest.fail)
    with pytest.raises(UsageError, match=r"ends in \.jsonl\.xz"):
        machine.measure_for_labs(Namespace(file=Path("labs.json")))


@pytest.mark.parametrize(
    ("right", "loads", "at_a_time", "points", "shared"),
    [
        (30, 1, 30, [4, 2, 3], True),
        (30, 1, 2, [4, 2, 3], True),
        (30, 1, 1, [4, 0, 3], True),  # the lock is held while it fetches
        (30, 2, 30, [0, 2, 0], True),
        (30, 30, 30, [0, 2, 0], False),  # as stock requests
        (30, 0, 30, [0, 2, 0], True),  # nobody was trusted by what was loaded
        (29, 1, 30, [0, 0, 0], False),  # one did not get its page
    ],
)
def test_loads_of_threads_by_points(right, loads, at_a_time, points, shared, monkeypatch):
    def fetch(world, file, function, manner, count, **options):
        """The second time another number of threads was drawn."""
        of_all = count if loads == 30 else loads
        outcome = room.Outcome([{"answers": [{"error": "no", "kind": "X"}]}])
        seen = SimpleNamespace(requests=count, peak_in_flight=at_a_time)
        return outcome, count - (30 - right), of_all, seen

    monkeypatch.setattr(count_the_loads, "_fetch", fetch)
    report, world = Report("count-the-loads"), SimpleNamespace(bundle=Path("bundle.pem"))
    found = count_the_loads._grade_loads(world, Path("answer.py"), report)
    assert [item.points for item in report.items] == points
    assert [item.of for item in report.items] == [4, 2, 3]
    assert set(found) == ({count_the_loads.TRUE, count_the_loads.PATH} if shared else set())
