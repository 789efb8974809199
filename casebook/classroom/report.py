"""What a grading says: points, what was measured, a hint, line by line."""

import textwrap
from dataclasses import asdict, dataclass, field
from typing import Any

from casebook.classroom.room import NOT_STOPPED

#: So much is said of what a submission said, in characters.
SAID = 1000


@dataclass(frozen=True)
class Item:
    """One thing that points are given for. measured: what was found, in words; hint: where to look
    next, empty where nothing is missing."""

    what: str
    points: int
    of: int
    measured: str
    hint: str = ""


@dataclass
class Report:
    """A graded submission. notes: what is said beside, such as rows to pick from."""

    lab: str
    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped: str = ""

    def give(self, what: str, right: bool | int, of: int, measured: str, hint: str) -> None:
        """Add an item: all points or none, or so many of them."""
        points = of * right if isinstance(right, bool) else right
        if len(measured) > SAID:
            measured = f"{measured[:SAID]} … and so on"
        self.items.append(Item(what, points, of, measured, "" if points == of else hint))

    @property
    def points(self) -> int:
        return sum(item.points for item in self.items)

    @property
    def of(self) -> int:
        return sum(item.of for item in self.items)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"points": self.points, "of": self.of, "text": self.text()}

    def text(self) -> str:
        """For a terminal, or a page of nbgrader's."""
        lines = [self.lab, ""]
        for item in self.items:
            lines.append(f"{item.points:3} of {item.of}   {item.what}")
            lines += _wrapped(item.measured, "           ")
            lines += _wrapped(f"Hint: {item.hint}" if item.hint else "", "           ")
        lines += ["", *(line for note in self.notes for line in _wrapped(note, "")), ""]
        if self.stopped:
            lines += [*_wrapped(f"Your program was stopped: {self.stopped}.", ""), ""]
        lines.append(f"{self.points} of {self.of} points")
        return "\n".join(lines)


def picked(said: Any) -> set[str]:
    """The letters that somebody picked: nothing where what was handed in is no list of letters."""
    if not isinstance(said, list | str) or not all(isinstance(each, str) for each in said):
        return set()
    return set(said) if len(set(said)) == len(said) else set()


def with_warning(report: Report) -> str:
    """The text, and what is not stopped: for who grades others."""
    return "\n".join([report.text(), "", *_wrapped(NOT_STOPPED, "")])


def _wrapped(text: str, indent: str) -> list[str]:
    return [
        line
        for part in text.splitlines()
        for line in textwrap.wrap(
            part, 96, initial_indent=indent, subsequent_indent=indent, break_long_words=False
        )
    ]
