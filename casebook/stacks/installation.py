"""Make one virtual environment: uv, or, for what uv does not know, virtualenv and its pip."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from casebook import digests, places
from casebook.errors import EnvironmentFailed
from casebook.stacks import Stack, installers, patches
from casebook.stacks.interpreters import Interpreter

#: Counted up when the way an environment is made changes.
RECIPE = 1

#: Packages of the old stacks that exist as source only. They are pure Python; everything else
#: must come ready-made, so that no compiler is needed and a machine without fails at once.
SOURCE_ONLY = ("grequests", "gevent-openssl", "twisted")

#: uv takes no source archive that is called as they were before PEP 625; pip does.
REFUSED_BY_UV = ("twisted==16.3.0",)

#: What an installer brings for itself.
_INSTALLERS = ("pip", "setuptools", "wheel")

#: The file that makes a folder an environment, written last.
STAMP = "casebook.json"

TIMEOUT_S = 900


def digest(stack: Stack, interpreter: Interpreter, folder: Path) -> str:
    """The digest of an environment where it is: of its contents, its place and its interpreter's.

    A virtual environment does not move.
    """
    return digests.of(contents(stack, interpreter), str(folder), str(interpreter.path))


def contents(stack: Stack, interpreter: Interpreter) -> str:
    """The digest of what an environment holds, wherever it is: lock, patch, interpreter, tools."""
    tools = ["build.txt"] + (["virtualenv.txt"] if _wants_pip(stack) else [])
    parts = {
        "recipe": RECIPE,
        "interpreter": [interpreter.version, interpreter.openssl],
        "lock": stack.lock_file.read_text(),
        "patch": _patch(stack).read_text() if stack.patch else "",
        "tools": [(places.ENV / name).read_text() for name in tools],
    }
    return digests.of(parts)


def stamp_of(folder: Path) -> dict | None:
    """What the stamp says (digest, python, openssl, versions, took_s); None if there is none."""
    try:
        return json.loads((folder / STAMP).read_text())
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class _Work:
    """One environment in the making."""

    stack: Stack
    interpreter: Interpreter
    folder: Path
    log: TextIO
    #: Descriptor of the lock, which the installers inherit: when this process is killed, the next
    #: one waits until what it had started has ended.
    lock: int

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"


def make(stack: Stack, interpreter: Interpreter, folder: Path, lock: int) -> None:
    """Make the environment of a stack in `folder`, in place of whatever is there.

    `lock` is the descriptor of a file lock that the caller holds. The installers' whole output is
    in <folder>.log. Raises EnvironmentFailed, and then leaves no folder behind.
    """
    started = time.monotonic()
    _remove(folder)
    try:
        with open(folder.parent / f"{folder.name}.log", "w") as log:
            work = _Work(stack, interpreter, folder, log, lock)
            if _wants_pip(stack):
                _virtualenv(work)
            else:
                _uv(work)
            packages = next(folder.glob("lib/python*/site-packages"))
            if stack.patch:
                patches.apply(_patch(stack), packages)
            _compile(work)
            _run(work, [work.python, "-c", "import ssl"])
        stamp = {
            "digest": digest(stack, interpreter, folder),
            "python": interpreter.version,
            "openssl": interpreter.openssl,
            "versions": installed(packages),
            "took_s": round(time.monotonic() - started, 1),
        }
        fresh = folder / f"{STAMP}.new"
        fresh.write_text(json.dumps(stamp, indent=1))
        os.replace(fresh, folder / STAMP)
    except BaseException:
        _remove(folder)
        raise


def installed(packages: Path | None) -> dict[str, str]:
    """Normalised name to version of what is installed in a folder (None: where this runs)."""
    found = importlib.metadata.distributions(path=[str(packages)] if packages else sys.path)
    names = {
        re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower(): each.version
        for each in found
        if each.metadata["Name"]
    }
    return {name: names[name] for name in sorted(names) if name not in _INSTALLERS}


def _patch(stack: Stack) -> Path:
    return places.ENV / "patches" / stack.patch


def _wants_pip(stack: Stack) -> bool:
    pins = {f"{name}=={version}" for name, version in stack.packages.items()}
    return stack.python == "2.7" or not pins.isdisjoint(REFUSED_BY_UV)


def _remove(folder: Path) -> None:
    # The stamp first: what is left of an interrupted removal is no environment.
    (folder / STAMP).unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)


def _uv(work: _Work) -> None:
    options = ["--no-project", "--python", work.interpreter.path]
    _run(work, installers.uv("venv", *options, work.folder))
    command = installers.uv("pip", "install", "--python", work.python, "--no-deps")
    command += ["--build-constraints", str(places.ENV / "build.txt")]
    if work.stack.python != "today":
        command += ["--only-binary", ":all:"]
        command += [option for name in SOURCE_ONLY for option in ("--no-binary", name)]
    _run(work, [*command, "--requirements", work.stack.lock_file])


def _virtualenv(work: _Work) -> None:
    """uv and the newest virtualenv do not know Python 2.7, nor uv the oldest archives; this one
    and the pip in it do."""
    tools = places.ENV / "virtualenv.txt"
    pin = next(line for line in tools.read_text().splitlines() if line.startswith("virtualenv=="))
    command = installers.uv("tool", "run", "--no-python-downloads")
    command += ["--python", str(Path(sys.executable).resolve()), "--constraints", str(tools)]
    command += ["--from", pin, "virtualenv", "--no-periodic-update"]
    _run(work, [*command, "--python", work.interpreter.path, work.folder])
    command = [str(work.python), "-m", "pip", "install", "--no-deps", "--no-compile"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--no-input"]
    command += ["--only-binary", ":all:", "--no-binary", ",".join(SOURCE_ONLY)]
    _run(work, [*command, "--requirement", work.stack.lock_file])


def _compile(work: _Work) -> None:
    """Compile the packages, after the patch: a compiled Python 2 file tells a changed source from
    the old one by whole seconds only.

    Some packages hold files for another Python; that these do not compile is nothing to report.
    """
    never_run = r"/(pip|setuptools|pkg_resources|wheel|tests)/"
    _execute(work, [work.python, "-m", "compileall", "-q", "-x", never_run, work.folder / "lib"])


def _run(work: _Work, command: list) -> None:
    """Run one command of an installation, or raise EnvironmentFailed with its last lines."""
    work.log.flush()
    before = Path(work.log.name).stat().st_size
    try:
        code = _execute(work, command)
        reason = f"exit code {code}" if code else ""
    except subprocess.TimeoutExpired:
        reason = f"no end after {TIMEOUT_S} s"
    if reason:
        output = Path(work.log.name).read_bytes()[before:].decode(errors="replace")
        lines = [line.rstrip() for line in output.splitlines() if line.strip()]
        raise EnvironmentFailed(_failure(work.stack, reason, lines[-8:]))


def _execute(work: _Work, command: list) -> int:
    """The exit code of a command; what it prints goes into the log.

    The caller's mirrors, proxies and certificates (UV_*, PIP_*, ...) stay in force; variables that
    lead an installer into another environment do not.
    """
    leads_away = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_TARGET",
                  "PIP_PREFIX", "PIP_ROOT", "PIP_NO_BINARY", "PIP_ONLY_BINARY")  # fmt: skip
    stays = {key: value for key, value in os.environ.items() if key not in leads_away}
    environ = installers.environ_of_pip(stays)
    environ["PIP_USER"] = "0"
    return subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL, stdout=work.log, stderr=subprocess.STDOUT,
        env=environ, cwd=places.ROOT, timeout=TIMEOUT_S, pass_fds=[work.lock],
    ).returncode  # fmt: skip


def _failure(stack: Stack, reason: str, lines: list[str]) -> str:
    advice = "Packages come from PyPI, or from the mirror in UV_DEFAULT_INDEX and PIP_INDEX_URL"
    if stack.python in ("2.7", "3.7"):
        advice += f"; those of 2019 are ready-made for a Python {stack.python} on x86-64 only"
    return (
        f"the environment of {stack.name} could not be made ({reason}):\n  "
        + "\n  ".join(lines)
        + f"\n{advice}. Run the same command again when that is mended."
    )
