"""A course for nbgrader: a notebook for each lab, as a thin shell round the grader.

What a student writes is a file, `answer.py`, in a cell that writes it; the one graded cell has it
graded by `casebook.classroom.cell`. No check stands in a notebook, so that none leaks in feedback.
"""

import json
from pathlib import Path
from typing import Any

from casebook import places, stacks
from casebook.classroom import grading
from casebook.errors import UsageError
from casebook.stacks import environments

STACK = "nbgrader-today"

_CONFIGURATION = '''\
"""Of nbgrader, for this course."""

import os

# The graded cells import casebook.classroom.cell, which needs nothing but the standard library.
os.environ["PYTHONPATH"] = {casebook!r}

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "casebook"
c.CourseDirectory.root = {root!r}
c.Exchange.root = {root!r} + "/exchange"
c.ClearSolutions.code_stub = {{"python": "# Your code goes above."}}
c.ExecutePreprocessor.timeout = 900
'''


def make(into: Path) -> Path:
    """Write a course into a folder that is not there yet: nbgrader_config.py and the source of each
    lab. Returns the path of nbgrader, in an environment of its own. Raises UsageError."""
    if into.exists():
        raise UsageError(f"{into} is there already: name a folder that is not")
    environment = environments.ensure(stacks.get(STACK))
    for lab in grading.LABS:
        folder = into / "source" / lab
        folder.mkdir(parents=True)
        (folder / f"{lab}.ipynb").write_text(json.dumps(notebook(lab), indent=1) + "\n")
        for path in grading.folder(lab).glob("**/*"):
            if path.is_file() and path.name not in ("README.md", "answer.py"):
                target = folder / path.relative_to(grading.folder(lab))
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
    root = str(into.resolve())
    text = _CONFIGURATION.format(root=root, casebook=str(places.ROOT))
    (into / "nbgrader_config.py").write_text(text, encoding="utf-8")
    return environment.python.with_name("nbgrader")


def notebook(lab: str) -> dict[str, Any]:
    """The teacher's notebook of a lab, from which nbgrader makes the students'."""
    folder = grading.folder(lab)
    told = (folder / "README.md").read_text(encoding="utf-8")
    answer = (folder / "answer.py").read_text(encoding="utf-8").rstrip()
    cells: list[tuple[str, str, str, dict[str, Any]]] = [
        ("markdown", "scene", told, {}),
        ("code", "answer", f"%%writefile answer.py\n{answer}\n{_REGION}", {"solution": True}),
        (
            "code",
            "points",
            f'from casebook.classroom.cell import grade\n\ngrade("{lab}")',
            {"grade": True, "locked": True, "points": grading.LABS[lab]},
        ),
    ]
    return {
        "cells": [_cell(*each) for each in cells],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


#: Without it, nbgrader would clear the whole cell.
_REGION = "### BEGIN SOLUTION\n### END SOLUTION"


def _cell(kind: str, name: str, source: str, its: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": source}
    if kind == "code":
        made |= {"execution_count": None, "outputs": []}
        role = {"grade": False, "locked": False, "solution": False, "task": False} | its
        made["metadata"]["nbgrader"] = role | {"grade_id": name, "schema_version": 3}
    return made
