"""An experiment: a script that is asked inside stacks, in turns, and what its answers come to.

    parsing = Experiment(Path(__file__).with_name("parse.py"), figures=_figures)
    frame = parsing.measure(["json-today", "orjson-today"], [{"size": 1000}], repeats=3)
    faster = ratio("cpu_s", "orjson-today", "json-today", below=0.5)
    frame = parsing.measure(["json-today", "orjson-today"], [{"size": 1000}], until=faster)

The script reads what is asked from standard input, as one JSON object, and writes one as its answer
to standard output; it runs with the Python and the packages of a stack. The answer is stored raw.
What follows from it, `figures` says, each time that it is read.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import stacks
from casebook.errors import EnvironmentFailed, MissingInterpreter
from casebook.laboratory import lots, machines, measurements, rounds, scripts
from casebook.laboratory.progress import Progress
from casebook.laboratory.reference import NAME, unlikeness
from casebook.laboratory.rounds import as_list, in_turns
from casebook.stacks import Stack, digests, environments
from casebook.stacks.environments import Environment
from casebook.words import LIVE, ON, REFERENCE

#: What is asked of the script, by name, in values that JSON knows.
Asked = Mapping[str, Any]


@dataclass(frozen=True)
class Experiment:
    """What is asked, and how an answer is judged.

    Parameters:
        script: asked inside the stacks; the name of its folder is that of the case.
        figures: from what was asked and the answer to the columns of a row, or of several; it
            raises RunFailed for an answer that is wrong.
        within_s: seconds after which a script that has not answered is ended.
        made_of: what else makes an answer what it is, files or Using: a measurement is made again
            when it has changed. Modules beside the script that it imports count by themselves.
        lacks: says what this machine lacks for it beside stacks, and how to get it; empty where
            nothing.
        tells: gives what the script has to be told beside what was asked, such as where a program
            lies. It is no part of the question, and is not stored.
        variables: gives further environment variables of the script, which are no part of it
            either.
        beside: folders whose modules the script imports beside those of its own folder.
        ask: asks once, where that takes more than running the script, such as a server of its own
            beside it. From the environment of the stack and what is asked to the answer, of which
            it keeps what `figures` needs, in values that JSON knows; it raises RunFailed where what
            it does not keep is wrong. The script, how it is run (within_s, tells, variables) and
            which files say so (made_of) are then its own affair.
        draws: says of a question whether the script leaves something to chance. Then it is told
            the seed of this build (`lots`, laboratory/lots.py), which is no part of the question:
            another build is another sample. With another seed it is measured again.
        spares: says whether asking is too expensive just now: what a machine file has answers then,
            and only what none was asked is asked here.
    """

    script: Path
    figures: Callable[[Asked, dict[str, Any]], dict[str, Any] | list[dict[str, Any]]]
    within_s: float = 60
    made_of: tuple[Path | measurements.Using, ...] = ()
    lacks: Callable[[], str] = str
    tells: Callable[[], Asked] = dict
    variables: Callable[[], Mapping[str, str]] = dict
    beside: tuple[Path, ...] = ()
    ask: Callable[[Environment, Asked], dict[str, Any]] | None = None
    draws: Callable[[Asked], bool] = lambda asked: False
    spares: Callable[[], bool] = bool

    @rounds.takes_until
    def measure(
        self,
        names: str | Iterable[str],
        asked: Iterable[Asked] = ({},),
        repeats: int | range | None = None,
    ) -> pd.DataFrame:
        """Ask each stack each question, in turns.

        Parameters:
            names: one stack or several.
            asked: the questions, each as the script reads it.
            repeats: how many rounds, or which; 1 by default.
            until, looks: what is to be decided (laboratory/rounds.py).

        Returns the rows of each stack, question and round, one where `figures` gives one: stack,
        what was asked, repeat, what `figures` gives, source, instead, measured_at and
        measurements.COLUMNS.

        Where a stack or the script cannot run here, the answers are those of the machine in
        data/machines/ that was asked exactly the same and is most like this one; `instead` says
        which, unless it is the reference machine. Of a later round that it did not take, there is
        no row. Raises RunFailed, UsageError, and where no machine was asked the same, what
        environments.ensure raises.
        """
        ways = [(self, name, its) for name, its in product(dict.fromkeys(as_list(names)), asked)]
        return in_rounds(ways, 1 if repeats is None else repeats, self.script.stem)

    def _rows(self, stack: Stack, its: Asked, repeat: int) -> list[dict[str, Any]]:
        found = self._answer(stack, its, repeat)
        if found is None:
            return []
        same = {"stack": stack.name, **its, "repeat": repeat}
        columns = (*("source", "instead", "measured_at"), *measurements.COLUMNS)
        made = {name: found.get(name) for name in columns}
        figures = self.figures(its, found["answer"])
        several = [figures] if isinstance(figures, dict) else figures
        return [same | each | made for each in several]

    def _answer(self, stack: Stack, its: Asked, repeat: int) -> dict[str, Any] | None:
        """A stored answer, a new one, or another machine's: `answer`, and how it was made. None:
        a later round, which no other machine took."""
        case, parameters = self.script.parent.name, [dict(its), repeat]
        question = measurements.asked_of(self.script, case, stack, *parameters)
        if self.spares() and (found := self._recorded(question, its)):
            return found
        lacked = "" if environments.is_another_machine() else self.lacks()
        if lacked or not can_run(stack):
            found = self._recorded(question, its)
            if found is None and repeat == 1:
                return _lacking(lacked) if lacked else _missing(stack)
            return found
        environment = environments.ensure(stack)

        def ask() -> dict[str, Any]:
            answer = (self.ask or self._ask_script)(environment, its)
            self.figures(its, answer)  # a wrong one is not stored
            return {"answer": answer}

        files = [each for each in self.made_of if isinstance(each, Path)]
        more = [each for each in self.made_of if not isinstance(each, Path)]
        more += [measurements.Using(name, value) for name, value in self._drawn(its).items()]
        made_by = [*digests.executed(self.script, beside=self.beside), *files]
        key = measurements.key_of(made_by, case, stack, *parameters, *more)
        return measurements.stored_or_new(key, ask) | {"source": LIVE, "instead": ""}

    def _ask_script(self, environment: Environment, its: Asked) -> dict[str, Any]:
        told, variables = {**its, **self._drawn(its), **self.tells()}, dict(self.variables())
        return scripts.ask(
            environment, self.script, told, self.within_s, variables=variables, beside=self.beside
        )

    def _drawn(self, its: Asked) -> Asked:
        """Return what the script is told of chance."""
        return {"lots": lots.seed()} if self.draws(its) else {}

    def _recorded(self, question: list[Any], its: Asked) -> dict[str, Any] | None:
        """The answer of the machine most like this one that was asked the same in any round, so
        that all rounds come from one; None: nobody was, or that machine not in this round.

        What lacks something that `figures` needs today, or is wrong, is no answer.
        """
        for machine in sorted(machines.all_recorded(), key=lambda each: unlikeness(each.name)):
            asked = [each for each in machine.answers if each.get("asked")]
            same = [each for each in asked if each["asked"][:-1] == question[:-1]]
            same.sort(key=lambda each: each["asked"] != question)  # this round before the others
            if answer := next((each for each in same if self._is_answer(each, its)), None):
                instead = "" if machine.name == NAME else f"{ON}{machine.label}"
                found = answer | {"source": REFERENCE, "instead": instead}
                return found if answer["asked"] == question else None
        return None

    def _is_answer(self, recorded: dict[str, Any], its: Asked) -> bool:
        """Whether `figures` can say what follows from an answer of a machine file."""
        try:
            return bool(self.figures(its, recorded["answer"]))
        except Exception:  # a case's own function, given what a stranger or an older script wrote
            return False


def in_rounds(
    ways: Collection[tuple[Experiment, str, Asked]], repeats: int | range, called: str
) -> pd.DataFrame:
    """Ask in turns what several experiments ask, as `Experiment.measure` does for one.

    Parameters:
        ways: an experiment, the name of a stack, and what it is asked.
        repeats: how many rounds, or which.
        called: what is measured, in words.

    Returns and raises as `Experiment.measure`.
    """
    numbers = rounds.numbers(repeats)
    runnable(name for experiment, name, _ in ways if not experiment.spares())
    rows = []
    with Progress(len(ways) * len(numbers), called) as progress:
        for repeat, (experiment, name, its) in in_turns(ways, numbers):
            rows += experiment._rows(stacks.get(name), its, repeat)
            progress.step()
    return pd.DataFrame(rows)


def runnable(names: Iterable[str]) -> list[str]:
    """Return those stacks, by name, that can be measured here. Environments are made now, before
    anything is measured, and a bar says how many are left. Raises as `can_run`."""
    those = [stacks.get(name) for name in dict.fromkeys(names)]
    missing = {stack.name for stack in those if not environments.is_there(stack)}
    if not missing:
        return [stack.name for stack in those if can_run(stack)]
    able = []
    with Progress(len(missing), "making environments", "environment") as progress:
        for stack in those:
            able += [stack.name] * can_run(stack, progress.describe)
            if stack.name in missing:
                progress.step()
    return able


def can_run(stack: Stack, progress: Callable[[str], None] = environments.report) -> bool:
    """Whether a stack can be measured here: its environment is made, unless its interpreter is
    missing or it cannot be made. A reader's cell says so, in one line.

    Raises MissingInterpreter where CASEBOOK_REQUIRE names that, and EnvironmentFailed where it
    names anything.
    """
    try:
        environments.ensure(stack, progress)
    except MissingInterpreter as error:
        if stack.python in environments.required():
            raise
        _say_once(stack.python, f"{error} Recorded runs stand in where there are any.")
        return False
    except EnvironmentFailed as error:
        if environments.required():
            raise
        first = str(error).partition("\n")[0].rstrip(":.")
        more = "`python -m casebook stacks --make` tries again, and says more"
        _say_once(stack.lock, f"{first}, so recorded runs stand in where there are any ({more}).")
        return False
    return True


#: What was said of in this process: Pythons and locks.
_said: set[str] = set()


def _say_once(of: str, line: str) -> None:
    """Tell whoever runs a cell why it falls back. A page says it in its captions."""
    if of not in _said and os.environ.get("CASEBOOK_BUILD") != "1":
        _said.add(of)
        environments.report(line)


def _missing(stack: Stack) -> dict[str, Any]:
    environments.ensure(stack)  # raises, and says what is missing and how to get it
    raise AssertionError(f"{stack.name} can run here")


def _lacking(what: str) -> dict[str, Any]:
    raise MissingInterpreter(f"{what}. No machine in data/machines/ was asked the same.")
