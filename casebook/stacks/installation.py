"""One stack's virtual environment: where it is, what is there, and how it is made.

uv makes it or, for what uv does not know, virtualenv and its pip.
"""

import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from casebook import places, stacks
from casebook.errors import EnvironmentFailed
from casebook.stacks import Stack, digests, installers, patches
from casebook.stacks.interpreters import Interpreter

#: Counted up when the way an environment is made changes.
RECIPE = 1

#: Counted up when it changes how files get into an environment, and not what they hold: it is made
#: again then, and what was measured in it stays. 2: copied, no longer linked from uv's cache.
PLACED = 2

#: What an installer brings for itself.
_INSTALLERS = ("pip", "setuptools", "wheel")

#: The file that makes a folder an environment, written last.
STAMP = "casebook.json"
#: Size and time of each installed file, as they were left: see Place.changed.
FILES = "casebook-files.json"
#: An environment is looked through before it is used, and again after so many seconds.
LOOK_AGAIN_S = 60.0

TIMEOUT_S = 900
#: What could not be made is tried again in the same process after so many seconds: each cell would
#: wait for a network that is not there.
AGAIN_AFTER_S = 60.0


@dataclass(frozen=True)
class Place:
    """The environment of a stack: made, half-made or yet to be made.

    That of a "here" stack is the one that runs this: it is always ready, and never made.
    """

    stack: Stack
    interpreter: Interpreter

    @property
    def name(self) -> str:
        """What its folder is called; empty for "here"."""
        name = self.stack.lock
        if self.stack.python == "today":
            name += "-py" + "".join(self.interpreter.version.split(".")[:2])
        if self.stack.patch:
            name += "+" + self.patch.stem
        return name

    @property
    def folder(self) -> Path:
        return places.ENVIRONMENTS / self.name

    @property
    def log(self) -> Path:
        """The whole output of the installers."""
        return Path(f"{self.folder}.log")

    @property
    def note(self) -> Path:
        """Why it could not be made, as long as it could not."""
        return Path(f"{self.folder}.failed")

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python" if self.name else self.interpreter.path

    @property
    def patch(self) -> Path:
        return places.ENV / "patches" / self.stack.patch

    @property
    def wants_pip(self) -> bool:
        pins = {f"{name}=={version}" for name, version in self.stack.packages.items()}
        return self.stack.python == "2.7" or not pins.isdisjoint(stacks.table()["refused_by_uv"])

    def contents(self) -> str:
        """The digest of what it holds, wherever it is: lock, patch, interpreter, tools."""
        interpreter = [self.interpreter.version, self.interpreter.openssl]
        if not self.name:
            return digests.of(interpreter, installed(None))
        tools = ["build.txt"] + (["virtualenv.txt"] if self.wants_pip else [])
        return digests.of(
            {
                "recipe": RECIPE,
                "interpreter": interpreter,
                "lock": self.stack.lock_file.read_text(),
                "patch": self.patch.read_text() if self.stack.patch else "",
                "tools": [(places.ENV / name).read_text() for name in tools],
            }
        )

    def digest(self) -> str:
        """The digest of its contents where they are: a virtual environment does not move, and
        neither does its interpreter."""
        return digests.of(self.contents(), str(self.folder), str(self.interpreter.path), PLACED)

    def stamp(self) -> dict | None:
        """What the stamp says (digest, python, openssl, versions, took_s); None if there is none.
        Of "here", which has none, the versions alone."""
        if not self.name:
            return {"versions": installed(None)}
        try:
            return json.loads((self.folder / STAMP).read_text())
        except (OSError, ValueError):
            return None

    def changed(self) -> list[str]:
        """The installed files that are no longer as they were left, or gone: paths within the
        environment. What was added, such as compiled files, does not count."""
        try:
            noted = json.loads((self.folder / FILES).read_text())
        except (OSError, ValueError):
            return [FILES]
        there = _noted(self.folder)
        return sorted(name for name, how in noted.items() if there.get(name) != how)

    def _is_changed(self) -> bool:
        now, looked = time.monotonic(), _looked.get(self.folder, (0, -LOOK_AGAIN_S))
        try:
            made = (self.folder / STAMP).stat().st_mtime_ns
        except FileNotFoundError:  # another process is making it again
            return True
        if looked[0] == made and now - looked[1] < LOOK_AGAIN_S:
            return False
        if self.changed():
            return True
        _looked[self.folder] = made, now
        return False

    def state(self) -> str:
        """ "ready", "changed", "stale", "half-made" or "missing"."""
        if not self.name:
            return "ready"
        if not self.folder.exists():
            return "missing"
        stamp = self.stamp()
        if stamp is None:
            return "half-made"
        if stamp["digest"] != self.digest() or not self.python.exists():
            return "stale"
        return "changed" if self._is_changed() else "ready"


#: When an environment was found unchanged last: folder -> (time of its stamp, time of the look).
_looked: dict[Path, tuple[int, float]] = {}


def make(place: Place, lock: int) -> None:
    """Make an environment, in place of whatever is there.

    lock: the descriptor of a file lock that the caller holds. The installers inherit it: when this
    process is killed, the next one waits until they have ended. Raises EnvironmentFailed, and then
    leaves no folder behind, but a note, which `failure` reads.
    """
    try:
        place.note.unlink(missing_ok=True)
        _make(place, lock)
    except OSError as error:
        named = f"\n  {error.filename}" if error.filename else ""
        failed = EnvironmentFailed(
            f"the environment of {place.stack.name} could not be made: {error.strerror}{named}"
        )
        _take_note(place, str(failed))
        raise failed from None
    except EnvironmentFailed as error:
        _take_note(place, str(error))
        raise


def _take_note(place: Place, why: str) -> None:
    note = {"digest": place.digest(), "process": os.getpid(), "at_s": time.time(), "why": why}
    with contextlib.suppress(OSError):  # a full disk, which is the reason then
        place.note.write_text(json.dumps(note))


def last_failure(place: Place) -> dict[str, Any]:
    """What was noted when an environment could not be made as it is to be now: why, by which
    process, and when (at_s). Empty where it was made, or nobody tried."""
    try:
        note = json.loads(place.note.read_text())
    except (OSError, ValueError):
        return {}
    return note if note["digest"] == place.digest() else {}


def failure(place: Place) -> str:
    """Why an environment could not be made, where trying again would only take time: this build
    tried, or this process did within AGAIN_AFTER_S. Empty otherwise."""
    if not (note := last_failure(place)):
        return ""
    recent = note["process"] == os.getpid() and time.time() - note["at_s"] < AGAIN_AFTER_S
    return note["why"] if recent or os.environ.get("CASEBOOK_BUILD") == "1" else ""


def _make(place: Place, lock: int) -> None:
    started = time.monotonic()
    _remove(place.folder)
    place.log.write_text("")
    run: Callable[..., None] = partial(_run, place, lock)
    try:
        (_virtualenv if place.wants_pip else _uv)(place, run)
        packages = next(place.folder.glob("lib/python*/site-packages"))
        if place.stack.patch:
            patches.apply(place.patch, packages)
        # Compiled after the patch: a compiled Python 2 file tells a changed source from the old
        # one by whole seconds only. Some packages hold files for another Python.
        never_run = r"/(pip|setuptools|pkg_resources|wheel|tests)/"
        compiler = [place.python, "-m", "compileall", "-q", "-x", never_run]
        run(*compiler, place.folder / "lib", may_fail=True)
        run(place.python, "-c", "import ssl")
        stamp = {
            "digest": place.digest(),
            "python": place.interpreter.version,
            "openssl": place.interpreter.openssl,
            "versions": installed(packages),
            "took_s": round(time.monotonic() - started, 1),
        }
        (place.folder / FILES).write_text(json.dumps(_noted(place.folder)))
        fresh = place.folder / f"{STAMP}.new"
        fresh.write_text(json.dumps(stamp, indent=1))
        os.replace(fresh, place.folder / STAMP)
    except BaseException:
        _remove(place.folder)
        raise


def _noted(folder: Path) -> dict[str, list[int]]:
    """Size and time of modification (ns) of each file below an environment's lib, without what
    Python compiles and what packages write there when they run."""
    found: dict[str, list[int]] = {}
    for top, names, files in os.walk(folder / "lib"):
        names[:] = [name for name in names if name != "__pycache__"]
        for name in files:
            if not name.endswith((".pyc", "dropin.cache")):
                path = Path(top, name)
                with contextlib.suppress(FileNotFoundError):  # a link to nothing
                    its = path.stat()
                    found[path.relative_to(folder).as_posix()] = [its.st_size, its.st_mtime_ns]
    return found


def installed(packages: Path | None) -> dict[str, str]:
    """Normalised name to version of what is installed in a folder (None: where this runs)."""
    found = importlib.metadata.distributions(path=[str(packages)] if packages else sys.path)
    named = [each for each in found if each.metadata["Name"]]
    versions = {canonicalize_name(each.metadata["Name"]): each.version for each in named}
    return {name: versions[name] for name in sorted(versions) if name not in _INSTALLERS}


def _remove(folder: Path) -> None:
    # The stamp first: what is left of an interrupted removal is no environment.
    (folder / STAMP).unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)


def _uv(place: Place, run: Callable[..., None]) -> None:
    python = ["--python", place.interpreter.path]
    run(*installers.uv("venv", "--no-project", *python, place.folder))
    command = installers.uv("pip", "install", "--python", place.python, "--no-deps")
    command += ["--build-constraints", str(places.ENV / "build.txt")]
    if place.stack.python != "today":
        command += ["--only-binary", ":all:"]
        command += [
            option for name in stacks.table()["source_only"] for option in ("--no-binary", name)
        ]
    run(*command, "--requirements", place.stack.lock_file)


def _virtualenv(place: Place, run: Callable[..., None]) -> None:
    """uv and the newest virtualenv do not know Python 2.7, nor uv the oldest archives; this one
    and the pip in it do."""
    tools = places.ENV / "virtualenv.txt"
    pin = next(line for line in tools.read_text().splitlines() if line.startswith("virtualenv=="))
    command = installers.uv("tool", "run", "--no-python-downloads")
    command += ["--python", str(Path(sys.executable).resolve()), "--constraints", str(tools)]
    command += ["--from", pin, "virtualenv", "--no-periodic-update"]
    run(*command, "--python", place.interpreter.path, place.folder)
    options = "--no-deps --no-compile --no-build-isolation --disable-pip-version-check --no-input"
    command = ["-m", "pip", "install", *options.split()]
    command += ["--only-binary", ":all:", "--no-binary", ",".join(stacks.table()["source_only"])]
    run(place.python, *command, "--requirement", place.stack.lock_file)


def _run(place: Place, lock: int, *command: str | Path, may_fail: bool = False) -> None:
    """Run one command of an installation; what it prints goes into the log.

    The caller's mirrors, proxies and certificates (UV_*, PIP_*, ...) stay in force; variables that
    lead an installer into another environment do not.
    """
    leads_away = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_TARGET",
                  "PIP_PREFIX", "PIP_ROOT", "PIP_NO_BINARY", "PIP_ONLY_BINARY")  # fmt: skip
    stays = {key: value for key, value in os.environ.items() if key not in leads_away}
    environ = installers.environ_of(stays) | {"PIP_USER": "0"}
    with place.log.open("ab") as log:
        try:
            code = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=environ, cwd=places.ROOT, timeout=TIMEOUT_S, pass_fds=[lock],
            ).returncode  # fmt: skip
            reason = f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            reason = f"no end after {TIMEOUT_S} s"
    if reason and not may_fail:
        raise EnvironmentFailed(_failure(place, reason))


def _failure(place: Place, reason: str) -> str:
    advice = "Packages come from PyPI, or from the mirror in UV_DEFAULT_INDEX and PIP_INDEX_URL"
    if place.stack.python in ("2.7", "3.7"):
        advice += f"; those of 2019 are ready-made for a Python {place.stack.python} on x86-64 only"
    lines = [line.rstrip() for line in place.log.read_text(errors="replace").splitlines()]
    return (
        f"the environment of {place.stack.name} could not be made ({reason}):\n  "
        + "\n  ".join([line for line in lines if line][-8:])
        + f"\n{advice}. Run the same command again when that is mended."
    )
