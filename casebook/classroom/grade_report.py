"""What a grading says: points, what was measured, a hint, line by line."""

import textwrap
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from casebook.classroom.room import NOT_STOPPED

#: The most that a report quotes of a submission, in characters.
SAID = 1000


#: For the {n} of a task's title, where the number is not drawn.
ANOTHER = "another number of"


@dataclass(frozen=True)
class Task:
    """What points are given for.

    title: with {n} for a number that is drawn at random. points: the most that there are.
    """

    title: str
    points: int

    def of(self, n: int | str) -> "Task":
        """Return the task with this number in its title."""
        return replace(self, title=self.title.format(n=n))


@dataclass(frozen=True)
class Item:
    """One thing that points are given for.

    measured: what was found, in words; hint: where to look next, empty if nothing is missing;
    graded: False if this machine cannot tell, and then nothing is given and nothing is taken.
    """

    what: str
    points: int
    of: int
    measured: str
    hint: str = ""
    graded: bool = True


@dataclass
class Report:
    """A graded submission. notes: further lines, such as rows to pick from."""

    lab: str
    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped: str = ""
    #: Called with the points of each item, once it is there.
    progress: Callable[[int], object] = field(default=lambda _: None, repr=False)

    def add(
        self, label: str, right: bool | int, total: int, message: str, hint: str, machine: str = ""
    ) -> None:
        """Add an item with all points, none, or this number of them.

        machine: the one that was measured in place of this one, if any.
        """
        points = total * right if isinstance(right, bool) else right
        if len(message) > SAID:
            message = f"{message[:SAID]} … and so on"
        if machine:
            message += f"\nof {machine}, not measured here"
        self.items.append(Item(label, points, total, message, "" if points == total else hint))
        self.progress(total)

    def leave(self, label: str, total: int, needs: str) -> None:
        """Add an item that cannot be graded here.

        needs: the stack that the student's own code has to run in, of which another machine's
        measurement says nothing.
        """
        reason = f"not graded here: your code has to run in {needs}, which this machine cannot"
        self.items.append(Item(label, 0, total, reason, graded=False))

    @property
    def points(self) -> int:
        """Return the points of all items."""
        return sum(item.points for item in self.items)

    @property
    def total(self) -> int:
        """Return the points of what was graded."""
        return sum(item.of for item in self.items if item.graded)

    @property
    def not_graded(self) -> int:
        """Return the points of what could not be graded here."""
        return sum(item.of for item in self.items if not item.graded)

    def score(self) -> str:
        """Return the last line: "5 of 8 points; 12 more could not be graded here"."""
        suffix = f"; {self.not_graded} more could not be graded here" if self.not_graded else ""
        return f"{self.points} of {self.total} points{suffix}"

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON, with its text."""
        content = {"lab": self.lab, "items": [asdict(item) for item in self.items]}
        content |= {"notes": self.notes, "stopped": self.stopped, "text": self.text()}
        return content | {"points": self.points, "of": self.total, "not_graded": self.not_graded}

    def text(self) -> str:
        """Return the report for a terminal, or for a page of nbgrader's."""
        lines = [self.lab, ""]
        for item in self.items:
            points = f"{item.points:3}" if item.graded else "  –"
            lines.append(f"{points} of {item.of}   {item.what}")
            lines += _wrapped(item.measured, "           ")
            lines += _wrapped(f"Hint: {item.hint}" if item.hint else "", "           ")
        lines += ["", *(line for note in self.notes for line in _wrapped(note, "")), ""]
        if self.stopped:
            lines += [*_wrapped(f"Your program was stopped: {self.stopped}.", ""), ""]
        lines.append(self.score())
        return "\n".join(lines)


def machine_note(machine: str) -> str:
    """Return what a row says of the machine that was measured in place of this one, or nothing."""
    return f" (of {machine}, not measured here)" if machine else ""


def picked(choice: Any) -> set[str]:
    """Return the letters that somebody picked; none if what was handed in is no list of letters."""
    if not isinstance(choice, list | str) or not all(isinstance(letter, str) for letter in choice):
        return set()
    return set(choice) if len(set(choice)) == len(choice) else set()


def with_warning(report: Report) -> str:
    """Return the text with what is not stopped, for those who grade others."""
    return "\n".join([report.text(), "", *_wrapped(NOT_STOPPED, "")])


def _wrapped(text: str, indent: str) -> list[str]:
    return [
        line
        for part in text.splitlines()
        for line in textwrap.wrap(
            part, 96, initial_indent=indent, subsequent_indent=indent, break_long_words=False
        )
    ]
