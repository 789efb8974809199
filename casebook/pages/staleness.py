"""When two builds would see the same thing: digests of code and of everything code can reach."""

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from nbformat import NotebookNode

from casebook.digests import TOOLS, tool
from casebook.pages.contents import Book
from casebook.runs import modes
from casebook.stacks import environments

#: Folders and files that a cell can import or read.
REACHABLE = ("casebook", "env", "data", "notebooks/toy", "requirements.txt")

#: Interpreters that cells look for, beside the one that runs them.
PYTHONS = ("2.7", "3.7", "3.11", "3.12", "3.13", "3.14")


def of_files(root: Path, names: Iterable[str]) -> str:
    """A digest of the names and contents of files, and of all files in folders, under `root`."""
    digest = hashlib.sha256()
    for name in names:
        top = root / name
        files = sorted(top.rglob("*")) if top.is_dir() else [top]
        for file in files:
            if file.is_file() and not _by_product(file):
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{file.relative_to(root).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def of_surroundings(book: Book) -> str:
    """A digest of all that a notebook's result depends on beside its own code.

    The book's packages, data and lock; the mode; the Python that runs the notebooks; and which
    others, and which tools, are there, because a cell shows the reference run where one is missing.
    """
    parts = {
        "files": of_files(book.root, REACHABLE),
        "mode": modes.current().name,
        "python": sys.version,
        "interpreters": {
            version: str(environments.find_interpreter(version)) for version in PYTHONS
        },
        "tools": {name: tool(name) for name in TOOLS},
    }
    return _of_data(parts)


def of_notebook(notebook: NotebookNode, surroundings: str) -> str:
    """A digest of a notebook's code cells (source and metadata) in their surroundings."""
    cells = [[cell.source, cell.metadata] for cell in notebook.cells if cell.cell_type == "code"]
    return _of_data([cells, surroundings])


def _by_product(file: Path) -> bool:
    return "__pycache__" in file.parts or ".ipynb_checkpoints" in file.parts


def _of_data(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
