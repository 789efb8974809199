"""When two builds would see the same thing: stamps of code and of everything code can reach."""

import hashlib
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

from nbformat import NotebookNode

from casebook import stacks
from casebook.cases.fetching import cprofile, modes, trust
from casebook.errors import MissingInterpreter, UsageError
from casebook.laboratory import lots
from casebook.pages.contents import Book
from casebook.stacks import digests, environments

#: Folders and files that a cell can import or read.
REACHABLE = ("casebook", "env", "data", "notebooks/toy", "requirements.txt")
#: What a run or an editor leaves there.
_BY_PRODUCTS = {"__pycache__", ".ipynb_checkpoints"}


def of_files(root: Path, names: Iterable[str], without: Collection[Path] = ()) -> str:
    """Return a stamp of the names and contents of files, and of all files in folders, under `root`.

    Unlike casebook.stacks.digests, it sees comments and moves: a page may show them.

    without: files that it does not look at.
    """
    tops = [root / name for name in names]
    files = [file for top in tops for file in (top.rglob("*") if top.is_dir() else [top])]
    return digests.digest(
        {
            file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in files
            if file.is_file() and file not in without and _BY_PRODUCTS.isdisjoint(file.parts)
        }
    )


def states(path: Path) -> dict[str, tuple[int, int]]:
    """Return name -> size and time of a file, or of all files in a folder; nothing of nothing."""
    files = [file for file in (path, *path.rglob("*")) if file.is_file()]
    return {
        file.relative_to(path).as_posix(): (file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(files)
    }


def of_surroundings(book: Book) -> str:
    """Return a stamp of everything that a notebook's result depends on beside its own code.

    The book's packages, data and lock; the mode; the seed of its lots; the Python that runs the
    notebooks; which other Pythons and which tools are there, because a cell shows the reference
    run if one is missing; and what else the keys of measurements depend on: each stack's
    environment, and certifi's certificates.
    """
    versions = sorted({stack.python for stack in stacks.load().values()} | {*cprofile.PYTHONS})
    pythons = [str(environments.find_interpreter(version)) for version in versions]
    tools = {name: digests.tool(name) for name in digests.TOOLS}
    return digests.digest(
        of_files(book.root, REACHABLE), modes.current().name, sys.version, pythons, tools,
        trust.certificates(), lots.seed(),
        {name: _of_stack(stack) for name, stack in stacks.load().items()},
    )  # fmt: skip


def of_machine_files(book: Book, files: Iterable[Path]) -> str:
    """Return a stamp of what a notebook depends on beside its code, if machine files answer."""
    contents = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return digests.digest(
        of_files(book.root, REACHABLE), modes.current().name, sys.version, contents
    )


def _of_stack(stack: stacks.Stack) -> str:
    """Return what a stack's environment holds; empty if it cannot be made here, now or at all."""
    try:
        return "" if environments.failure(stack) else environments.fingerprint(stack)
    except (MissingInterpreter, UsageError):
        return ""


def of_notebook(notebook: NotebookNode, surroundings: str) -> str:
    """Return a stamp of a notebook's code cells (source and metadata) in their surroundings."""
    cells = [[cell.source, cell.metadata] for cell in notebook.cells if cell.cell_type == "code"]
    return digests.digest(cells, surroundings)
