"""Chapters as scripts, for those who would rather read or run a file than a notebook."""

import ast
import inspect
import textwrap
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from casebook.pages.contents import code_cells

_HEAD = '''\
"""{title}

The code of a chapter. Run it in the folder `notebooks` of the repository:
../.venv/bin/ipython {file}
"""

import asyncio

from IPython.display import display


def show(value):
    if value is not None:
        display(value)
'''


def script_of(notebook: NotebookNode, path: Path) -> str:
    """Return a notebook as a script: its prose as comments; what a cell would show is printed.

    path: of the notebook, which names the script.
    """
    title = next(line for cell in notebook.cells for line in cell.source.splitlines())
    parts = [_HEAD.format(title=title.lstrip("# "), file=path.with_suffix(".py").name)]
    code = code_cells(notebook)
    for cell in notebook.cells:
        if cell in code:
            parts.append(_show_last_value(_plain(cell.source).rstrip()))
        elif cell.cell_type == "markdown":
            parts.append("\n".join(f"# {line}".rstrip() for line in cell.source.splitlines()))
    return "\n\n".join(parts) + "\n"


def _plain(source: str) -> str:
    """Return the code of a cell as Python.

    A shell line becomes a call of IPython, and a cell that awaits runs in a loop of its own.
    """
    if "!" in source:
        source = TransformerManager().transform_cell(source)
    code = compile(source, "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if not code.co_flags & inspect.CO_COROUTINE:
        return source
    names = ", ".join(name for name in code.co_names if name in _assigned(source))
    body = textwrap.indent(source, "    ")
    return f"async def cell():\n    global {names}\n{body}\n\n\nasyncio.run(cell())"


def _assigned(source: str) -> set[str]:
    """Return the names that a cell makes at its top level."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def _show_last_value(source: str) -> str:
    """Return the code of a cell that shows a value at its end, as Jupyter does."""
    body = ast.parse(source).body
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr) or last.col_offset or source.endswith(";"):
        return source
    assert last.end_lineno and last.end_col_offset
    lines = source.encode().splitlines()
    # The end first: it may be on the same line, behind the beginning.
    end = lines[last.end_lineno - 1]
    lines[last.end_lineno - 1] = end[: last.end_col_offset] + b")" + end[last.end_col_offset :]
    lines[last.lineno - 1] = b"show(" + lines[last.lineno - 1]
    return b"\n".join(lines).decode()
