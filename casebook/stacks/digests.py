"""Digests: short names for everything that made a measurement, by content and not by path."""

import ast
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from modulefinder import ModuleFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from casebook.build import not_a_measurement
from casebook.errors import RunFailed
from casebook.stacks import commands

#: What a folder's digest is made of.
_COUNTED = {".py", ".txt", ".toml", ".patch", ".c", ".go"}

#: Programs that measurements or cells run.
TOOLS = ("go", "h2load", "curl", "cc", "valgrind")

#: Python 3.11 miscounts its recursion if two threads parse at the same time, and then raises
#: SystemError (https://github.com/python/cpython/issues/106905).
_parsing = threading.Lock()


def digest(*parts) -> str:
    """Compute a digest of strings, numbers, dicts and lists (as JSON), and of files by content.

    A folder counts with all code below it, and a list of paths with each of them. The path and the
    name of a file do not matter, nor do the layout and the comments of Python code, or from which
    of our modules it imports: a digest survives a move.
    """
    digest = hashlib.sha256()
    for part in parts:
        part = [part] if isinstance(part, Path) else part
        if isinstance(part, (list, tuple)) and part and all(isinstance(p, Path) for p in part):
            digest.update("\0".join(_contents(part)).encode() + b"\0")
        else:
            digest.update(json.dumps(part, sort_keys=True).encode() + b"\0")
    return digest.hexdigest()[:24]


def _contents(paths: Iterable[Path]) -> list[str]:
    files = [
        file
        for path in paths
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.suffix in _COUNTED and "__pycache__" not in file.parts
    ]
    contents = (
        _code(file.read_bytes()) if file.suffix == ".py" else file.read_bytes() for file in files
    )
    return sorted(hashlib.sha256(content).hexdigest() for content in contents)


@cache
def _code(source: bytes) -> bytes:
    """Return what Python code says to the interpreter.

    Left out are layout, comments, docstrings, the names of our modules in its imports, and the
    wording of readers' mistakes.
    """
    with _parsing:
        tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [statement for statement in body if not _is_talk(statement)]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.decorator_list[:] = filter(_does_something, node.decorator_list)
    return ast.dump(tree).encode()


def _does_something(decorator: ast.expr) -> bool:
    """Return whether a decorator changes what is measured, and not only what is said or kept."""
    return not (
        isinstance(decorator, ast.Name) and decorator.id in ("for_readers", "not_a_measurement")
    )


def _is_talk(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return (statement.module or "").partition(".")[0] == "casebook"
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def files(*modules: ModuleType) -> list[Path]:
    """Return the files of some modules of ours."""
    return [Path(str(module.__file__)) for module in modules]


def executed(
    script: Path, excluded: Collection[str] = (), beside: Iterable[Path] = ()
) -> list[Path]:
    """Return a script and the modules of its folder that it imports, directly or indirectly.

    Other files in the folder do not count, so that a new module makes no old measurement stale.

    Parameters:
        script: the file that is run.
        excluded: names of modules that this kind of run does not execute.
        beside: further folders whose modules it may import, as of `scripts.answer_of`.
    """
    folders = (script.parent, *beside)
    files = (file.stat() for folder in folders for file in sorted(folder.glob("*.py")))
    states = tuple((status.st_ino, status.st_size, status.st_mtime_ns) for status in files)
    return list(_executed(script, frozenset(excluded), folders, states))


@lru_cache(maxsize=64)
def _executed(
    script: Path,
    excluded: frozenset[str],
    folders: tuple[Path, ...],
    _states: tuple[tuple[int, ...], ...],
) -> tuple[Path, ...]:
    """Do the work of `executed`, cached as long as the folders' files are in the same states."""
    finder = ModuleFinder([str(folder) for folder in folders], excludes=excluded)
    finder.run_script(str(script))
    modules: Any = finder.modules.values()  # they have no __file__ in their stubs
    return tuple(Path(module.__file__) for module in modules if module.__file__)


@cache
@not_a_measurement
def tool(name: str) -> str:
    """Return the version of one of TOOLS on the PATH, in its own words; "" if there is none."""
    if shutil.which(name) is None:
        return ""
    command = [name, "version" if name == "go" else "--version"]
    try:
        return commands.run(command, name, 30, os.environ).stdout.strip()
    except RunFailed:
        return "does not run"
