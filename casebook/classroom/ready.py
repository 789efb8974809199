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

#: So long may one cell take, in seconds: it may make an environment first.
WITHIN_S = 600
#: How a chapter names a stack, in quotes.
_NAME = re.compile(r'"([a-z][\w.-]*)"')


def chapters(book: Book, numbers: Iterable[str]) -> list[Path]:
    """Return the notebooks of chapters by their numbers; all of them where there is none. Raises
    UsageError."""
    known = {path.stem.partition("_")[0].lstrip("0"): path for path in book.notebooks()}
    numbers = [number.lstrip("0") for number in numbers]
    for number in numbers:
        if number not in known or not number.isdigit():
            numbered = [each for each in known if each.isdigit()]
            raise UsageError(f"there is no chapter {number!r}; choose {numbered[0]} to "
                             f"{numbered[-1]}")  # fmt: skip
    return [known[number] for number in numbers] or [
        path for number, path in known.items() if number.isdigit()
    ]


def lines(book: Book, paths: list[Path]) -> Iterator[tuple[bool, str]]:
    """Make the environments of chapters and run each up to its first output: whether it is ready,
    and a line that says so or what to do."""
    needed = {path: _stacks_of(read(path)) for path in paths}
    todo = {name: stack for those in needed.values() for name, stack in those.items()
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
            began = monotonic()
            missing = [why for name, why in failed.items() if name in needed[path]]
            why = missing[0] if missing else tried(path)
            progress.step()
            if why:
                yield False, f"{path.stem}: not ready. {why}"
                continue
            wanted = sorted({stack.python for stack in needed[path].values()})
            lacks = [version for version in wanted if not interpreters.find(version)]
            took = f"its first output after {monotonic() - began:.0f} s"
            if lacks:
                took += f"; without Python {' and '.join(lacks)}, of which recorded runs stand in"
            yield True, f"{path.stem}: ready, {took}"


def _stacks_of(notebook: NotebookNode) -> dict[str, stacks.Stack]:
    """The stacks that a chapter names."""
    known = {stack.name: stack for stack in stacks.of_chapters()}
    code = "\n".join(cell.source for cell in code_cells(notebook))
    return {name: known[name] for name in _NAME.findall(code) if name in known}


def tried(path: Path) -> str:
    """Run a notebook up to the first cell that shows something. Empty where that went well, else
    why not."""
    notebook = nbformat.v4.new_notebook(metadata=read(path).metadata)
    with tempfile.TemporaryDirectory() as folder:  # sockets that nobody else reaches
        kernel = AsyncKernelManager(transport="ipc", connection_file=f"{folder}/kernel.json")
        where = {"metadata": {"path": str(path.parent)}}
        client = NotebookClient(notebook, km=kernel, resources=where, timeout=WITHIN_S)
        return _failure(client, notebook, code_cells(read(path)))


def _failure(client: NotebookClient, notebook: NotebookNode, cells: list[NotebookNode]) -> str:
    try:
        with client.setup_kernel():
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
