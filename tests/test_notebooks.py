"""The notebooks as they are committed."""

import ast
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from casebook import places
from casebook.pages.contents import Book

NOTEBOOKS = sorted(places.NOTEBOOKS.glob("*.ipynb"))


def code_cells(notebook: Path) -> list[str]:
    cells = nbformat.read(notebook, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def python_of(cell: str) -> str:
    """A cell without the lines that are IPython's own."""
    return "\n".join(line for line in cell.splitlines() if not line.startswith(("%", "!")))


def test_all_notebooks_are_chapters() -> None:
    assert Book(places.ROOT).notebooks() == NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_valid_and_runs_on_the_kernel_that_everyone_has(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)


def test_are_committed_without_outputs() -> None:
    """`nbstripout --keep-id` would change nothing."""
    command = [sys.executable, "-m", "nbstripout", "--keep-id", "--verify", *map(str, NOTEBOOKS)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, f"{checked.stdout}\nrun: nbstripout --keep-id notebooks/*.ipynb"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_opens_with_its_only_title(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].cell_type == "markdown" and cells[0].source.startswith("# ")
    prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
    titles = [line for text in prose for line in text.splitlines() if line.startswith("# ")]
    assert len(titles) == 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_installs_nothing(path: Path) -> None:
    for cell in code_cells(path):
        assert "pip install" not in cell and "conda install" not in cell


def test_nothing_is_defined_in_two_notebooks() -> None:
    """What two chapters need belongs into the package."""
    defined: dict[str, list[str]] = {}
    for path in NOTEBOOKS:
        for cell in code_cells(path):
            for node in ast.walk(ast.parse(python_of(cell))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    defined.setdefault(node.name, []).append(path.stem)
    twice = {name: where for name, where in defined.items() if len(set(where)) > 1}
    assert twice == {}
