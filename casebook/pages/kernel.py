"""One notebook in a kernel of its own: executed in place, as far as it gets."""

import asyncio
import os
import sys
import threading
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode, v4

from casebook.pages.contents import Book
from casebook.runs import progress as progress_of_kernel

#: A cell that needs longer than this is stuck: the longest makes all environments and measures.
CELL_TIMEOUT_S = 1800
#: How often what a kernel says of its progress is shown.
_LOOKED_AT_EVERY_S = 0.5


class _OwnKernel(AsyncKernelManager):
    """The kernel of the Python that runs this build, whatever kernels its user has registered."""

    @property
    def kernel_spec(self) -> KernelSpec:
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


class _Watch:
    """Sees how far a notebook is, and tells it; ends it when `stop` is set. said: the file in which
    the kernel says what it is doing."""

    def __init__(self, notebook: NotebookNode, progress, said: Path, stop: threading.Event):
        self._cells, self._progress, self._said = notebook.cells, progress, said
        self._stop = stop
        self._codes = [i for i, cell in enumerate(self._cells) if cell.cell_type == "code"]
        self._at = self._codes[0] if self._codes else 0

    def start(self, notebook: NotebookNode) -> None:
        running = asyncio.current_task()
        assert running is not None
        self._task = running
        self._telling = asyncio.create_task(self._tell())  # ends with the loop

    def begin(self, cell: NotebookNode, cell_index: int) -> None:
        self._at = cell_index
        # Once more: what is cancelled in the moment in which a cell ends goes on (wait_for in
        # Python 3.11 forgets it).
        if self._stop.is_set():
            self._task.cancel()

    def end(self, cell: NotebookNode, cell_index: int, execute_reply: dict) -> None:
        self._progress.cell(len(self._codes))

    async def _tell(self) -> None:
        while not self._stop.is_set():
            await asyncio.sleep(_LOOKED_AT_EVERY_S)
            self._progress.say(self._said.read_text() if self._said.exists() else "")
        self._task.cancel()

    def failed(self, reason: str) -> str:
        """What ended the notebook, with its cell, whose output says so afterwards."""
        cell = self._cells[self._at]
        if not any(output.output_type == "error" for output in cell.outputs):
            error = {"ename": "Stopped", "evalue": reason, "traceback": [f"Stopped: {reason}"]}
            cell.outputs.append(v4.new_output("error", **error))
        first_line = (cell.source.strip().splitlines() or [""])[0]
        return f"code cell {self._codes.index(self._at) + 1} ({first_line}): {reason}"


def run(
    notebook: NotebookNode, path: Path, book: Book, folder: Path, progress,
    variables: dict[str, str], stop: threading.Event,
) -> str:  # fmt: skip
    """Execute `notebook` in place: what ended it before its end, in one line; empty if nothing did.

    folder: for files of this run. progress: gets `say(line)` and `cell()`. variables: further
    ones of the environment. stop: once it is set, this ends and raises KeyboardInterrupt. The
    kernel is gone afterwards. Not for a main thread, in which nbclient takes the signals and only
    half ends.
    """
    said = folder / "progress"
    watch = _Watch(notebook, progress, said, stop)
    environ = os.environ | variables | {
        # The modules whose digest was taken are the ones that the cells import.
        "PYTHONPATH": str(book.root),
        # A build may show a measurement of the same digest again; a reader's cell always measures.
        "CASEBOOK_BUILD": "1",
        "CASEBOOK_CHAPTER": path.stem,
        progress_of_kernel.VARIABLE: str(said),
        # Not the user's own start-up files and history.
        "IPYTHONDIR": str(book.build / "ipython"),
    }  # fmt: skip
    client = NotebookClient(
        notebook,
        # Sockets in a folder of our own rather than ports that others could reach.
        km=_OwnKernel(transport="ipc", connection_file=f"{folder}/kernel.json"),
        timeout=CELL_TIMEOUT_S,
        # Timings in the cells' metadata, which Sphinx hashes, would hide the result.
        record_timing=False,
        shutdown_kernel="immediate",
        resources={"metadata": {"path": str(path.parent)}},
        on_notebook_start=watch.start, on_cell_execute=watch.begin, on_cell_executed=watch.end,
    )  # fmt: skip
    try:
        asyncio.run(client.async_execute(env=environ, cleanup_kc=True))
        return ""
    except CellExecutionError as error:
        reason = f"{error.ename}: {' '.join(error.evalue.split())}"
    except CellTimeoutError:
        reason = f"it took longer than {CELL_TIMEOUT_S} s"
    except (DeadKernelError, asyncio.CancelledError):
        if stop.is_set():
            raise KeyboardInterrupt from None
        reason = "the kernel died (out of memory, or the cell ended its process)"
    return f"{path.relative_to(book.root)}, {watch.failed(reason)}"
