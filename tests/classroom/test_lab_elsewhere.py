"""Labs graded where a stack cannot run.

A machine file answers what the grader would measure, and what only the student's own run could show
is neither given nor taken.

The driver is the real one, in a copy of this tree that can make no environment: its index cannot
be reached, and uv has nothing kept.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from graded import right
from here import run

from casebook import places
from casebook.classroom import grader_runs, grading
from casebook.classroom.checks import count_the_loads
from casebook.laboratory import machine_files
from casebook.laboratory.anonymity import Own

#: Points that can be graded without the student's own run, of each lab; and an item that cannot.
LEFT = {
    "find-the-monkey": (13, "mended: 10 pages at once"),
    "read-a-profile": (17, None),
    "count-the-loads": (3, "30 threads load once (verify=True)"),
    "one-slow-book": (7, "10 books: nobody waits for the slow one"),
}
#: Items whose truth the grader would have measured.
TRUTHS = {
    "find-the-monkey": "verdicts on six",
    "read-a-profile": "a new dump",
    "count-the-loads": "what the loads go with",
    "one-slow-book": "the model",
}
PARTS = [lab for lab, (_, own) in LEFT.items() if own]


@pytest.fixture(scope="module")
def unable(tmp_path_factory):
    """A machine that can make no environment.

    grade(lab, text, *arguments) runs the command there, and gives its exit status, the report, and
    what it said on standard error.
    """
    root = tmp_path_factory.mktemp("unable") / "book"
    for name in ("casebook", "classroom", "data", "env"):
        its = places.ROOT / name
        shutil.copytree(its, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    environ = {name: value for name, value in os.environ.items() if name != "CASEBOOK_REQUIRE"}
    environ |= {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}
    environ |= {"UV_CACHE_DIR": str(root.parent / "nothing"), "HOME": str(root.parent)}

    def grade(lab, text, *arguments):
        file = root.parent / lab / "answer.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.with_suffix(".prediction.json").unlink(missing_ok=True)
        command = [sys.executable, "-m", "casebook", "grade", lab, file, "--json", *arguments]
        done = run(*command, cwd=root, env=environ)
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    return grade


def items(report):
    return {item["what"]: item for item in report["items"]}


@pytest.mark.parametrize("lab", LEFT)
def test_a_right_one_has_the_points_of_what_can_be_graded_and_each_line_says_whose(lab, unable):
    status, report, said = unable(lab, right(lab))
    of, own = LEFT[lab]
    assert report, said
    assert (report["points"], report["of"]) == (of, of), report["text"]
    assert report["not_graded"] == grading.LABS[lab] - of
    assert status == (3 if own else 0) and "could not be made" in said
    if own:
        assert not items(report)[own]["graded"] and "not graded here" in report["text"]
        assert f"{of} of {of} points; {grading.LABS[lab] - of} more could not be graded" in said
    [file] = grader_runs.files()
    label = machine_files.read(file).label
    assert f"of {label}, not measured here" in " ".join(report["text"].split())
    truths = [its for its in report["items"] if its["what"].startswith(TRUTHS[lab])]
    assert truths and all(f"of {label}, not" in its["measured"] for its in truths)


@pytest.mark.slow
@pytest.mark.parametrize("lab", LEFT)
def test_an_empty_one_has_nothing_and_a_prediction_alone_its_point(lab, unable):
    handed_out = (grading.folder(lab) / "answer.py").read_text()
    status, report, _ = unable(lab, handed_out)
    assert (status, report["points"], report["of"]) == (1, 0, grading.LABS[lab])
    status, report, _ = unable(lab, handed_out.replace("PREDICTION = None", "PREDICTION = 1"))
    assert (status, report["points"], report["of"]) == (1, 1, LEFT[lab][0]), report["text"]


WRONG = {
    "find-the-monkey": ('"archive"', '"mailer"', "since which import"),
    "read-a-profile": ('FREE_LOOP = "a.prof"', 'FREE_LOOP = "b"', "FREE_LOOP"),
    "count-the-loads": ('"connections"', '"requests"', "what the loads go with"),
    "one-slow-book": ("slow[lanes - 1] - lanes", "slow[0] - 1", "the model"),
}


@pytest.mark.slow
@pytest.mark.parametrize("lab", WRONG)
def test_a_wrong_one_fails_for_its_reason_against_the_file(lab, unable):
    old, new, what = WRONG[lab]
    assert right(lab).count(old) == 1
    status, report, _ = unable(lab, right(lab).replace(old, new))
    lost = [
        name for name, its in items(report).items() if its["graded"] and its["points"] < its["of"]
    ]
    assert status == 1 and lost and all(name.startswith(what) for name in lost), report["text"]


@pytest.mark.slow
def test_a_recorded_run_does_not_pass_for_her_own(unable):
    """What another machine measured says nothing of her code.

    She gets nothing for taking the program's slow client for her repair, or for loading thirty
    times.
    """
    for lab in PARTS:
        _, report, _ = unable(lab, right(lab))
        own = [its for its in report["items"] if not its["graded"]]
        assert own and all(its["points"] == 0 for its in own)
        assert all("your code has to run in" in its["measured"] for its in own)


@pytest.mark.slow
def test_a_file_that_was_asked_something_else_grades_nothing(unable, tmp_path):
    other = tmp_path / "other.jsonl.xz"
    [file] = grader_runs.files()
    machine = machine_files.read(file)
    lies = {"peak_in_flight": "many", "statuses": 7, "loads": "x", "before": None, "profile": [{}]}
    answers = [each | {"answer": each["answer"] | lies} for each in machine.answers]
    machine_files.save(machine_files.Machine("other", machine.about, answers), other)
    for lab in LEFT:
        status, report, said = unable(lab, right(lab), "--machine", other)
        assert (status, report) == (3, None) and "other has no answer" in said


def test_what_needs_a_package_is_not_taken_for_a_mistake(unable):
    status, report, _ = unable("find-the-monkey", "import google.auth\n" + right("find-the-monkey"))
    assert (status, report["points"], report["of"], report["not_graded"]) == (3, 0, 0, 20)


def test_a_file_that_is_named_answers_and_her_own_code_is_still_run_here(tmp_path):
    [file] = grader_runs.files()
    answer = tmp_path / "answer.py"
    answer.write_text(right("count-the-loads"))
    report = grading.grade("count-the-loads", answer, file)
    assert (report.points, report.total, report.not_graded) == (24, 24, 0)
    measured = {item.what: item.measured for item in report.items}
    assert "not measured here" in measured["a prediction is entered"]
    assert measured["30 threads load once (verify=True)"] == "30 threads: 1 load"


def test_what_the_labs_ask_is_answered_by_the_file_that_comes_with_them():
    """Another program, or another question, wants another file: `machine labs` writes one."""
    [file] = grader_runs.files()
    machine = machine_files.read(file)
    assert {each["asked"][0] for each in machine.answers} == {
        lab.replace("-", "_") for lab in grading.LABS
    }
    assert not [
        line for line in map(json.dumps, machine.answers) if Own.of_this_machine().leak(line)
    ]


def test_what_is_recorded_is_what_will_be_asked():
    mine = grader_runs.RecordedRuns(Path(count_the_loads.__file__))
    count_the_loads.record(mine)
    [file] = grader_runs.files()
    there = [
        each for each in machine_files.read(file).answers if each["asked"][0] == "count_the_loads"
    ]
    assert [each["asked"] for each in mine.answers] == [each["asked"] for each in there]
    assert [each["answer"] for each in mine.answers] == [each["answer"] for each in there]


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_a_machine_that_can_writes_a_file_for_those_that_cannot(tmp_path, unable):
    file = tmp_path / "ours.jsonl.xz"
    done = run(sys.executable, "-m", "casebook", "machine", "labs", file, timeout=1000)
    assert done.returncode == 0, done.stderr
    for lab, (of, _) in LEFT.items():
        _, report, _ = unable(lab, right(lab), "--machine", file)
        assert (report["points"], report["of"]) == (of, of), report["text"]
