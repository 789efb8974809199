"""What the graded cell of nbgrader's notebooks imports. Standard library alone: it runs in the
environment of nbgrader, and the grader in the book's.

    from casebook.classroom.cell import grade

    grade("count-the-loads")        # prints the report; its value is the cell's partial credit
"""

import json
import os
import subprocess
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def grade(lab: str, submission: str = "answer.py") -> int:
    """Grade the file beside the notebook. Nothing is said on standard error, for which nbgrader
    would take all points."""
    python = os.environ.get("CASEBOOK_PYTHON") or str(_ROOT / ".venv" / "bin" / "python")
    done = subprocess.run(
        [python, "-m", "casebook", "grade", lab, os.path.abspath(submission), "--json"],
        cwd=_ROOT, capture_output=True, text=True,
    )  # fmt: skip
    try:
        graded = json.loads(done.stdout)
    except ValueError:
        print(done.stderr.strip() or f"the grader left with exit code {done.returncode}")
        return 0
    print(graded["text"])
    return int(graded["points"])
