"""The store of measurements: each answer in a file named by the digest of all that made it."""

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from casebook import places, spans
from casebook.build import in_build, not_a_measurement
from casebook.errors import CasebookError, NotInFile, RunFailed, ServerFailed, VisitFailed
from casebook.laboratory import conditions, progress, reservation, scripts
from casebook.stacks import Stack, commands, digests, environments

#: The form in which measurements are stored. Another form, another number: old ones are then not
#: found, and are made again.
SCHEMA = 2

#: What each measurement says of how it was made: columns of every frame of measurements.
#: commit: of this project; schema: SCHEMA; key: the name in the store ("" when not stored).
COLUMNS = (*conditions.COLUMNS, "commit", "schema", "key")


#: The errors that say what became of a measurement: a wrong response is an answer, too.
ANSWERS = (RunFailed, VisitFailed, ServerFailed)
#: Where an answer has the name of such an error and its message.
FAILED = "failed"

#: What NotInFile says.
_NO_ANSWER = "its machine file has no answer to this"


def utc_now() -> str:
    """Return the time: UTC, ISO 8601, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def commit() -> str:
    """Return the commit of this project, with "-dirty" if files differ; "unknown" without git.

    What was asked upstream may differ: it bears its own day, and no measurement depends on it.
    """
    pathspecs = [".", f":(exclude){places.UPSTREAM}"]
    try:
        name = _git("describe", "--always", "--abbrev=12").strip()
        return name + "-dirty" * bool(_git("status", "--porcelain", "-uno", "--", *pathspecs))
    except RunFailed:
        return "unknown"


@not_a_measurement
def _git(*arguments: str) -> str:
    """Return what git says of this checkout. Raises RunFailed."""
    return commands.output(["git", *arguments], "git", 60, os.environ, folder=places.ROOT)


@cache
def code() -> str:
    """Return this checkout's commit, and a digest of what runs in it.

    Two machines that return the same measure the same.
    """
    return f"{commit()} {digests.digest([places.PACKAGE, places.ENV])}"


@dataclass(frozen=True)
class Using:
    """Something beside code and stacks that a measurement depends on, such as a tool.

    Parameters:
        name: what to call it in a message when it has changed.
        value: its version or digest, as JSON; or a function that gives it, if that is only known
            where it can be measured.
    """

    name: str
    value: Any

    def digestible(self) -> Any:
        """Return the value itself."""
        return self.value() if callable(self.value) else self.value


@dataclass(frozen=True)
class Key:
    """What an answer is stored under. Two keys are equal if their names are.

    Parameters:
        name: in the store: a digest of all that the answer depends on.
        question: as JSON: the first file that is executed, the names of stacks with their steps,
            and the other values. It is the same on every machine.
        depends_on: name -> digest of everything else that the answer depends on.
    """

    name: str
    question: list[Any] = field(compare=False)
    depends_on: dict[str, str] = field(compare=False)

    @property
    def question_digest(self) -> str:
        """Return a digest of the question."""
        return digests.digest(self.question)


#: The answers of another machine by what was asked, where a book is written from a machine file;
#: None: this machine is asked.
_answers: dict[str, dict[str, Any]] | None = None


def answer_from(answers: Iterable[dict[str, Any]]) -> None:
    """Answer questions in this process from a machine file from now on, and measure nothing.

    Parameters:
        answers: of the file.
    """
    global _answers
    _answers = {digests.digest(answer["asked"]): answer for answer in answers if "asked" in answer}


def answered(question: list[Any]) -> dict[str, Any] | None:
    """Look up a question in the machine file. Returns a copy of the answer; None if it has none."""
    answer = (_answers or {}).get(digests.digest(question))
    if answer is None:
        return None
    copy = json.loads(json.dumps(answer))  # so that a caller changes only her own
    return {name: value for name, value in copy.items() if name != "asked"}


def key_of(made_by: Iterable[Path], *values: Any) -> Key:
    """Compute the name of a measurement in the store: a digest of everything it depends on.

    Parameters:
        made_by: the files that it executes. The first names the kind of question; the files that
            run every script are added.
        values: stacks, which count with their environments, steps and variables; Using; JSON.

    Raises MissingInterpreter.
    """
    first, *further = made_by
    if _answers is not None:  # what answered there is not known, and does not matter
        question = question_of(first, *values)
        return Key(digests.digest(question), question, {})
    files = [first, *further, *digests.files(scripts, commands)]
    depends_on = {_package_path(path): digests.digest(path) for path in files}
    parts: list[Any] = []
    for value in values:
        if isinstance(value, Stack):
            holds, declared = environments.fingerprint(value), environments.declared(value)
            depends_on[f"the environment of {value.name}"] = holds
            depends_on[f"the variables of {value.name}"] = digests.digest(declared)
            parts.append([value.name, value.steps, value.patch, holds, declared])
        elif isinstance(value, Using):
            depends_on[value.name] = digests.digest(value.digestible())
            parts.append(value.digestible())
        else:
            parts.append(value)
    return Key(digests.digest(SCHEMA, files, parts), question_of(first, *values), depends_on)


def question_of(first: Path, *values: Any) -> list[Any]:
    """Return the question alone, as Key has it. Parameters as for `key_of`; needs no Python."""
    parts = [
        [value.name, *value.steps] if isinstance(value, Stack) else value
        for value in values
        if not isinstance(value, Using)
    ]
    return json.loads(json.dumps([first.stem, *parts]))


def _package_path(path: Path) -> str:
    inside = path.is_relative_to(places.PACKAGE)
    return path.relative_to(places.PACKAGE).as_posix() if inside else path.name


#: How many measurements are under way in this process; its threads may measure at the same time.
_under_way, _counting = 0, threading.Lock()


def is_under_way() -> bool:
    """Check whether this process is measuring something that will be stored."""
    return _under_way > 0


@contextlib.contextmanager
def _mark_under_way() -> Iterator[None]:
    global _under_way
    with _counting:
        _under_way += 1
    try:
        yield
    finally:
        with _counting:
            _under_way -= 1


def new(measure: Callable[[], dict[str, Any]], key: str = "", label: str = "") -> dict[str, Any]:
    """Measure now.

    Parameters:
        measure: what is called.
        key: the name under which the result will be stored, if it will.
        label: what is measured, for the account of a build's time.

    Returns the result with COLUMNS and `measured_at`. Raises NotInFile while a book is written
    from a machine file.
    """
    if _answers is not None:
        raise NotInFile(_NO_ANSWER)
    with reservation.shared(), _mark_under_way(), spans.span(spans.MEASUREMENT, label):
        result = conditions.watched(measure)
    return {"measured_at": utc_now()} | result | {"commit": commit(), "schema": SCHEMA, "key": key}


def stored_or_new(key: Key, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return a stored measurement, or measure now and store the result.

    Parameters:
        key: of `key_of`.
        measure: what is called where nothing is stored.

    Only a build reads the store; while a book is written from a machine file, the answer is that of
    the file, and a failure is raised again. A measurement that fails with one of ANSWERS is stored
    as a failure, for machine files, and is always tried again. Raises as `new`, and what `measure`
    raises.
    """
    if _answers is not None:
        recorded = answered(key.question)
        if not recorded:  # before any lock: nothing can be measured
            raise NotInFile(_NO_ANSWER)
        if failure := _failure_of(recorded):
            raise failure
        return recorded
    answer = load(key.name)
    if answer is None:
        with _exclude_chapters(key.name):
            answer = load(key.name) or _measure_and_store(key, measure)
    return answer


@contextlib.contextmanager
def _exclude_chapters(name: str) -> Iterator[None]:
    """Let no other chapter of a build measure the same meanwhile (a context manager).

    A chapter waits with the shared lock, under which a measurement needs nothing more: the two
    cannot wait for each other.
    """
    if not in_build():
        yield
        return
    with reservation.shared():
        places.LOCAL.mkdir(parents=True, exist_ok=True)
        path = places.LOCAL / f"measuring-{digests.digest(name)}.lock"
        with open(path, "w") as lock:
            with spans.span(spans.WAIT):
                fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                path.unlink(missing_ok=True)  # those who wait for it have it open


def _measure_and_store(key: Key, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Measure now, and store the result or the failure."""
    progress.tell_changed(changed_since(key))
    try:
        answer = new(measure, key.name, key.question[0])
    except ANSWERS as error:
        # For a machine file: a chapter may show the error. Here it is always tried again.
        failed = {FAILED: [type(error).__name__, str(error)], "measured_at": utc_now()}
        save(key.name, failed | {"commit": commit(), "schema": SCHEMA}, key)
        raise
    # Another process may have measured the same meanwhile: the book shows one of the two.
    answer = load(key.name) or answer
    save(key.name, answer, key)
    return answer


def _failure_of(answer: dict[str, Any]) -> CasebookError | None:
    """Return the error that a measurement of a machine file ended in; None if it has an answer."""
    failed = answer.get(FAILED)
    if not isinstance(failed, list) or len(failed) != 2:
        return None
    name, message = map(str, failed)
    return next((kind(message) for kind in ANSWERS if kind.__name__ == name), None)


def changed_since(key: Key) -> list[str]:
    """Name what has changed since the same question was last answered here.

    Returns nothing if it never was, or if only the answer is gone.
    """
    try:
        previous = json.loads(_note_of(key).read_text())
    except (OSError, ValueError):
        return []
    names = previous.keys() | key.depends_on.keys()
    return sorted(name for name in names if previous.get(name) != key.depends_on.get(name))


def _note_of(key: Key) -> Path:
    """Return the file that says what the newest answer to a question depends on."""
    return places.RUNS / "depends_on" / f"{key.question_digest}.json"


def answer_in(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the raw answer of what is stored.

    Older machine files have its fields, or the version of its Python alone, beside those that say
    how it was made.
    """
    if "answer" not in stored:
        return stored
    return {name: stored[name] for name in ("python",) if name in stored} | stored["answer"]


def of_class(kind: type, stored: dict[str, Any]) -> dict[str, Any]:
    """Select the fields of a dataclass from what is stored."""
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in stored.items() if name in names}


def load(name: str) -> dict[str, Any] | None:
    """Read the stored object of this name.

    Returns None if there is none that can be read, if the measurement failed, and for a reader's
    cell, which measures anew: stored measurements count in a build only.
    """
    if not in_build():
        return None
    try:
        answer = json.loads((places.RUNS / f"{name}.json").read_text())
    except (FileNotFoundError, ValueError):
        return None
    answer.pop("asked", None)
    return None if FAILED in answer else answer


def save(name: str, value: dict[str, Any], key: Key | None = None) -> None:
    """Store an object. A reader never sees half of one.

    Parameters:
        name: of the file, without its suffix.
        value: as JSON.
        key: the question is stored with the object, and what it depends on for `changed_since`.
    """
    _write(places.RUNS / f"{name}.json", value | ({"asked": key.question} if key else {}))
    if key:
        _write(_note_of(key), key.depends_on)


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.part")
    draft.write_text(json.dumps(value))
    draft.replace(path)
