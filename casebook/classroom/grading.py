"""`python -m casebook grade LAB SUBMISSION`: the driver."""

from importlib import import_module
from pathlib import Path

from casebook import places
from casebook.classroom.report import Report
from casebook.errors import UsageError

_CHECKS = "casebook.classroom.checks"
#: The labs, in the order in which a class may take them, and the points of each.
LABS = {"find-the-monkey": 20, "read-a-profile": 17, "count-the-loads": 24, "one-slow-book": 15}


def folder(lab: str) -> Path:
    """What is handed out for a lab."""
    return places.ROOT / "classroom" / "labs" / lab


def grade(lab: str, submission: Path) -> Report:
    """Run a submission, and say line by line what was found.

    submission: the file that was handed in, or the folder with its answer.py. Raises UsageError
    for what is no lab or no file.
    """
    if lab not in LABS:
        raise UsageError(f"there is no lab {lab!r}; choose one of: {', '.join(LABS)}")
    file = submission / "answer.py" if submission.is_dir() else submission
    if not file.is_file():
        raise UsageError(
            f"there is no file {file}; name the answer.py of {folder(lab).relative_to(places.ROOT)}"
        )
    report = Report(lab)
    import_module(f"{_CHECKS}.{lab.replace('-', '_')}").grade(file, report)
    return report
