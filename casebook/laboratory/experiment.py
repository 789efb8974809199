"""An experiment: a script that is asked inside stacks, in turns, and what its answers come to.

    parsing = Experiment(Path(__file__).with_name("parse.py"), figures=_figures)
    frame = parsing.measure(["json-today", "orjson-today"], [{"size": 1000}], repeats=3)
    faster = ratio("cpu_s", "orjson-today", "json-today", below=0.5)
    frame = parsing.measure(["json-today", "orjson-today"], [{"size": 1000}], until=faster)

The script reads what is asked from standard input, as one JSON object, and writes one as its answer
to standard output; it runs with the Python and the packages of a stack. The answer is stored raw.
What follows from it, `figures` says, each time that it is read.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import build, stacks
from casebook.errors import CasebookError, EnvironmentFailed, MissingInterpreter
from casebook.laboratory import lots, measurements, reference, rounds, scripts
from casebook.laboratory.progress import Progress
from casebook.laboratory.rounds import as_list, in_turns
from casebook.stacks import Stack, digests, environments
from casebook.stacks.environments import Environment
from casebook.words import LIVE, REFERENCE

#: What is asked of the script, by name, in values that JSON knows.
Parameters = Mapping[str, Any]

#: What each row of an experiment says of how its answer came about.
PROVENANCE = ("source", "instead", "measured_at", *measurements.COLUMNS)


@dataclass(frozen=True)
class Measurement:
    """One answer, and how it came about.

    Parameters:
        stacks: those that were asked.
        parameters: what was asked; of a stand-in, what the other machine was asked.
        repeat: the number of the round; None if it belongs to no round.
        answer: raw, as the store keeps it.
        provenance: the columns PROVENANCE.
    """

    stacks: tuple[Stack, ...]
    parameters: Parameters
    repeat: int | None
    answer: dict[str, Any]
    provenance: dict[str, Any]


def _no_text() -> str:
    return ""


def _no_values() -> Parameters:
    return {}


def never(_parameters: Parameters) -> bool:
    """Say no, whatever is asked."""
    return False


@dataclass(frozen=True)
class Experiment:
    """What is asked, and how an answer is judged.

    Parameters:
        script: run inside the stacks. Its stem and the name of its folder begin the question, so
            no two probes share a stem.
        figures: from what was asked and the answer to the columns of a row, or of several; it
            raises RunFailed for an answer that is wrong.
        within_s: seconds after which a script that has not answered is ended.
        depends_on: what else makes an answer what it is, files or Using: if it changes, the
            measurement is made again. Modules beside the script, which it imports, count anyway.
        lacks: says what this machine lacks for it beside stacks, and how to get it; empty where
            nothing.
        tells: gives what the script has to be told beside what was asked, such as where a program
            lies. It is no part of the question, and is not stored.
        variables: gives further environment variables of the script, which are no part of the
            question either.
        beside: folders whose modules the script imports beside those of its own folder.
        ask: asks once, if that takes more than running the script, such as a server beside it. It
            takes the environments of the stacks and the parameters, and returns what `figures`
            needs, in values that JSON knows. It raises RunFailed if something is wrong that it does
            not return. It runs the script itself, so within_s, tells and variables are not used,
            and depends_on names the files that it rests on.
        is_random: says of parameters whether the script leaves something to chance. Then it is told
            the seed of this build (`lots`, laboratory/lots.py), which is no part of the question:
            another build is another sample. With another seed it is measured again.
        spares: says of parameters whether asking is too expensive just now. Then an answer in a
            machine file stands in, and only what no machine was asked is asked here.
        nearest: the names of numbers among the parameters. If no machine was asked exactly the
            same, the answer for the nearest number stands in, and `instead` says so.
        form: gives the parts of a question from its stacks, its parameters and the round, if
            machine files have them in another form than the script's folder, the stacks, the
            parameters, the round.
        excluded: modules beside the script that this kind of run does not execute.
        is_stored: False if what answers cannot be known, such as a server of the caller's.
    """

    script: Path
    figures: Callable[[Parameters, dict[str, Any]], dict[str, Any] | list[dict[str, Any]]]
    within_s: float = 60
    depends_on: tuple[Path | measurements.Using, ...] = ()
    lacks: Callable[[], str] = _no_text
    tells: Callable[[], Parameters] = _no_values
    variables: Callable[[], Mapping[str, str]] = _no_values
    beside: tuple[Path, ...] = ()
    ask: Callable[..., dict[str, Any]] | None = None
    is_random: Callable[[Parameters], bool] = never
    spares: Callable[[Parameters], bool] = never
    nearest: tuple[str, ...] = ()
    form: Callable[[Sequence[Any], dict[str, Any], Any], Sequence[Any]] | None = None
    excluded: frozenset[str] = frozenset()
    is_stored: bool = True

    @rounds.takes_until
    def measure(
        self,
        names: str | Iterable[str],
        parameter_sets: Iterable[Parameters] = ({},),
        repeats: int | range | None = None,
    ) -> pd.DataFrame:
        """Ask each stack each set of parameters, in turns.

        Parameters:
            names: one stack or several.
            parameter_sets: what is asked, each as the script reads it.
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
            for name, parameters in product(dict.fromkeys(as_list(names)), parameter_sets)
        ]
        return in_rounds(variants, 1 if repeats is None else repeats, self.script.stem)

    def answer(
        self, targets: Sequence[Stack], parameters: Parameters, repeat: int = 1
    ) -> Measurement | None:
        """Return a stored answer, a new one, or that of another machine.

        Parameters:
            targets: the stacks that are needed, in the order of the environments that `ask` takes.
            parameters: what is asked.
            repeat: the number of the round.

        Returns None for a later round that no other machine took. Raises as `measure`.
        """
        exactly = range(repeat, repeat + 1)
        if self.spares(parameters) and (stand_in := self.recorded(targets, parameters, exactly)):
            return stand_in[0]
        if missing := self._obstacle(targets):
            if stand_in := self.recorded(targets, parameters, exactly):
                return stand_in[0]
            if repeat == 1:
                raise missing
            return None
        environments_of = [environments.ensure(stack) for stack in targets]

        def measure() -> dict[str, Any]:
            ask: Callable[..., dict[str, Any]] = self.ask or self._ask_script
            answer = ask(*environments_of, parameters)
            self.figures(parameters, answer)  # a wrong one is not stored
            return {"answer": answer}

        if self.is_stored:
            stored = measurements.stored_or_new(self._key(targets, parameters, repeat), measure)
        else:
            stored = measurements.new(measure)
        return _measurement(targets, parameters, repeat, stored | {"source": LIVE, "instead": ""})

    def first_answer(self, targets: Sequence[Stack], parameters: Parameters) -> Measurement:
        """Return the answer of the first round, which is never None. Raises as `answer`."""
        measurement = self.answer(targets, parameters)
        assert measurement is not None
        return measurement

    def recorded(
        self,
        targets: Sequence[Stack],
        parameters: Parameters,
        repeats: int | range | None = None,
        nearest: Mapping[str, Collection[Any]] | None = None,
    ) -> list[Measurement]:
        """Find what the machine in data/machines/ that is most like this one answered.

        Parameters:
            targets: the stacks that were asked.
            parameters: what was asked.
            repeats: how many rounds, or which; None: all that were taken.
            nearest: numbers of which others may stand in: by name, all that are wanted
                (reference.stand_ins says what is taken), or none, if any will do. None: those of
                the experiment, as they are in parameters.

        Returns the answers of that one machine, in the order in which it gave them. What lacks
        something that `figures` needs today, or is wrong, is no answer.
        """
        if nearest is None:
            nearest = {name: [parameters[name]] for name in self.nearest}
        unknown = {name: reference.unknown(name) for name in nearest}
        question = self.question(targets, {**parameters, **unknown}, reference.unknown("repeat"))
        numbers = None if repeats is None else rounds.numbers(repeats)

        def stand_in_parameters(values: dict[str, Any]) -> Parameters:
            return {**parameters, **{name: values[name] for name in nearest}}

        def is_answer(values: dict[str, Any], answer: dict[str, Any]) -> bool:
            try:
                return bool(
                    self.figures(stand_in_parameters(values), measurements.answer_in(answer))
                )
            except Exception:  # a case's own function, given what a stranger or older code wrote
                return False

        return [
            _measurement(
                targets,
                stand_in_parameters(stand_in.values),
                stand_in.values.get("repeat"),
                stand_in.answer | {"source": REFERENCE, "instead": stand_in.instead},
            )
            for stand_in in reference.stand_ins(question, nearest, is_answer)
            if numbers is None or stand_in.values.get("repeat", numbers[0]) in numbers
        ]

    def rows(self, measurement: Measurement) -> list[dict[str, Any]]:
        """Return what follows from a measurement: one row, or several."""
        stack = {"stack": measurement.stacks[0].name} if measurement.stacks else {}
        common = {**stack, **measurement.parameters, "repeat": measurement.repeat}
        figures = self.figures(measurement.parameters, measurement.answer)
        several = [figures] if isinstance(figures, dict) else figures
        return [common | figures | measurement.provenance for figures in several]

    def _obstacle(self, targets: Sequence[Stack]) -> CasebookError | None:
        """Return the error that says what this machine lacks, if it lacks something."""
        lacked = "" if environments.is_another_machine() else self.lacks()
        if lacked:
            return MissingInterpreter(f"{lacked}. No machine in data/machines/ was asked the same.")
        for stack in targets:
            if not can_run(stack):
                try:
                    environments.ensure(stack)
                except CasebookError as error:  # says what is missing and how to get it
                    return error
        return None

    def _ask_script(self, environment: Environment, parameters: Parameters) -> dict[str, Any]:
        spec = {**parameters, **self._lots(parameters), **self.tells()}
        return scripts.answer_of(
            environment, self.script, spec, self.within_s,
            variables=dict(self.variables()), beside=self.beside,
        )  # fmt: skip

    def _lots(self, parameters: Parameters) -> Parameters:
        """Return what the script is told of chance."""
        return {"lots": lots.seed()} if self.is_random(parameters) else {}

    def question(
        self, targets: Sequence[Stack], parameters: Parameters, repeat: Any = 1
    ) -> list[Any]:
        """Return the question as machine files have it."""
        return measurements.question_of(self.script, *self._parts(targets, parameters, repeat))

    def _parts(
        self, targets: Sequence[Stack], parameters: Parameters, repeat: Any
    ) -> Sequence[Any]:
        if self.form:
            return self.form(targets, dict(parameters), repeat)
        return self.script.parent.name, *targets, dict(parameters), repeat

    def _key(
        self, targets: Sequence[Stack], parameters: Parameters, repeat: int
    ) -> measurements.Key:
        files = [dependency for dependency in self.depends_on if isinstance(dependency, Path)]
        extras = [dependency for dependency in self.depends_on if not isinstance(dependency, Path)]
        extras += [
            measurements.Using(name, value) for name, value in self._lots(parameters).items()
        ]
        executed = [self.script]
        if self.script.suffix == ".py":
            executed = digests.executed(self.script, self.excluded, self.beside)
        return measurements.key_of(
            [*executed, *files], *self._parts(targets, parameters, repeat), *extras
        )


def _measurement(
    targets: Sequence[Stack], parameters: Parameters, repeat: int | None, stored: dict[str, Any]
) -> Measurement:
    provenance = {name: stored.get(name) for name in PROVENANCE}
    return Measurement(
        tuple(targets), parameters, repeat, measurements.answer_in(stored), provenance
    )


#: An experiment, its stacks (one or several, by name or as they are; or none), its parameters.
Variant = tuple[Experiment, str | Sequence[str | Stack], Parameters]


def in_rounds(variants: Collection[Variant], repeats: int | range, label: str) -> pd.DataFrame:
    """Ask in turns what several experiments ask, as `Experiment.measure` does for one.

    Parameters:
        variants: an experiment, the name of a stack (or several stacks, or none), and its
            parameters.
        repeats: how many rounds, or which.
        label: what is measured, in words.

    Returns and raises as `Experiment.measure`.
    """
    rows = []
    for experiment, measurement in answers_in_rounds(variants, repeats, label):
        rows += experiment.rows(measurement)
    return pd.DataFrame(rows)


def answers_in_rounds(
    variants: Iterable[Variant], repeats: int | range, label: str
) -> list[tuple[Experiment, Measurement]]:
    """Ask as `in_rounds` does, and return the raw answers, each with its experiment."""
    numbers = rounds.numbers(repeats)
    chosen = [
        (experiment, tuple(map(_stack, as_list(names))), parameters)
        for experiment, names, parameters in variants
    ]
    runnable(
        stack
        for experiment, targets, parameters in chosen
        if not experiment.spares(parameters)
        for stack in targets
    )
    answers = []
    with Progress(len(chosen) * len(numbers), label) as progress:
        for repeat, (experiment, targets, parameters) in in_turns(chosen, numbers):
            if measurement := experiment.answer(targets, parameters, repeat):
                answers.append((experiment, measurement))
            progress.step()
    return answers


def _stack(name: str | Stack) -> Stack:
    return name if isinstance(name, Stack) else stacks.get(name)


def runnable(names: Iterable[str | Stack]) -> list[str]:
    """Return those stacks, by name, that can be measured here.

    Environments are made now, before anything is measured, and a bar says how many are left. Raises
    as `can_run`.
    """
    chosen = list(dict.fromkeys(map(_stack, names)))
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
    """Check whether a stack can be measured here.

    Its environment is made, unless its interpreter is missing or it cannot be made. A reader's cell
    says so, in one line.

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
