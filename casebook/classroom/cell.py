"""What the graded cell of nbgrader's notebooks imports.

Standard library alone: it runs in the environment of nbgrader, and the grader in the book's.

    from casebook.classroom.cell import grade

    grade("count-the-loads")        # prints the report; its value is the cell's partial credit
"""

import json
import os
import subprocess
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def grade(lab: str, submission: str = "answer.py") -> int:
    """Grade the file beside the notebook.

    Prints nothing on standard error, for which nbgrader would take all points.
    """
    process = _run("casebook", "grade", lab, os.path.abspath(submission), "--json")
    try:
        graded = json.loads(process.stdout)
    except ValueError:
        print(process.stderr.strip() or f"the grader exited with code {process.returncode}")
        return 0
    print(graded["text"])
    return int(graded["points"])


def check(lab: str) -> None:
    """Raise RuntimeError if this machine cannot grade the whole of a lab.

    nbgrader only knows points and no points, and would take those of what was not graded.
    """
    process = _run("casebook.classroom.grading", lab)
    if process.returncode:
        raise RuntimeError(process.stderr.strip())


def _run(module: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a module of the book's, with its Python."""
    python = os.environ.get("CASEBOOK_PYTHON") or str(_ROOT / ".venv" / "bin" / "python")
    command = [python, "-m", module, *arguments]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
