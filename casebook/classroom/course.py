"""A course for nbgrader: a notebook for each lab, as a thin shell round the grader.

What a student writes is a file, `answer.py`, in a cell that writes it; the one graded cell has it
graded by `casebook.classroom.cell`. No check stands in a notebook, so that none leaks in feedback,
and no other code of the student's runs where the graded cell does.
"""

import json
import re
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
import sys

from nbgrader.converters import Autograde
from nbgrader.preprocessors import NbGraderPreprocessor

# The graded cells import casebook.classroom.cell, which needs nothing but the standard library.
os.environ["PYTHONPATH"] = {casebook!r}
# nbgrader makes its database with alembic, which stands beside it and is not on a teacher's PATH.
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
# A file that is handed in beside a notebook, such as ipykernel_launcher.py, is not the kernel.
os.environ["PYTHONSAFEPATH"] = "1"
sys.path.append({casebook!r})
from casebook.classroom import cell as graded_cell  # noqa: E402

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "casebook"
c.CourseDirectory.root = {root!r}
c.Exchange.root = {root!r} + "/exchange"
c.ClearSolutions.code_stub = {{"python": "# Your code goes above."}}
c.ExecutePreprocessor.timeout = 900
# What is handed in under the grader's name would be taken for it.
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", "casebook", "casebook.*",
]


class OnlyTheAnswer(NbGraderPreprocessor):
    """Nothing that a student wrote runs beside the graded cell, where a line of hers could put
    another grader in its place: her cell writes a file, whatever stands in it, and others go."""

    labs = {labs!r}
    kernel = {kernel!r}
    writes = "%%writefile answer.py"

    def preprocess(self, notebook, resources):
        if resources["nbgrader"]["assignment"] not in self.labs:
            return notebook, resources  # of the teacher's own
        graded_cell.check(resources["nbgrader"]["assignment"])
        notebook.metadata = {{"kernelspec": self.kernel}}
        # The last cell of a name: nbgrader writes the graded one anew.
        cells = notebook.cells
        names = [each.metadata.get("nbgrader", {{}}).get("grade_id") for each in cells]
        named = dict(zip(names, cells))
        ours = [id(named[name]) for name in ("answer", "points") if name in named]
        notebook.cells = [each for each in cells if each.cell_type != "code" or id(each) in ours]
        if "answer" in named:
            cell = named["answer"]
            first, _, rest = cell.source.lstrip().partition("\\n")
            cell.source = self.writes + "\\n" + (rest if first == self.writes else cell.source)
        return notebook, resources


c.Autograde.sanitize_preprocessors = [OnlyTheAnswer, *Autograde().sanitize_preprocessors]
'''


def write(into: Path) -> Path:
    """Write a course into a folder that is not there yet.

    The folder holds nbgrader_config.py and the source of each lab. Returns the path of nbgrader, in
    an environment of its own. Raises UsageError.
    """
    if into.exists():
        raise UsageError(f"{into} is there already: name a new folder")
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
    text = configuration(into)
    (into / "nbgrader_config.py").write_text(text, encoding="utf-8")
    return environment.python.with_name("nbgrader")


def configuration(into: Path) -> str:
    """Return nbgrader's configuration of a course in that folder."""
    return _CONFIGURATION.format(
        root=str(into.resolve()), casebook=str(places.ROOT), labs=[*grading.LABS], kernel=_KERNEL
    )


def notebook(lab: str) -> dict[str, Any]:
    """Return the teacher's notebook of a lab, from which nbgrader makes the students'."""
    folder = grading.folder(lab)
    text = of_itself((folder / "README.md").read_text(encoding="utf-8"))
    answer = (folder / "answer.py").read_text(encoding="utf-8").rstrip()
    answer = answer.replace("README.md beside this file says", "The text above says")
    cells: list[tuple[str, str, str, dict[str, Any]]] = [
        ("markdown", "scene", text, {}),
        ("code", "answer", f"%%writefile answer.py\n{answer}\n{_REGION}", {"solution": True}),
        (
            "code",
            "points",
            f'from casebook.classroom.cell import grade\n\ngrade("{lab}")',
            {"grade": True, "locked": True, "points": grading.LABS[lab]},
        ),
    ]
    return {
        "cells": [_cell(*cell) for cell in cells],
        "metadata": {"kernelspec": _KERNEL},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


#: What a README says of a file and a folder, and what that is in a notebook.
_HERE = {
    r"Open `answer\.py` and enter": "In the next cell, enter",
    r": `\.venv/bin/python -m casebook grade [^`]*`, in the folder of the book\.": (
        ": run the cell with your answers, then the last one."
    ),
    r"`\.venv/bin/python -m casebook grade [^`]*`, in the folder of the book,": "The last cell",
    r" The environment is that of the stack .*? runs in it\.": "",
}


def of_itself(readme: str) -> str:
    """Return the text of a lab for its notebook: it speaks of cells, not of files and folders."""
    for pattern, replacement in _HERE.items():
        readme = re.sub(pattern, replacement, readme, flags=re.DOTALL)
    return readme


#: What runs the notebooks, whatever stands in one that is handed in.
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

#: Without it, nbgrader would clear the whole cell.
_REGION = "### BEGIN SOLUTION\n### END SOLUTION"


def _cell(kind: str, name: str, source: str, settings: dict[str, Any]) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": source}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
        role = {"grade": False, "locked": False, "solution": False, "task": False} | settings
        cell["metadata"]["nbgrader"] = role | {"grade_id": name, "schema_version": 3}
    return cell
