"""An experiment: a script that is asked inside stacks, in turns, and what its answers come to.

    parsing = Experiment(Path(__file__).with_name("parse.py"), figures=_figures)
    frame = parsing.measure(["json-today", "orjson-today"], [{"size": 1000}], repeats=3)
    faster = ratio("cpu_s", "orjson-today", "json-today", below=0.5)
    frame = parsing.measure(["json-today", "orjson-today"], [{"size": 1000}], until=faster)

The script reads what is asked from standard input, as one JSON object, and writes one as its answer
to standard output; it runs with the Python and the packages of a stack. The answer is stored raw.
What follows from it, `figures` says, each time that it is read.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import build, stacks
from casebook.errors import EnvironmentFailed, MissingInterpreter
from casebook.laboratory import lots, machine_files, measurements, rounds, scripts
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
    draws: Callable[[Asked], bool] = lambda parameters: False
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
        variants = [
            (self, name, parameters)
            for name, parameters in product(dict.fromkeys(as_list(names)), asked)
        ]
        return in_rounds(variants, 1 if repeats is None else repeats, self.script.stem)

    def _rows(self, stack: Stack, parameters: Asked, repeat: int) -> list[dict[str, Any]]:
        measurement = self._answer(stack, parameters, repeat)
        if measurement is None:
            return []
        common = {"stack": stack.name, **parameters, "repeat": repeat}
        columns = (*("source", "instead", "measured_at"), *measurements.COLUMNS)
        provenance = {name: measurement.get(name) for name in columns}
        figures = self.figures(parameters, measurement["answer"])
        rows = [figures] if isinstance(figures, dict) else figures
        return [common | figures | provenance for figures in rows]

    def _answer(self, stack: Stack, parameters: Asked, repeat: int) -> dict[str, Any] | None:
        """Return a stored answer, a new one, or another machine's, and how it was made. None: a
        later round, which no other machine took.
        """
        case, details = self.script.parent.name, [dict(parameters), repeat]
        question = measurements.asked_of(self.script, case, stack, *details)
        if self.spares() and (stand_in := self._recorded(question, parameters)):
            return stand_in
        lacked = "" if environments.is_another_machine() else self.lacks()
        if lacked or not can_run(stack):
            stand_in = self._recorded(question, parameters)
            if stand_in is None and repeat == 1:
                return _lacking(lacked) if lacked else _missing(stack)
            return stand_in
        environment = environments.ensure(stack)

        def get_answer() -> dict[str, Any]:
            answer = (self.ask or self._ask_script)(environment, parameters)
            self.figures(parameters, answer)  # a wrong one is not stored
            return {"answer": answer}

        files = [dependency for dependency in self.made_of if isinstance(dependency, Path)]
        extras = [dependency for dependency in self.made_of if not isinstance(dependency, Path)]
        extras += [
            measurements.Using(name, value) for name, value in self._lots(parameters).items()
        ]
        made_by = [*digests.executed(self.script, beside=self.beside), *files]
        key = measurements.key_of(made_by, case, stack, *details, *extras)
        return measurements.stored_or_new(key, get_answer) | {"source": LIVE, "instead": ""}

    def _ask_script(self, environment: Environment, parameters: Asked) -> dict[str, Any]:
        spec, variables = (
            {**parameters, **self._lots(parameters), **self.tells()},
            dict(self.variables()),
        )
        return scripts.ask(
            environment, self.script, spec, self.within_s, variables=variables, beside=self.beside
        )

    def _lots(self, parameters: Asked) -> Asked:
        """Return what the script is told of chance."""
        return {"lots": lots.seed()} if self.draws(parameters) else {}

    def _recorded(self, question: list[Any], parameters: Asked) -> dict[str, Any] | None:
        """Return the answer of the machine most like this one that was asked the same in any round,
        so that all rounds come from one; None: nobody was, or that machine not in this round.

        What lacks something that `figures` needs today, or is wrong, is no answer.
        """
        for machine in sorted(
            machine_files.all_recorded(), key=lambda candidate: unlikeness(candidate.name)
        ):
            answers = [answer for answer in machine.answers if answer.get("asked")]
            candidates = [answer for answer in answers if answer["asked"][:-1] == question[:-1]]
            candidates.sort(key=lambda answer: answer["asked"] != question)  # this round first
            if answer := next(
                (candidate for candidate in candidates if self._is_answer(candidate, parameters)),
                None,
            ):
                instead = "" if machine.name == NAME else f"{ON}{machine.label}"
                stand_in = answer | {"source": REFERENCE, "instead": instead}
                return stand_in if answer["asked"] == question else None
        return None

    def _is_answer(self, recorded: dict[str, Any], parameters: Asked) -> bool:
        """Check whether `figures` can say what follows from an answer of a machine file."""
        try:
            return bool(self.figures(parameters, recorded["answer"]))
        except Exception:  # a case's own function, given what a stranger or an older script wrote
            return False


def in_rounds(
    variants: Collection[tuple[Experiment, str, Asked]], repeats: int | range, label: str
) -> pd.DataFrame:
    """Ask in turns what several experiments ask, as `Experiment.measure` does for one.

    Parameters:
        variants: an experiment, the name of a stack, and its parameters.
        repeats: how many rounds, or which.
        label: what is measured, in words.

    Returns and raises as `Experiment.measure`.
    """
    numbers = rounds.numbers(repeats)
    runnable(name for experiment, name, _ in variants if not experiment.spares())
    rows = []
    with Progress(len(variants) * len(numbers), label) as progress:
        for repeat, (experiment, name, parameters) in in_turns(variants, numbers):
            rows += experiment._rows(stacks.get(name), parameters, repeat)
            progress.step()
    return pd.DataFrame(rows)


def runnable(names: Iterable[str]) -> list[str]:
    """Return those stacks, by name, that can be measured here. Environments are made now, before
    anything is measured, and a bar says how many are left. Raises as `can_run`.
    """
    chosen = [stacks.get(name) for name in dict.fromkeys(names)]
    missing = {stack.name for stack in chosen if not environments.is_there(stack)}
    if not missing:
        return [stack.name for stack in chosen if can_run(stack)]
    available = []
    with Progress(len(missing), "making environments", "environment") as progress:
        for stack in chosen:
            available += [stack.name] * can_run(stack, progress.describe)
            if stack.name in missing:
                progress.step()
    return available


def can_run(stack: Stack, progress: Callable[[str], None] = environments.report) -> bool:
    """Check whether a stack can be measured here: its environment is made, unless its interpreter
    is missing or it cannot be made. A reader's cell says so, in one line.

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
        hint = "`python -m casebook stacks --make` tries again, and says more"
        _say_once(stack.lock, f"{first}, so recorded runs stand in where there are any ({hint}).")
        return False
    return True


#: What was reported in this process: Pythons and locks.
_reported: set[str] = set()


def _say_once(subject: str, line: str) -> None:
    """Tell the reader of a cell why it falls back. A page says it in its captions."""
    if subject not in _reported and not build.in_build():
        _reported.add(subject)
        environments.report(line)


def _missing(stack: Stack) -> dict[str, Any]:
    environments.ensure(stack)  # raises, and says what is missing and how to get it
    raise AssertionError(f"{stack.name} can run here")


def _lacking(requirement: str) -> dict[str, Any]:
    raise MissingInterpreter(f"{requirement}. No machine in data/machines/ was asked the same.")
