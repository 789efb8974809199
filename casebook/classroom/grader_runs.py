"""The runs that the grader makes itself, from which it knows what is right.

    runs = GraderRuns(Path(__file__))
    run = runs.answer(["h2-today"], {"what": "a shelf", "n": 10}, measure, read)

They are made now. If a stack cannot run here, or if a machine file is named, exactly the same
question is put to the file, and each line of the report that rests on its answer says so.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from casebook import places, stacks
from casebook.errors import NotGraded
from casebook.laboratory import experiment, machine_files, measurements

T = TypeVar("T")

#: The stack of the book's own Python, which is always there: in it runs what needs no package.
OWN = "stage-0"


def files() -> list[Path]:
    """Return the machine files that come with the labs: the graders' runs on other machines."""
    return sorted((places.ROOT / "classroom" / "machines").glob(f"*{machine_files.SUFFIX}"))


@dataclass
class GraderRuns:
    """Where the truth of a lab comes from.

    script: the lab's checks, whose name is part of every question. file: the machine file that is
    asked and nobody else; None: this machine, and if it cannot, `files()`.
    """

    script: Path
    file: machine_files.Machine | None = None
    #: Whether a stack runs here, by name, as it was when it was first asked.
    _runs: dict[str, bool] = field(default_factory=dict)

    def can_run(self, *names: str) -> bool:
        """Check whether all of these stacks run here.

        If one does not, a line on standard error says why.
        """
        for name in names:
            if name not in self._runs:
                self._runs[name] = experiment.can_run(stacks.get(name))
        return all(self._runs[name] for name in names)

    def room(self, *names: str) -> str:
        """Return the stack in which to run what needs no package.

        That is the first of these, or the book's own Python if one of them does not run here.
        """
        return names[0] if self.can_run(*names) else OWN

    def answer(
        self,
        names: Iterable[str],
        parameters: dict[str, Any],
        measure: Callable[[], dict[str, Any]],
        read: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> dict[str, Any]:
        """Return the result of one of the grader's own runs.

        names: the stacks that it needs; parameters: what sets this run apart, in values that JSON
        knows; measure: makes the run here and returns its raw answer; read: turns a raw answer into
        what the checks use, and raises anything if it is none.

        Returns what `read` gives, and `machine`: where it was measured, empty for here. Raises
        NotGraded if no file has an answer.
        """
        names = list(names)
        if self.file is None and self.can_run(*names):
            return read(self._measure(names, parameters, measure)) | {"machine": ""}
        question = self._question(names, parameters)
        for machine in self._machines:
            for answer in machine.answers:
                if answer.get("asked") == question and (values := _read(read, answer)) is not None:
                    return values | {"machine": machine.label}
        raise self._unanswered(names)

    def draw(
        self,
        names: Iterable[str],
        fresh: Callable[[], T],
        convert: Callable[[dict[str, Any]], T],
        **required: Any,
    ) -> T:
        """Draw the parameters of a run at random.

        They are fresh ones or, if a machine file is asked, some that it answers.

        convert: makes them from the parameters stored there, and raises anything if it cannot;
        required: the values that those must have.
        """
        names = list(names)
        if self.file is None and self.can_run(*names):
            return fresh()
        kind = self._question(names, {})[:-1]
        for machine in self._machines:
            choices = []
            for question in (answer.get("asked") or [None] for answer in machine.answers):
                parameters = (
                    question[-1] if question[:-1] == kind and isinstance(question[-1], dict) else {}
                )
                if parameters and all(
                    parameters.get(name) == value for name, value in required.items()
                ):
                    with contextlib.suppress(Exception):  # a file may come from a stranger
                        choices.append(convert(parameters))
            if choices:
                return secrets.choice(choices)
        raise self._unanswered(names)

    def _measure(
        self, _names: list[str], _parameters: dict[str, Any], measure: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        return measure()

    def _question(self, names: list[str], parameters: dict[str, Any]) -> list[Any]:
        return measurements.question_of(self.script, *map(stacks.get, names), parameters)

    @cached_property
    def _machines(self) -> list[machine_files.Machine]:
        if self.file:
            return [self.file]
        return sorted(
            map(machine_files.read, files()),
            key=lambda machine: machine_files.unlikeness(machine.about),
        )

    def _unanswered(self, names: list[str]) -> NotGraded:
        owner = f"{self.file.name} has" if self.file else "the files of classroom/machines have"
        return NotGraded(
            f"nothing was graded: {owner} no answer to what this lab asks of {' and '.join(names)}."
            " `python -m casebook machine labs FILE`, on a machine that can run it, writes one."
        )


@dataclass
class RecordedRuns(GraderRuns):
    """The grader's runs, which keep what they measured, as answers of a machine file."""

    answers: list[dict[str, Any]] = field(default_factory=list)

    def _measure(
        self, names: list[str], parameters: dict[str, Any], measure: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        record = measurements.new(lambda: {"answer": measure()})
        self.answers.append(record | {"asked": self._question(names, parameters)})
        return record["answer"]


def _read(read: Callable[[dict[str, Any]], dict[str, Any]], answer: dict[str, Any]) -> Any:
    """Return what a lab reads of an answer; None if it is none.

    A machine file may come from a stranger.
    """
    try:
        return read(answer["answer"])
    except Exception:
        return None
