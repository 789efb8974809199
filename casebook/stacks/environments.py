"""The virtual environment of each stack: made once, made again when it is not to be believed.

An environment is made in place (virtual environments do not move) and believed only when its
stamp is there, which is written last and holds a digest of all that made it. Anything else is
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

from casebook import places, spans
from casebook.errors import EnvironmentFailed, MissingInterpreter, UsageError
from casebook.stacks import Stack, digests, installation, interpreters, pythons
from casebook.stacks.installation import Place

#: What processors are called for which the old packages have wheels.
X86_64 = ("x86_64", "AMD64")

#: How many environments are made at a time: what takes long is to wait for packages.
TOGETHER = 4

#: The Pythons of the machine that all answers come from, where a book is written from a machine
#: file: then no environment is made, or needed. None: this machine's own.
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


def say(line: str) -> None:
    """The default progress: one line on standard error. In a reader's notebook, where that is red,
    on standard output: nothing is wrong."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    is_read = hasattr(shell, "kernel") and os.environ.get("CASEBOOK_BUILD") != "1"
    print(line, file=sys.stdout if is_read else sys.stderr, flush=True)


def required() -> set[str]:
    """What CASEBOOK_REQUIRE names ("2.7,3.7,go-httpbin"): missing, it is a failure."""
    return {part.strip() for part in os.environ.get("CASEBOOK_REQUIRE", "").split(",")} - {""}


def find_interpreter(version: str) -> Path | None:
    """The path of a Python of this version ("2.7", "3.7", "today", "here"), or None."""
    found = interpreters.find(version)
    return found.path if found else None


def of_another_machine(pythons: Iterable[str]) -> None:
    """From now on in this process, believe that the environments of another machine are there.

    pythons: its versions ("2.7.18"); today's is always one. An Environment then says what its
    lock says, and has no Python that could be run.
    """
    global _of_another
    _of_another = frozenset(pythons)


def is_another_machine() -> bool:
    """Whether environments are those of another machine, whose files nobody can read here."""
    return _of_another is not None


def ensure(stack: Stack, progress: Callable[[str], None] = say, again: bool = False) -> Environment:
    """The environment of a stack, made now if there is none that can be believed.

    `progress` gets one line when one is made. again: try also what could not be made a moment ago.
    Raises MissingInterpreter, with the command that brings it, or EnvironmentFailed.
    """
    if _of_another is not None:
        return Environment(stack, Path("python"), stack.packages, _version_there(stack))
    place = _place(stack)
    if place.state() != "ready":
        if not again and (why := installation.failure(place)):
            raise EnvironmentFailed(why)
        with _alone(place, progress) as lock:
            # Another process may have made it while this one waited.
            if (state := place.state()) != "ready":
                of = f"Python {place.interpreter.version}, {len(stack.packages)} packages"
                if state == "changed":
                    of = f"{_named(place.changed())} changed since it was made ({of})"
                progress(f"making environment {place.name}: {of}")
                with spans.span(spans.ENVIRONMENT, place.name):
                    installation.make(place, lock)
    stamp = place.stamp()
    if stamp is None:  # two checkouts that share .casebook/ undo each other's environments
        raise EnvironmentFailed(
            f"another process is remaking environment {place.name}: run the command again."
        )
    return Environment(stack, place.python, stamp["versions"], place.interpreter.version)


def is_there(stack: Stack) -> bool:
    """Whether nothing has to be made for a stack: its environment is ready, or cannot be had."""
    if _of_another is not None:
        return True
    try:
        place = _place(stack)
    except MissingInterpreter:
        return True
    return place.state() == "ready"


def _named(files: list[str]) -> str:
    shown = ", ".join(files[:3])
    return f"{shown} and {len(files) - 3} more" if len(files) > 3 else shown


def ensure_all(
    stacks: Iterable[Stack],
    progress: Callable[[str], None] = say,
    done: Callable[[], None] = lambda: None,
) -> dict[str, Environment]:
    """The environments of several stacks, by stack name, made some at a time. done: called after
    each.

    A stack whose interpreter is missing is left out, with one line for each interpreter, unless
    CASEBOOK_REQUIRE names it: then MissingInterpreter. What could not be made before is tried
    again. EnvironmentFailed is raised after the others have been made, and names each that could
    not be.
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

    def together(group: list[Stack]) -> list[Environment]:
        made = []
        for stack in group:
            made.append(ensure(stack, progress, again=True))
            done()
        return made

    pool = ThreadPoolExecutor(max_workers=TOGETHER)
    try:
        futures = [pool.submit(together, group) for group in groups.values()]
        wait(futures)
    finally:
        pool.shutdown(cancel_futures=True)
    failures = [failure for future in futures if (failure := future.exception())]
    if len(failures) > 1 and all(isinstance(each, EnvironmentFailed) for each in failures):
        firsts = [str(each).partition("\n")[0].rstrip(":") for each in failures[1:]]
        logs = places.ENVIRONMENTS / "*.log"
        more = f"{len(firsts)} more, whose logs are {logs}:\n  " + "\n  ".join(firsts)
        raise EnvironmentFailed(f"{failures[0]}\n{more}")
    return {each.stack.name: each for future in futures for each in future.result()}


def status(stack: Stack) -> dict:
    """What there is of a stack, without making anything.

    Keys: name, python (wanted), interpreter (version found, or None), state ("ready", "changed",
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
    """A digest of all that a stack's environment holds: lock, patch, interpreter. Not of its place.

    Raises MissingInterpreter.
    """
    return digests.of(stack.packages) if _of_another is not None else _place(stack).contents()


def _version_there(stack: Stack) -> str:
    """The Python of a stack on the other machine; empty where its file does not say."""
    if not stack.python[0].isdigit():
        return ""
    for version in _of_another or ():
        if version.startswith(f"{stack.python}."):
            return version
    raise MissingInterpreter(
        f"{stack.name} needs Python {stack.python}, which the machine of this book did not have."
    )


def failure(stack: Stack) -> str:
    """Why a stack's environment could not be made when that was tried last; empty where it could,
    or where nobody has tried. Raises MissingInterpreter."""
    return installation.last_failure(_place(stack)).get("why", "")


def clean_environ(environment: Environment) -> dict[str, str]:
    """The declared variables that a stack's process runs with: no proxies, no certificate paths.

    HOME is the environment itself, so that no ~/.netrc or user site-packages gets in; only
    stage-0, which is the reader's own environment, keeps hers.
    """
    binaries = environment.python.parent
    its = {"PATH": os.pathsep.join([str(binaries), os.defpath]), "HOME": str(binaries.parent)}
    if environment.stack.python == "here":
        its["HOME"] = os.path.expanduser("~")
    return its | declared(environment.stack)


def declared(stack: Stack) -> dict[str, str]:
    """The same without what says where things are: part of what makes a measurement."""
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
    found = interpreters.find(stack.python)
    if not found:
        raise MissingInterpreter(
            f"{stack.name} needs Python {stack.python}, which is not on the PATH and not in "
            f"pyenv, conda or uv: {pythons.how_to_get(stack.python)} brings it."
        )
    if stack.python in interpreters.LAST_RELEASES and found.machine not in X86_64:
        raise MissingInterpreter(
            f"{stack.name} needs packages of 2019, which are ready-made for x86-64 processors "
            f"only, and this Python is for {found.machine}. A Binder session or an x86-64 "
            "machine can run it."
        )
    return Place(stack, found)


@contextmanager
def _alone(place: Place, progress: Callable[[str], None]) -> Iterator[int]:
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
