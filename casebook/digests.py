"""Digests: short names for everything that made a measurement, by content and not by path."""

import ast
import hashlib
import json
import shutil
import subprocess
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

#: What a folder's digest is made of.
_COUNTED = {".py", ".txt", ".toml", ".patch", ".c", ".go"}

#: Programs that measurements or cells run, and how each says its version.
TOOLS = {
    "go": ("go", "version"),
    "h2load": ("h2load", "--version"),
    "curl": ("curl", "--version"),
    "cc": ("cc", "--version"),
    "valgrind": ("valgrind", "--version"),
}


def of(*parts) -> str:
    """A digest of strings, numbers, dicts and lists (as JSON) and of files, by their contents.

    A folder counts with all code below it, and a list of paths with each of them. Where a file
    lies and what it is called does not matter: a digest survives a move.
    """
    made_of = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            part = [part]
        if isinstance(part, (list, tuple)) and part and all(isinstance(p, Path) for p in part):
            made_of.update("\0".join(_contents(part)).encode() + b"\0")
        else:
            made_of.update(json.dumps(part, sort_keys=True).encode() + b"\0")
    return made_of.hexdigest()[:24]


def _contents(paths: Iterable[Path]) -> list[str]:
    files = [
        file
        for path in paths
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.suffix in _COUNTED and "__pycache__" not in file.parts
    ]
    return sorted(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)


def executed(script: Path, without: Collection[str] = ()) -> list[Path]:
    """A script, and the modules beside it that it imports, directly or through one another.

    without: names of modules that this kind of run does not execute. What else lies in the folder
    does not count, so that a new module makes no old measurement stale.
    """
    found, todo = {}, [script]
    while todo:
        path = todo.pop()
        if path in found or not path.exists():
            continue
        found[path] = True
        todo += [path.with_name(f"{n}.py") for n in _imported(path) if n not in without]
    return list(found)


@cache
def _imports(content: str) -> tuple[str, ...]:
    names = []
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return tuple(dict.fromkeys(names))


def _imported(path: Path) -> tuple[str, ...]:
    return _imports(path.read_text(encoding="utf-8"))


@cache
def tool(name: str) -> str:
    """Which version of one of TOOLS is on the PATH, in its own words; empty where there is none."""
    if shutil.which(TOOLS[name][0]) is None:
        return ""
    try:
        said = subprocess.run(TOOLS[name], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return "does not run"
    return said.stdout.strip()
