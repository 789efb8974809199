"""The evening before a lesson: is this machine ready?

    python -m casebook ready 1 2 3 4

makes the environments, runs each chapter up to its first measurement, and says a line for each.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import monotonic

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from casebook import stacks
from casebook.errors import CasebookError, UsageError
from casebook.laboratory.progress import Progress
from casebook.pages.contents import Book, code_cells, read
from casebook.stacks import environments, interpreters

#: The longest that one cell may take, in seconds: it may make an environment first.
WITHIN_S = 600
#: How a chapter names a stack, in quotes.
_NAME = re.compile(r'"([a-z][\w.-]*)"')


def chapters(book: Book, numbers: Iterable[str]) -> list[Path]:
    """Return the notebooks of chapters by their numbers, or all of them without numbers.

    Raises UsageError.
    """
    notebooks = {path.stem.partition("_")[0].lstrip("0"): path for path in book.notebooks()}
    chosen = []
    for number in numbers:
        name = number.lstrip("0")
        if name not in notebooks or not name.isdigit():
            numbered = [name for name in notebooks if name.isdigit()]
            raise UsageError(f"there is no chapter {number!r}; choose {numbered[0]} to "
                             f"{numbered[-1]}")  # fmt: skip
        chosen.append(notebooks[name])
    return chosen or [path for number, path in notebooks.items() if number.isdigit()]


def lines(paths: list[Path]) -> Iterator[tuple[bool, str]]:
    """Make the environments of chapters and run each chapter up to its first output.

    Yields whether it is ready, and a line that says so or what to do.
    """
    stacks_by_path = {path: _stacks_of(read(path)) for path in paths}
    todo = {name: stack for by_name in stacks_by_path.values() for name, stack in by_name.items()
            if not environments.is_there(stack)}  # fmt: skip
    failed: dict[str, str] = {}
    with Progress(len(todo), "making environments", "environment") as progress:
        for name, stack in todo.items():
            try:
                environments.ensure(stack, progress.describe, retry=True)
            except CasebookError as error:
                failed[name] = str(error).partition("\n")[0]
            progress.step()
    with Progress(len(paths), "trying chapters", "chapter") as progress:
        for path in paths:
            start = monotonic()
            missing = [reason for name, reason in failed.items() if name in stacks_by_path[path]]
            reason = missing[0] if missing else tried(path)
            progress.step()
            if reason:
                yield False, f"{path.stem}: not ready. {reason}"
                continue
            versions = sorted({stack.python for stack in stacks_by_path[path].values()})
            absent = [version for version in versions if not interpreters.find(version)]
            note = f"its first output after {monotonic() - start:.0f} s"
            if absent:
                note += f"; without Python {' and '.join(absent)}, of which recorded runs stand in"
            yield True, f"{path.stem}: ready, {note}"


def _stacks_of(notebook: NotebookNode) -> dict[str, stacks.Stack]:
    """Return the stacks that a chapter names."""
    by_name = {stack.name: stack for stack in stacks.of_chapters()}
    code = "\n".join(cell.source for cell in code_cells(notebook))
    return {name: by_name[name] for name in _NAME.findall(code) if name in by_name}


def tried(path: Path) -> str:
    """Run a notebook up to the first cell that shows something.

    Returns why that failed; an empty string if it went well.
    """
    notebook = nbformat.v4.new_notebook(metadata=read(path).metadata)
    with tempfile.TemporaryDirectory() as folder:  # sockets that nobody else reaches
        kernel = AsyncKernelManager(transport="ipc", connection_file=f"{folder}/kernel.json")
        resources = {"metadata": {"path": str(path.parent)}}
        client = NotebookClient(notebook, km=kernel, resources=resources, timeout=WITHIN_S)
        return _failure(client, notebook, code_cells(read(path)))


def _failure(client: NotebookClient, notebook: NotebookNode, cells: list[NotebookNode]) -> str:
    try:
        with client.setup_kernel(cleanup_kc=True):  # also of a manager that is not its own
            for number, cell in enumerate(cells):
                notebook.cells.append(cell)
                client.execute_cell(cell, number)
                if any(output.output_type != "stream" for output in cell.outputs):
                    return ""
    except CellExecutionError as error:
        return f"{error.ename}: {error.evalue}"
    except CellTimeoutError:
        return f"a cell took longer than {WITHIN_S} s: try again while nothing else runs here"
    except (DeadKernelError, RuntimeError) as error:
        return f"its kernel did not begin ({error}): run `make lab` once"
    return "no cell showed anything"
