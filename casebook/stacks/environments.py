"""The virtual environment of each stack: made once, made again when it is not to be believed.

An environment is made in place (virtual environments do not move) and believed only when its
stamp is there, which is written last and holds a digest of all that made it. Anything else is
thrown away and made again.
"""

import fcntl
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casebook import places
from casebook.errors import EnvironmentFailed, MissingInterpreter
from casebook.stacks import Stack, digests, installation, interpreters
from casebook.stacks.interpreters import Interpreter

#: What processors are called for which the old packages have wheels.
X86_64 = ("x86_64", "AMD64")

#: How many environments are made at a time: what takes long is to wait for packages.
TOGETHER = 4


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
    """The default progress: one line on standard error."""
    print(line, file=sys.stderr, flush=True)


def required() -> set[str]:
    """What CASEBOOK_REQUIRE names ("2.7,3.7,go-httpbin"): missing, it is a failure."""
    return {part.strip() for part in os.environ.get("CASEBOOK_REQUIRE", "").split(",")} - {""}


def find_interpreter(version: str) -> Path | None:
    """The path of a Python of this version ("2.7", "3.7", "today", "here"), or None."""
    found = interpreters.find(version)
    return found.path if found else None


def ensure(stack: Stack, progress: Callable[[str], None] = say) -> Environment:
    """The environment of a stack, made now if there is none that can be believed.

    `progress` gets one line when one is made. Raises MissingInterpreter, with the command that
    brings it, or EnvironmentFailed.
    """
    interpreter = _interpreter(stack)
    if stack.python == "here":
        versions = installation.installed(None)
        return Environment(stack, interpreter.path, versions, interpreter.version)
    folder = _folder(stack, interpreter)
    if _state(stack, interpreter, folder) != "ready":
        with _alone(folder, progress) as lock:
            # Another process may have made it while this one waited.
            if _state(stack, interpreter, folder) != "ready":
                of = f"Python {interpreter.version}, {len(stack.packages)} packages"
                progress(f"making environment {folder.name}: {of}")
                installation.make(stack, interpreter, folder, lock)
    stamp = installation.stamp_of(folder)
    if stamp is None:  # two checkouts that share .casebook/ undo each other's environments
        raise EnvironmentFailed(
            f"another process is remaking environment {folder.name}: run the command again."
        )
    return Environment(stack, _python(folder), stamp["versions"], interpreter.version)


def ensure_all(
    stacks: Iterable[Stack],
    progress: Callable[[str], None] = say,
    done: Callable[[], None] = lambda: None,
) -> dict[str, Environment]:
    """The environments of several stacks, by stack name, made some at a time. done: called after
    each.

    A stack whose interpreter is missing is left out, with one line for each interpreter, unless
    CASEBOOK_REQUIRE names it: then MissingInterpreter. EnvironmentFailed is raised after the
    others have been made.
    """
    missing: dict[str, str] = {}
    groups: dict[Path, list[Stack]] = {}
    for stack in stacks:
        try:
            groups.setdefault(_folder(stack, _interpreter(stack)), []).append(stack)
        except MissingInterpreter as error:
            if stack.python in required():
                raise
            missing.setdefault(stack.python, str(error))
    for line in missing.values():
        progress(line)

    def together(group: list[Stack]) -> list[Environment]:
        made = []
        for stack in group:
            made.append(ensure(stack, progress))
            done()
        return made

    pool = ThreadPoolExecutor(max_workers=TOGETHER)
    try:
        futures = [pool.submit(together, group) for group in groups.values()]
        wait(futures)
    finally:
        pool.shutdown(cancel_futures=True)
    return {each.stack.name: each for future in futures for each in future.result()}


def status(stack: Stack) -> dict:
    """What there is of a stack, without making anything.

    Keys: name, python (wanted), interpreter (version found, or None), state ("ready", "stale",
    "missing", "half-made", "no interpreter"), environment (its name), packages (name to version),
    steps, patch, says, about, and executable (path of the environment's Python, or None).
    """
    row: dict[str, Any] = {"name": stack.name, "python": stack.python, "interpreter": None}
    row |= {"state": "no interpreter", "environment": ""}
    names = ("packages", "steps", "patch", "says", "about")
    row |= {name: getattr(stack, name) for name in names} | {"executable": None}
    interpreter = interpreters.find(stack.python)
    if not interpreter:
        return row
    row["interpreter"] = interpreter.version
    if stack.python == "here":
        row["state"], row["packages"] = "ready", installation.installed(None)
        return row | {"executable": str(interpreter.path)}
    folder = _folder(stack, interpreter)
    row |= {"state": _state(stack, interpreter, folder), "environment": folder.name}
    if row["state"] == "ready":
        row["packages"] = (installation.stamp_of(folder) or {})["versions"]
        row["executable"] = str(_python(folder))
    return row


def fingerprint(stack: Stack) -> str:
    """A digest of all that a stack's environment holds: lock, patch, interpreter. Not of its place.

    Raises MissingInterpreter.
    """
    interpreter = _interpreter(stack)
    if stack.python == "here":
        its = [interpreter.version, interpreter.openssl]
        return digests.of(its, installation.installed(None))
    return installation.contents(stack, interpreter)


def clean_environ(environment: Environment) -> dict[str, str]:
    """The declared variables that a stack's process runs with: no proxies, no certificate paths.

    HOME is the environment itself, so that no ~/.netrc or user site-packages gets in; only
    stage-0, which is the reader's own environment, keeps hers.
    """
    binaries = environment.python.parent
    declared = {
        "PATH": os.pathsep.join([str(binaries), os.defpath]),
        "HOME": str(binaries.parent),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONNOUSERSITE": "1",
        # No compiled Python 2 files beside the probes.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if environment.stack.python == "here":
        del declared["PYTHONNOUSERSITE"]
        declared["HOME"] = os.path.expanduser("~")
    return declared


def _interpreter(stack: Stack) -> Interpreter:
    found = interpreters.find(stack.python)
    if not found:
        raise MissingInterpreter(
            f"{stack.name} needs Python {stack.python}, which is not on the PATH and not in "
            f"pyenv, conda or uv: {interpreters.how_to_get(stack.python)} brings it."
        )
    if stack.python in interpreters.LAST_RELEASES and platform.machine() not in X86_64:
        raise MissingInterpreter(
            f"{stack.name} needs packages of 2019, which are ready-made for x86-64 processors "
            f"only, and this machine is {platform.machine()}. A Binder session or an x86-64 "
            "machine can run it."
        )
    return found


def _folder(stack: Stack, interpreter: Interpreter) -> Path:
    name = stack.lock
    if stack.python == "today":
        name += "-py" + "".join(interpreter.version.split(".")[:2])
    if stack.patch:
        name += "+" + Path(stack.patch).stem
    return places.ENVIRONMENTS / name


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _state(stack: Stack, interpreter: Interpreter, folder: Path) -> str:
    if not folder.exists():
        return "missing"
    stamp = installation.stamp_of(folder)
    if stamp is None:
        return "half-made"
    same = stamp["digest"] == installation.digest(stack, interpreter, folder)
    return "ready" if same and _python(folder).exists() else "stale"


@contextmanager
def _alone(folder: Path, progress: Callable[[str], None]) -> Iterator[int]:
    """Hold the lock of an environment: one process (and thread) makes it at a time.

    Yields the lock's descriptor.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{folder.name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that makes environment {folder.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()
