"""nbgrader round the same checks, by its command line.

It generates, releases, collects, autogrades and writes feedback.
"""

import csv
import json
import os
import shutil
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from graded import right
from here import environment, run

from casebook import places
from casebook.classroom import cell, course, grading, prediction

LAB = "read-a-profile"


def test_a_course_has_a_notebook_for_each_lab_without_a_solution_and_without_a_check(tmp_path):
    for lab, points in grading.LABS.items():
        made = course.notebook(lab)
        *_, graded = made["cells"]
        assert graded["metadata"]["nbgrader"]["points"] == points
        assert graded["source"].count("\n") == 2 and "assert" not in graded["source"]
        assert right(lab) not in json.dumps(made)
    compile(course.configuration(tmp_path), "nbgrader_config.py", "exec")


def test_the_graded_cell_says_the_report_and_its_value_is_the_points(tmp_path, capfd, monkeypatch):
    (tmp_path / "answer.py").write_text("import warnings\nwarnings.warn('noise')\n")
    monkeypatch.chdir(tmp_path)
    assert cell.grade(LAB) == 0
    said = capfd.readouterr()
    assert "Enter PREDICTION" in said.out and said.err == ""


@pytest.mark.parametrize("lab", grading.LABS)
def test_a_notebook_that_nobody_worked_on_is_a_lab_without_an_answer(lab, tmp_path):
    """It gets no points, and is told no answer."""
    first, _, rest = course.notebook(lab)["cells"][1]["source"].partition("\n")
    assert first == "%%writefile answer.py"
    (tmp_path / "answer.py").write_text(rest)
    assert prediction._is_unanswered(tmp_path / "answer.py", lab)
    (tmp_path / "answer.py").write_text(f"{rest}\nOTHER = 1\n")
    assert not prediction._is_unanswered(tmp_path / "answer.py", lab)


def test_a_notebook_speaks_of_itself_and_of_no_folder():
    for lab in grading.LABS:
        scene, answer, _ = course.notebook(lab)["cells"]
        assert "In the next cell, enter `PREDICTION`" in scene["source"]
        assert "last " in scene["source"]
        text = scene["source"] + answer["source"].removeprefix("%%writefile answer.py")
        for other in (".venv", "answer.py", "README", "folder of the book"):
            assert other not in text, (lab, other)


@pytest.fixture
def only_the_answer(tmp_path, monkeypatch):
    """The preprocessor of a course's configuration, without nbgrader."""
    modules = {
        "nbgrader.converters": {
            "Autograde": lambda: SimpleNamespace(sanitize_preprocessors=["nbgrader's"])
        },
        "nbgrader.preprocessors": {"NbGraderPreprocessor": object},
    }
    for name, members in modules.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**members))
    for name in ("PYTHONPATH", "PATH", "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setattr(sys, "path", [*sys.path])
    checked = []
    monkeypatch.setattr(cell, "check", checked.append)
    settings = MagicMock()
    exec(course.configuration(tmp_path), {"get_config": lambda: settings})
    kind, *others = settings.Autograde.sanitize_preprocessors
    assert others == ["nbgrader's"]  # after ours
    return kind(), checked


def a_cell(kind, name, source):
    metadata = {"nbgrader": {"grade_id": name}} if name else {}
    return SimpleNamespace(cell_type=kind, metadata=metadata, source=source)


def test_of_a_submission_only_the_answer_runs_beside_the_graded_cell(only_the_answer):
    """Her text stays; code of hers goes, also under a name of ours, but for the last of that."""
    preprocessor, checked = only_the_answer
    text, of_another = a_cell("markdown", "", "my notes"), a_cell("code", "", "import evil")
    first, answer = (
        a_cell("code", "answer", "import evil"),
        a_cell("code", "answer", "A = 1\nB = 2"),
    )
    points = a_cell("code", "points", "grade()")
    notebook = SimpleNamespace(cells=[text, first, of_another, answer, points], metadata="hers")
    resources = {"nbgrader": {"assignment": LAB}}
    handed_on, same = preprocessor.preprocess(notebook, resources)
    assert (handed_on, same) == (notebook, resources) and checked == [LAB]
    assert notebook.cells == [text, answer, points]
    assert notebook.metadata == {"kernelspec": course._KERNEL}
    assert answer.source == "%%writefile answer.py\nA = 1\nB = 2"
    for source in ("%%writefile answer.py\nB = 2", "\n  %%writefile answer.py\nB = 2"):
        answer.source = source
        preprocessor.preprocess(notebook, resources)
        assert answer.source == "%%writefile answer.py\nB = 2"


def test_a_notebook_of_the_teachers_own_stays_as_it_is(only_the_answer):
    preprocessor, checked = only_the_answer
    notebook = SimpleNamespace(cells=[a_cell("code", "", "import anything")], metadata="hers")
    preprocessor.preprocess(notebook, {"nbgrader": {"assignment": "another"}})
    assert len(notebook.cells) == 1 and notebook.metadata == "hers" and checked == []


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_right_wrong_and_empty_are_released_collected_graded_and_told(tmp_path):
    nbgrader = course.write(tmp_path / "course")
    folder = tmp_path / "course"
    environment(course.STACK)
    home = {"HOME": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime")}
    environ = {"PATH": os.defpath, "LANG": "C.UTF-8", **home}  # a teacher's, without nbgrader

    def say(*arguments, at=folder):
        done = run(nbgrader, *arguments, cwd=at, env=environ, timeout=600)
        assert done.returncode == 0, done.stderr
        return done

    say("generate_assignment", LAB)
    say("release_assignment", LAB)
    released = json.loads((folder / "release" / LAB / f"{LAB}.ipynb").read_text())

    def submission(answer):
        notebook = json.loads(json.dumps(released))
        if answer:
            notebook["cells"][1]["source"] = f"%%writefile answer.py\n{answer}"
        return json.dumps(notebook)

    # One is fetched, worked on and handed in through the exchange, two by hand.
    student = tmp_path / "student"
    student.mkdir()
    (student / "nbgrader_config.py").write_text((folder / "nbgrader_config.py").read_text())
    say("fetch_assignment", LAB, at=student)
    (student / LAB / f"{LAB}.ipynb").write_text(submission(right(LAB)))
    say("submit", LAB, at=student)
    say("collect", LAB)
    [collected] = (folder / "submitted").iterdir()
    guesses = right(LAB).replace('"waits" if waiting else "computes"', '"waits"')
    for name, answer in (("wrong", guesses), ("empty", "")):
        target = folder / "submitted" / name / LAB
        target.mkdir(parents=True)
        (target / f"{LAB}.ipynb").write_text(submission(answer))
        for dump in ("a.prof", "b.prof"):
            (target / dump).write_bytes((grading.folder(LAB) / dump).read_bytes())
    _cheat(folder, released, json.loads(submission(right(LAB))), tmp_path / "taken")
    say("autograde", LAB)
    say("generate_feedback", LAB)
    say("export")
    with open(folder / "grades.csv", newline="") as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    full = grading.LABS[LAB]
    assert scores[collected.name] == full and scores["empty"] == 0 < scores["wrong"] < full
    assert scores["cheat"] == 0 and not (tmp_path / "taken").exists()
    told = (folder / "feedback" / "wrong" / LAB / f"{LAB}.html").read_text()
    assert "loads of a bundle" in told and "Hint" in told
    assert "def grade(" not in told and str(places.PACKAGE / "classroom" / "checks") not in told


def _cheat(folder, released, notebook, trace):
    """Hand in a notebook with a grader of its own: in a cell, in one cell more, and in a file."""
    cheats = folder / "submitted" / "cheat" / LAB
    shutil.copytree(folder / "submitted" / "empty" / LAB, cheats)
    (cheats / "casebook" / "classroom").mkdir(parents=True)
    (cheats / "casebook" / "classroom" / "cell.py").write_text("def grade(lab):\n    return 17\n")
    # And one that would be taken for the kernel, or for what the kernel imports.
    for name in ("ipykernel_launcher.py", "pathlib.py"):
        (cheats / name).write_text(f"open({str(trace)!r}, 'a')\nraise SystemExit\n")
    mine = "import casebook.classroom.cell as cell\ncell.grade = lambda lab: 17"
    notebook["cells"][1]["source"] = mine
    notebook["metadata"]["kernelspec"] = {"name": "mine", "display_name": "", "language": "python"}
    more = {"cell_type": "code", "id": "more", "metadata": {}, "source": mine}
    more |= {"execution_count": None, "outputs": []}
    notebook["cells"][2:2] = [
        more,
        more | {"id": "named", "metadata": released["cells"][2]["metadata"]},
    ]
    (cheats / f"{LAB}.ipynb").write_text(json.dumps(notebook))
