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
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from casebook import places, stacks
from casebook.build import in_build, not_a_measurement
from casebook.errors import EnvironmentFailed
from casebook.stacks import Stack, digests, installers, patches
from casebook.stacks.interpreters import Interpreter

#: Counted up if the way an environment is made changes.
RECIPE = 1

#: Counted up if it changes how files get into an environment, but not what they hold: it is rebuilt
#: then, and what was measured in it stays valid. 2: copied, no longer linked from uv's cache.
PLACED = 2

#: The packages that an installer brings for itself.
_INSTALLERS = ("pip", "setuptools", "wheel")

#: What uv and pip say of a file whose digest is not in the lock.
_MISMATCHES = ("Hash mismatch", "DO NOT MATCH THE HASHES")

#: The file that makes a folder an environment, written last.
STAMP = "casebook.json"
#: The file with size and time of each installed file, as they were left: see Place.changed.
FILES = "casebook-files.json"
#: An environment is checked before it is used, and again after this many seconds.
CHECK_AGAIN_S = 60.0

TIMEOUT_S = 900
#: An environment that could not be made is tried again in the same process after this many seconds:
#: else each cell would wait for a network that is not there.
AGAIN_AFTER_S = 60.0


@dataclass(frozen=True)
class Place:
    """The environment of a stack: made, half-made or not made yet.

    That of a "here" stack is the one that runs this: it is always ready, and never made.
    """

    stack: Stack
    interpreter: Interpreter

    @property
    def name(self) -> str:
        """Return the name of its folder; "" for "here"."""
        name = self.stack.lock
        if self.stack.python == "today":
            name += "-py" + "".join(self.interpreter.version.split(".")[:2])
        if self.stack.patch:
            name += "+" + self.patch.stem
        return name

    @property
    def folder(self) -> Path:
        """Return where it stands."""
        return places.ENVIRONMENTS / self.name

    @property
    def log(self) -> Path:
        """Return the file with the whole output of the installers."""
        return Path(f"{self.folder}.log")

    @property
    def note(self) -> Path:
        """Return the file that says why it could not be made, as long as that is so."""
        return Path(f"{self.folder}.failed")

    @property
    def python(self) -> Path:
        """Return its Python."""
        return self.folder / "bin" / "python" if self.name else self.interpreter.path

    @property
    def patch(self) -> Path:
        """Return the patch that its packages get."""
        return places.ENV / "patches" / self.stack.patch

    @property
    def wants_pip(self) -> bool:
        """Check whether uv cannot install it."""
        pins = {f"{name}=={version}" for name, version in self.stack.packages.items()}
        return self.stack.python == "2.7" or not pins.isdisjoint(stacks.table()["refused_by_uv"])

    def contents(self) -> str:
        """Return the digest of its contents at any path: lock, patch, interpreter, tools."""
        interpreter = [self.interpreter.version, self.interpreter.openssl]
        if not self.name:
            there = installed(None)
            return digests.digest(
                interpreter, {name: there[name] for name in there if name not in of_the_tests()}
            )
        tools = ["build.txt"] + (["virtualenv.txt"] if self.wants_pip else [])
        return digests.digest(
            {
                "recipe": RECIPE,
                "interpreter": interpreter,
                # By its versions: they say what is there, and the digests that it is what it says.
                "lock": stacks.without_digests(self.stack.lock_file.read_text()),
                "patch": self.patch.read_text() if self.stack.patch else "",
                "tools": [
                    stacks.without_digests((places.ENV / name).read_text()) for name in tools
                ],
            }
        )

    def digest(self) -> str:
        """Return the digest of its contents and paths.

        A virtual environment does not move, and neither does its interpreter.
        """
        return digests.digest(self.contents(), str(self.folder), str(self.interpreter.path), PLACED)

    def stamp(self) -> dict | None:
        """Return the stamp (digest, python, openssl, versions, took_s), or None if there is none.

        "here" has no stamp; its versions alone are returned.
        """
        if not self.name:
            return {"versions": installed(None)}
        try:
            return json.loads((self.folder / STAMP).read_text())
        except (OSError, ValueError):
            return None

    def changed(self) -> list[str]:
        """Return the installed files that are no longer as they were left, or gone.

        They are paths within the environment. Added files, such as compiled ones, do not count.
        """
        try:
            noted = json.loads((self.folder / FILES).read_text())
        except (OSError, ValueError):
            return [FILES]
        current = _noted(self.folder)
        return sorted(name for name, recorded in noted.items() if current.get(name) != recorded)

    def _is_changed(self) -> bool:
        now_s, check = time.monotonic(), _checks.get(self.folder, (0, -CHECK_AGAIN_S))
        try:
            stamped_ns = (self.folder / STAMP).stat().st_mtime_ns
        except FileNotFoundError:  # another process is making it again
            return True
        if check[0] == stamped_ns and now_s - check[1] < CHECK_AGAIN_S:
            return False
        if self.changed():
            return True
        _checks[self.folder] = stamped_ns, now_s
        return False

    def state(self) -> str:
        """Return "ready", "changed", "stale", "half-made" or "missing"."""
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


#: When an environment was last found unchanged: folder -> (time of its stamp, time of the check).
_checks: dict[Path, tuple[int, float]] = {}


@not_a_measurement
def build(place: Place, lock: int) -> None:
    """Make an environment, in place of whatever is there.

    lock: the descriptor of a file lock that the caller holds. The installers inherit it: if this
    process is killed, the next one waits until they have ended. Raises EnvironmentFailed, and then
    leaves no folder behind, but a note, which `failure` reads.
    """
    try:
        place.note.unlink(missing_ok=True)
        _build(place, lock)
    except OSError as error:
        file = f"\n  {error.filename}" if error.filename else ""
        failed = EnvironmentFailed(
            f"the environment of {place.stack.name} could not be made: {error.strerror}{file}"
        )
        _take_note(place, str(failed))
        raise failed from None
    except EnvironmentFailed as error:
        _take_note(place, str(error))
        raise


def _take_note(place: Place, reason: str) -> None:
    note = {"digest": place.digest(), "process": os.getpid(), "at_s": time.time(), "why": reason}
    with contextlib.suppress(OSError):  # a full disk, which is the reason then
        place.note.write_text(json.dumps(note))


def last_failure(place: Place) -> dict[str, Any]:
    """Return the note of the last attempt, if the environment could not be made as it is to be now.

    The note says why, by which process, and when (at_s). Empty if it was made, or nobody tried.
    """
    try:
        note = json.loads(place.note.read_text())
    except (OSError, ValueError):
        return {}
    return note if note["digest"] == place.digest() else {}


def failure(place: Place) -> str:
    """Return why an environment could not be made, if another attempt would only take time.

    It would if this build tried, or this process did within AGAIN_AFTER_S. Else "". Else "".
    """
    if not (note := last_failure(place)):
        return ""
    recent = note["process"] == os.getpid() and time.time() - note["at_s"] < AGAIN_AFTER_S
    return note["why"] if recent or in_build() else ""


def _build(place: Place, lock: int) -> None:
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
    """Return size and time of modification (ns) of each file below an environment's lib.

    Left out is what Python compiles and what packages write there when they run.
    """
    stats: dict[str, list[int]] = {}
    for top, names, files in os.walk(folder / "lib"):
        names[:] = [name for name in names if name != "__pycache__"]
        for name in files:
            if not name.endswith((".pyc", "dropin.cache")):
                path = Path(top, name)
                with contextlib.suppress(FileNotFoundError):  # a link to nothing
                    status = path.stat()
                    stats[path.relative_to(folder).as_posix()] = [
                        status.st_size,
                        status.st_mtime_ns,
                    ]
    return stats


def installed(packages: Path | None) -> dict[str, str]:
    """Return normalised name to version of the packages in a folder (None: where this runs).

    The products' own sources do not count: tests have them on their path, and a build of a wheel
    leaves metadata beside them.
    """
    sources = places.ROOT / "packages"
    own_path = [entry for entry in sys.path if not Path(entry).is_relative_to(sources)]
    distributions = importlib.metadata.distributions(path=[str(packages)] if packages else own_path)
    packages_with_names = [
        distribution for distribution in distributions if distribution.metadata["Name"]
    ]
    versions = {
        canonicalize_name(distribution.metadata["Name"]): distribution.version
        for distribution in packages_with_names
    }
    return {name: versions[name] for name in sorted(versions) if name not in _INSTALLERS}


@cache
def of_the_tests() -> frozenset[str]:
    """Return the packages that env/test.lock has and requirements.txt has not.

    They come with the first `make test`. No client imports any of them, so that what was measured
    before it stays valid.
    """
    locks = places.ENV / "test.lock", places.ROOT / "requirements.txt"
    tests, book = (stacks.pins(lock.read_text()).keys() for lock in locks)
    return frozenset(map(canonicalize_name, tests - book))


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
    run(*command, "--require-hashes", "--requirements", place.stack.lock_file)


def _virtualenv(place: Place, run: Callable[..., None]) -> None:
    """Install with the old virtualenv and its pip.

    uv and today's virtualenv do not know Python 2.7, nor uv the oldest archives.
    """
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        tool = Path(folder, "virtualenv")
        run(*installers.uv("venv", "--no-project", "--python", sys.executable, tool))
        command = installers.uv("pip", "install", "--python", tool, "--require-hashes")
        run(*command, "--requirements", places.ENV / "virtualenv.txt")
        virtualenv = tool / "bin" / "virtualenv"
        run(virtualenv, "--no-periodic-update", "--python", place.interpreter.path, place.folder)
    options = "--no-deps --no-compile --no-build-isolation --disable-pip-version-check --no-input"
    command = ["-m", "pip", "install", *options.split()]
    command += ["--only-binary", ":all:", "--no-binary", ",".join(stacks.table()["source_only"])]
    run(place.python, *command, "--require-hashes", "--requirement", place.stack.lock_file)


def _run(place: Place, lock: int, *command: str | Path, may_fail: bool = False) -> None:
    """Run one command of an installation; its output goes into the log.

    The caller's mirrors, proxies and certificates (UV_*, PIP_*, ...) stay in force; variables that
    lead an installer into another environment do not.
    """
    leads_away = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_TARGET",
                  "PIP_PREFIX", "PIP_ROOT", "PIP_NO_BINARY", "PIP_ONLY_BINARY")  # fmt: skip
    variables = {key: value for key, value in os.environ.items() if key not in leads_away}
    environ = installers.environ_of(variables) | {"PIP_USER": "0"}
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
    lines = [line.rstrip() for line in place.log.read_text(errors="replace").splitlines()]
    if any(sign in line for line in lines for sign in _MISMATCHES):
        advice = (
            "A file is not the one whose digest is in the lock. Take packages from PyPI, or from a "
            "mirror that passes on PyPI's files: set UV_DEFAULT_INDEX and PIP_INDEX_URL"
        )
    else:
        advice = "Packages come from PyPI, or from the mirror in UV_DEFAULT_INDEX and PIP_INDEX_URL"
        if place.stack.python in ("2.7", "3.7"):
            python = place.stack.python
            advice += f"; those of 2019 are ready-made for a Python {python} on x86-64 only"
    return (
        f"the environment of {place.stack.name} could not be made ({reason}):\n  "
        + "\n  ".join([line for line in lines if line][-8:])
        + f"\n{advice}. Run the same command again when that is mended."
    )
