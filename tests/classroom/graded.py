"""Submissions made of right ones, and what the grader says of them."""

from pathlib import Path

from casebook import places
from casebook.classroom import grading
from casebook.classroom.grade_report import Report

ANSWERS = places.ROOT / "tests" / "classroom" / "answers"


def right(lab: str) -> str:
    """The right solution of a lab."""
    return (ANSWERS / lab / "right.py").read_text(encoding="utf-8")


def changed(lab: str, *changes: tuple[str, str]) -> str:
    """The right solution with each of these parts replaced, each of which is there once."""
    text = right(lab)
    for old, new in changes:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    return text


def graded(lab: str, text: str, folder: Path) -> Report:
    """What the grader says of a submission."""
    file = folder / "answer.py"
    file.write_text(text, encoding="utf-8")
    return grading.grade(lab, file)


def missing(report: Report) -> dict[str, str]:
    """What the items say that did not get all of their points: what was measured, by item."""
    return {item.what: item.measured for item in report.items if item.points < item.of}
