"""A package's face: the names of its stub, each looked up when it is first used.

The stub, `__init__.pyi`, is what editors and type checkers read, so both know the same names:

    from casebook.findings.claims import claim as claim

lazy-loader does the same, but not for a module in a folder further down, such as
`from casebook.laboratory import decisions`.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def attach_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package, so that importing it loads nothing else.

    Parameters:
        package: its name.
        file: its `__init__.py`, beside which the stub is. Each import there is absolute, and of a
            module or of a name in one.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    modules = {
        alias.name: node.module or ""
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if modules[name] == package:
            target = import_module(f"{package}.{name}")
        else:
            target = getattr(__import__(modules[name], fromlist=[name]), name)
        setattr(sys.modules[package], name, target)
        return target

    return find, lambda: sorted(modules)
