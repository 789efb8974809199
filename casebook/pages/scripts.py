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
    """A notebook as a script: its prose as comments, and what a cell would show is printed.

    path: of the notebook, which names the script.
    """
    title = next(line for cell in notebook.cells for line in cell.source.splitlines())
    parts = [_HEAD.format(title=title.lstrip("# "), file=path.with_suffix(".py").name)]
    code = code_cells(notebook)
    for cell in notebook.cells:
        if cell in code:
            parts.append(_shown(_plain(cell.source).rstrip()))
        elif cell.cell_type == "markdown":
            parts.append("\n".join(f"# {line}".rstrip() for line in cell.source.splitlines()))
    return "\n\n".join(parts) + "\n"


def _plain(source: str) -> str:
    """The code of a cell as Python: a line for the shell is a call of IPython's, and a cell that
    awaits is run by a loop of its own."""
    if "!" in source:
        source = TransformerManager().transform_cell(source)
    code = compile(source, "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if not code.co_flags & inspect.CO_COROUTINE:
        return source
    names = ", ".join(name for name in code.co_names if name in _assigned(source))
    body = textwrap.indent(source, "    ")
    return f"async def cell():\n    global {names}\n{body}\n\n\nasyncio.run(cell())"


def _assigned(source: str) -> set[str]:
    """The names that a cell makes at its top level."""
    found = set()
    for each in ast.walk(ast.parse(source)):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, ast.alias):
            found.add((each.asname or each.name).partition(".")[0])
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(each.name)
    return found


def _shown(source: str) -> str:
    """The code of a cell; a value at its end is shown, as Jupyter does."""
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
