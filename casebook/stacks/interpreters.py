"""Find the Pythons of this machine.

They are on the PATH, in pyenv, in conda and its kin, in uv, or installed by `pythons.py`; on a
laptop, they came with the book's folder.

A file that is called python2.7 proves nothing (pyenv's shims exist and fail): each candidate is
run and asked for its version. One without `ssl` or `zlib` cannot run a stack and does not count.
"""

import json
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from casebook import places
from casebook.build import not_a_measurement
from casebook.errors import RunFailed
from casebook.stacks import commands, installers

_QUESTION = """
import json, platform, ssl, sys, zlib
print(json.dumps([platform.python_implementation(), platform.python_version(),
                  "%d.%d" % sys.version_info[:2], sys.executable, ssl.OPENSSL_VERSION,
                  platform.machine()]))
"""

#: The last release of each family that has ended: pyenv needs its full number.
LAST_RELEASES = {"2.7": "2.7.18", "3.7": "3.7.17"}

#: The file that says that all packages of a Python in places.PYTHONS are there.
WHOLE = "done"

#: The file in places.PYTHONS that lists where the Pythons are which came with this folder: in the
#: home of the teacher who packed it (`casebook laptops`), where nobody else's search leads.
BROUGHT = "brought"

#: Where images put conda for everybody (the second is Binder's).
SYSTEM_CONDA = (Path("/opt/conda"), Path("/srv/conda"))


@dataclass(frozen=True)
class Interpreter:
    """A CPython that was run and answered."""

    path: Path
    #: Such as "3.7.16".
    version: str
    openssl: str
    #: The processor that it was made for, such as "x86_64"; through Rosetta, not the machine's own.
    machine: str = ""


def find(version: str) -> Interpreter | None:
    """Return the first Python of this version ("2.7", "3.7", "today", "here"), or None.

    "today" and "here" are the Python that runs this: the one a virtual environment was made
    from, and the one in it.
    """
    if version not in FOUND and (interpreter := _find(version)):
        FOUND[version] = interpreter
    return FOUND.get(version)


#: By version, since running each takes a moment. One that is missing now may be there next time.
FOUND: dict[str, Interpreter] = {}


def _find(version: str) -> Interpreter | None:
    running = Path(sys.executable)
    if version == "here":
        return examine(running, "")
    if version == "today":
        return examine(running.resolve(), "") or examine(running, "")
    answers = (examine(file, version) for file in _candidates(version) if file.is_file())
    return next(filter(None, answers), None)


@not_a_measurement
def _candidates(version: str) -> list[Path]:
    """Return what may be a Python of this version, the likeliest first."""
    path = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    uv = commands.run(installers.uv("python", "dir"), "uv", 30, os.environ).stdout.strip()
    folders = [
        *(folder for folder in path if folder != pyenv / "shims"),
        *_newest_first(pyenv.glob(f"versions/{version}.*/bin")),
        *(folder / "bin" for folder in _of_conda()),
        *_newest_first(Path(uv or "/nonexistent").glob(f"cpython-{version}.*/bin")),
        *(folder / "bin" for folder in (places.PYTHONS / version,) if (folder / WHOLE).exists()),
        *(prefix / "bin" for prefix in _brought()),
        pyenv / "shims",
    ]
    return [folder / f"python{version}" for folder in folders] + [f / "python" for f in path]


def _of_conda() -> list[Path]:
    """Return the folders of conda and its kin, and the environments in each."""
    home, environ = Path.home(), os.environ
    names = ("micromamba", "miniforge3", "mambaforge", "miniconda3", "anaconda3")
    roots = [
        Path(environ[name]) for name in ("MAMBA_ROOT_PREFIX", "CONDA_PREFIX") if environ.get(name)
    ]
    # The command lies in <root>/bin, an active environment in <root>/envs.
    within_root = (environ[name] for name in ("CONDA_EXE", "CONDA_PREFIX") if environ.get(name))
    roots += [Path(path).parent.parent for path in within_root]
    roots += [home / name for name in (*names, ".local/share/mamba", ".conda")]
    roots += SYSTEM_CONDA
    list_file = home / ".conda" / "environments.txt"
    lines = list_file.read_text(errors="replace").splitlines() if list_file.is_file() else []
    folders = [folder for root in roots for folder in (root, *sorted(root.glob("envs/*")))]
    return folders + [Path(line.strip()) for line in lines]


def _brought() -> list[Path]:
    listed = places.PYTHONS / BROUGHT
    return [Path(line) for line in listed.read_text().splitlines()] if listed.is_file() else []


def _newest_first(folders: Iterable[Path]) -> list[Path]:
    def number(folder: Path) -> list[int]:
        return [int(digits) for digits in re.findall(r"\d+", folder.parent.name)]

    return sorted(folders, key=number, reverse=True)


@not_a_measurement
def examine(path: Path, version: str) -> Interpreter | None:
    """Run the candidate. None if it fails, is no CPython, or is not of this version ("": any)."""
    environ = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("PYTHON") and key not in ("PYENV_VERSION", "VIRTUAL_ENV")
    }
    try:
        process = commands.run([path, "-c", _QUESTION], path.name, 30, environ)
        kind, full, family, executable, openssl, machine = json.loads(process.stdout)
    except (RunFailed, ValueError):
        return None
    if kind != "CPython" or version not in ("", family):
        return None
    # A shim answers with the Python behind it, and that one lasts.
    return Interpreter(Path(executable or path), version=full, openssl=openssl, machine=machine)
