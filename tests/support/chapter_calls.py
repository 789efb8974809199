"""The functions and classes of ours that chapters call."""

import ast
import importlib
import inspect
import typing
from collections.abc import Callable
from typing import Any

import nbformat

from casebook import places

#: What a step of a stack does, which is measured: it runs on Python 2.7, too.
NO_READERS = ("casebook.cases.fetching.probes",)


def called_by_chapters() -> dict[str, Callable[..., Any]]:
    """The functions and classes of ours that chapters call, by name."""
    calls: dict[str, Callable[..., Any]] = {}
    for path in sorted(places.NOTEBOOKS.glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        lines = "\n".join(cell.source for cell in cells if cell.cell_type == "code").splitlines()
        tree = ast.parse("\n".join(line for line in lines if not line.startswith(("%", "!"))))
        names: dict[str, Any] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("casebook"):
                for alias in node.names:
                    names[alias.asname or alias.name] = _find(node.module or "", alias.name)
        for node in ast.walk(tree):
            function = _follow(node.func, names) if isinstance(node, ast.Call) else None
            is_called = inspect.isfunction(function) or inspect.isclass(function)
            if is_called and function.__module__.startswith("casebook"):
                calls[f"{function.__module__}.{function.__name__}"] = function
    return calls


def types_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of what a function or a class is called with, by the names of its parameters."""
    is_class = inspect.isclass(function)
    return typing.get_type_hints(vars(function)["__init__"] if is_class else function)


def _find(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        return importlib.import_module(f"{module}.{name}")


def _follow(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (of := _follow(node.value, names)) is not None:
        return getattr(of, node.attr, None)
    return None
