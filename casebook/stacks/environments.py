"""The virtual environment of each stack: made once, rebuilt if its stamp does not match.

An environment is made in place (virtual environments do not move) and is valid only if its stamp
is there, which is written last and holds a digest of all that it depends on. Anything else is
thrown away and made again.
"""

import fcntl
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casebook import build, places, spans
from casebook.errors import EnvironmentFailed, MissingInterpreter, UsageError
from casebook.mistakes import for_readers
from casebook.stacks import Stack, digests, installation, interpreters, pythons
from casebook.stacks.installation import Place

#: The names of the processors for which the old packages have wheels.
X86_64 = ("x86_64", "AMD64")

#: How many environments are made at a time: most of it is waiting for packages.
TOGETHER = 4

#: If a book is written from a machine file, the Pythons of the machine that all answers come from:
#: then no environment is made, or needed. None: this machine's own.
_of_another: frozenset[str] | None = None


@dataclass(frozen=True)
class Environment:
    """A stack that can run."""

    stack: Stack
    #: The Python of the environment, to run probes with.
    python: Path
    #: Distribution name (normalised) to version, as installed.
    versions: dict[str, str]
    #: Such as "3.7.16".
    python_version: str


def report(line: str) -> None:
    """Report progress, by default: one line on standard error.

    In a reader's notebook, where that is red, on standard output: nothing is wrong.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    is_read = hasattr(shell, "kernel") and not build.in_build()
    print(line, file=sys.stdout if is_read else sys.stderr, flush=True)


def required() -> set[str]:
    """Return what CASEBOOK_REQUIRE names ("2.7,3.7,go-httpbin").

    If any of it is missing, that is a failure.
    """
    return {part.strip() for part in os.environ.get("CASEBOOK_REQUIRE", "").split(",")} - {""}


@for_readers
def find_interpreter(version: str) -> Path | None:
    """Return the path of a Python of this version ("2.7", "3.7", "today", "here"), or None."""
    interpreter = interpreters.find(version)
    return interpreter.path if interpreter else None


def of_another_machine(pythons: Iterable[str]) -> None:
    """Take the environments of another machine to be there, for the rest of this process.

    pythons: its versions ("2.7.18"); today's is always one. An Environment then has the versions of
    its lock, and no Python that could be run.
    """
    global _of_another
    _of_another = frozenset(pythons)


def is_another_machine() -> bool:
    """Return whether environments are another machine's, whose files nobody can read here."""
    return _of_another is not None


@for_readers
def ensure(
    stack: Stack, progress: Callable[[str], None] = report, retry: bool = False
) -> Environment:
    """Return the environment of a stack, which is made now unless there is a valid one.

    `progress` gets one line if it is made. retry: try even if it could not be made a moment ago.
    Raises MissingInterpreter, with the command that brings it, or EnvironmentFailed.
    """
    if _of_another is not None:
        return Environment(stack, Path("python"), stack.packages, _version_there(stack))
    place = _place(stack)
    if place.state() != "ready":
        if not retry and (reason := installation.failure(place)):
            raise EnvironmentFailed(reason)
        with _hold_lock(place, progress) as lock:
            # Another process may have made it while this one waited.
            if (state := place.state()) != "ready":
                description = f"Python {place.interpreter.version}, {len(stack.packages)} packages"
                if state == "changed":
                    description = (
                        f"{_named(place.changed())} changed since it was made ({description})"
                    )
                progress(f"making environment {place.name}: {description}")
                with spans.span(spans.ENVIRONMENT, place.name):
                    installation.build(place, lock)
    stamp = place.stamp()
    if stamp is None:  # two checkouts that share .casebook/ undo each other's environments
        raise EnvironmentFailed(
            f"another process is remaking environment {place.name}: run the command again."
        )
    return Environment(stack, place.python, stamp["versions"], place.interpreter.version)


def is_there(stack: Stack) -> bool:
    """Return whether nothing has to be made for a stack.

    Its environment is ready, or impossible here.
    """
    if _of_another is not None:
        return True
    try:
        place = _place(stack)
    except MissingInterpreter:
        return True
    return place.state() == "ready"


def _named(files: list[str]) -> str:
    names = ", ".join(files[:3])
    return f"{names} and {len(files) - 3} more" if len(files) > 3 else names


def ensure_all(
    stacks: Iterable[Stack],
    progress: Callable[[str], None] = report,
    on_done: Callable[[], None] = lambda: None,
) -> dict[str, Environment]:
    """Return the environments of several stacks, by stack name, made some at a time.

    on_done: called after each. A stack whose interpreter is missing is left out, with one line for
    each interpreter, unless CASEBOOK_REQUIRE names it: then MissingInterpreter. What could not be
    made before is tried again. EnvironmentFailed is raised after the others have been made, and
    names each that could not be.
    """
    missing: dict[str, str] = {}
    groups: dict[Path, list[Stack]] = {}
    for stack in stacks:
        try:
            groups.setdefault(_place(stack).folder, []).append(stack)
        except MissingInterpreter as error:
            if stack.python in required():
                raise
            missing.setdefault(stack.python, str(error))
    for line in missing.values():
        progress(line)

    def make_group(group: list[Stack]) -> list[Environment]:
        environments = []
        for stack in group:
            environments.append(ensure(stack, progress, retry=True))
            on_done()
        return environments

    pool = ThreadPoolExecutor(max_workers=TOGETHER)
    try:
        futures = [pool.submit(make_group, group) for group in groups.values()]
        wait(futures)
    finally:
        pool.shutdown(cancel_futures=True)
    failures = [failure for future in futures if (failure := future.exception())]
    if len(failures) > 1 and all(isinstance(failure, EnvironmentFailed) for failure in failures):
        firsts = [str(failure).partition("\n")[0].rstrip(":") for failure in failures[1:]]
        logs = places.ENVIRONMENTS / "*.log"
        summary = f"{len(firsts)} more, whose logs are {logs}:\n  " + "\n  ".join(firsts)
        raise EnvironmentFailed(f"{failures[0]}\n{summary}")
    return {
        environment.stack.name: environment for future in futures for environment in future.result()
    }


def status(stack: Stack) -> dict:
    """Describe the state of a stack without making anything.

    Keys: name, python (required), interpreter (version found, or None), state ("ready", "changed",
    "stale", "missing", "half-made", "no interpreter", "no lock"), environment (its name), packages
    (name to version), steps, patch, says, about, and executable (path of the environment's Python,
    or None).
    """
    row: dict[str, Any] = {"name": stack.name, "python": stack.python, "interpreter": None}
    row |= {"state": "no interpreter", "environment": "", "packages": {}}
    names = ("steps", "patch", "says", "about")
    row |= {name: getattr(stack, name) for name in names} | {"executable": None}
    try:
        row["packages"] = stack.packages
    except UsageError:
        return row | {"state": "no lock"}
    if interpreter := interpreters.find(stack.python):
        place = Place(stack, interpreter)
        row |= {"interpreter": interpreter.version, "state": place.state()}
        row["environment"] = place.name
        if row["state"] == "ready":
            row["packages"] = (place.stamp() or {})["versions"]
            row["executable"] = str(place.python)
    return row


def fingerprint(stack: Stack) -> str:
    """Return a digest of what a stack's environment holds: lock, patch, interpreter; not its path.

    Raises MissingInterpreter.
    """
    return digests.digest(stack.packages) if _of_another is not None else _place(stack).contents()


def _version_there(stack: Stack) -> str:
    """Return the Python of a stack on the other machine; "" if its file does not say."""
    if not stack.python[0].isdigit():
        return ""
    for version in _of_another or ():
        if version.startswith(f"{stack.python}."):
            return version
    raise MissingInterpreter(
        f"{stack.name} needs Python {stack.python}, which the machine of this book did not have."
    )


def failure(stack: Stack) -> str:
    """Return why a stack's environment could not be made at the last attempt.

    It is "" if it could, or if there was none. Raises MissingInterpreter.
    """
    return installation.last_failure(_place(stack)).get("why", "")


@for_readers
def clean_environ(environment: Environment) -> dict[str, str]:
    """Return the variables that a stack's process runs with: no proxies, no certificate paths.

    HOME is the environment itself, so that no ~/.netrc or user site-packages gets in; only stage-0,
    which is the reader's own environment, keeps the reader's.
    """
    binaries = environment.python.parent
    variables = {"PATH": os.pathsep.join([str(binaries), os.defpath]), "HOME": str(binaries.parent)}
    if environment.stack.python == "here":
        variables["HOME"] = os.path.expanduser("~")
    return variables | declared(environment.stack)


def declared(stack: Stack) -> dict[str, str]:
    """Return the same variables without the paths: part of what a measurement depends on."""
    always = {
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONNOUSERSITE": "1",
        # No compiled Python 2 files beside the probes.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if stack.python == "here":
        del always["PYTHONNOUSERSITE"]
    return always


def _place(stack: Stack) -> Place:
    interpreter = interpreters.find(stack.python)
    if not interpreter:
        raise MissingInterpreter(
            f"{stack.name} needs Python {stack.python}, which is not on the PATH and not in "
            f"pyenv, conda or uv: {pythons.how_to_get(stack.python)} brings it."
        )
    if stack.python in interpreters.LAST_RELEASES and interpreter.machine not in X86_64:
        raise MissingInterpreter(
            f"{stack.name} needs packages of 2019, which are ready-made for x86-64 processors "
            f"only, and this Python is for {interpreter.machine}. A Binder session or an x86-64 "
            "machine can run it."
        )
    return Place(stack, interpreter)


@contextmanager
def _hold_lock(place: Place, progress: Callable[[str], None]) -> Iterator[int]:
    """Hold the lock of an environment: one process (and thread) makes it at a time.

    Yields the lock's descriptor.
    """
    places.ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with open(places.ENVIRONMENTS / f"{place.name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that makes environment {place.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()
