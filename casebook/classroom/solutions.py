"""The solutions in the chapters' notebooks: found, folded, left out.

    python -m casebook.classroom.solutions       # gives their cells the metadata that folds them

A solution is what stands from a cell with {solution-start} to the one with {solution-end}.
"""

import ast
import copy
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from casebook import places
from casebook.errors import UsageError
from casebook.pages.contents import Book, read, tree

_START = re.compile(r"^[`:]{3,}\{solution-start\}", re.M)
_END = re.compile(r"^[`:]{3,}\{solution-end\}", re.M)
#: By which programs that show notebooks fold a cell of code, and what it shows.
FOLDED = {"outputs_hidden": True, "source_hidden": True}
#: What a student finds in the place of a solution.
_OWN = "# Yours.\n"

#: What is no student's: what Jupyter keeps, and what is for teachers and contributors.
_LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "instructors.md", "lab_*.md", "whodunit.md", "README.md", "ruff.toml"
)
#: What the other files of the copy say of solutions, which it has not.
_OF_SOLUTIONS = {
    "start.ipynb": " A solution is a bar that you open when you have tried.",
    "book/how_to_read.md": "Each exercise has a folded solution, which was run.\n\n",
}


def cells_of(notebook: NotebookNode) -> Iterator[list[NotebookNode]]:
    """Yield the cells of each solution."""
    solution: list[NotebookNode] = []
    for cell in notebook.cells:
        is_text = cell.cell_type == "markdown"
        if solution or (is_text and _START.search(cell.source)):
            solution.append(cell)
        if solution and is_text and _END.search(cell.source):
            yield solution
            solution = []


def fold(path: Path) -> None:
    """Fold the solutions in a notebook's file, and change no other line of it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    ids = {cell["id"] for solution in cells_of(read(path)) for cell in solution}
    for cell in notebook["cells"]:
        if cell["id"] in ids and cell["cell_type"] == "code":
            cell["metadata"] = dict(sorted((cell["metadata"] | {"jupyter": FOLDED}).items()))
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def leave_out(notebook: NotebookNode) -> NotebookNode:
    """Return a copy of a notebook in which each solution is one empty cell.

    A check at the end of a chapter that depends on what a solution computed is left out, too.
    """
    notebook = copy.deepcopy(notebook)
    solved = {cell.id: solution[0].id for solution in cells_of(notebook) for cell in solution}
    defined: set[str] = set()
    removed: set[str] = set()
    cells: list[NotebookNode] = []
    for cell in notebook.cells:
        stored, used = _names(cell)
        if cell.id in solved:
            removed |= stored - defined
            if cell.id == solved[cell.id]:
                cells.append(nbformat.v4.new_code_cell(_OWN, id=cell.id))
        elif (used - stored - defined) & removed:
            removed |= stored - defined
        else:
            defined |= stored
            cells.append(cell)
    notebook.cells = cells
    return notebook


def _names(cell: NotebookNode) -> tuple[set[str], set[str]]:
    """Return the names that a cell of code binds, and those that it uses."""
    stored: set[str] = set()
    used: set[str] = set()
    for node in ast.walk(tree(cell)):
        if isinstance(node, ast.Name):
            (stored if isinstance(node.ctx, ast.Store) else used).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            stored.add(node.name)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            stored |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return stored, used


def exercises(into: Path, book: Book) -> None:
    """Write a student's copy into a folder that is not there yet.

    It has start.ipynb, the notebooks with all exercises and no solution, and the pages and pictures
    they link to. Raises UsageError.
    """
    if into.exists():
        raise UsageError(f"{into} is there already: name a new folder")
    shutil.copytree(book.root / "notebooks", into / "notebooks", ignore=_LEFT_OUT)
    shutil.copytree(book.root / "book", into / "book", ignore=_LEFT_OUT)
    for name, sentence in _OF_SOLUTIONS.items():
        text = (book.root / name).read_text(encoding="utf-8")
        (into / name).write_text(text.replace(sentence, ""), encoding="utf-8")
    for path in book.notebooks():
        nbformat.write(leave_out(read(path)), into / path.relative_to(book.root))


if __name__ == "__main__":
    for notebook_path in Book(places.ROOT).notebooks():
        fold(notebook_path)
