"""One notebook in a kernel of its own: executed in place, as far as it gets."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode, v4

from casebook import progress as progress_of_kernel
from casebook.pages.contents import Book

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


def run(
    notebook: NotebookNode, path: Path, book: Book, folder: Path, progress, more: dict[str, str]
) -> str:
    """Execute `notebook` in place: what ended it before its end, in one line; empty if nothing did.

    folder: for files of this run. progress: gets `say(line)` and `cell()`. more: further
    environment variables. The kernel is gone afterwards. Raises KeyboardInterrupt
    when told to stop.
    """
    code_cells = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    at = {"cell_index": code_cells[0] if code_cells else 0}
    said = folder / "progress"
    interrupted, watching = asyncio.Event(), []

    def started(cell: NotebookNode, cell_index: int) -> None:
        at["cell_index"] = cell_index

    def finished(cell: NotebookNode, cell_index: int, execute_reply: dict) -> None:
        progress.cell(len(code_cells))

    async def watch() -> None:
        while True:
            await asyncio.sleep(_LOOKED_AT_EVERY_S)
            progress.say(said.read_text() if said.exists() else "")

    def kernel_is_up(notebook: NotebookNode) -> None:
        # In place of nbclient's own handlers, which end the kernel and then wonder where it is.
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        watching.append(loop.create_task(watch()))

        def interrupt() -> None:
            interrupted.set()
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)

    try:
        client = NotebookClient(
            notebook,
            # Sockets in a folder of our own rather than ports that others could reach.
            km=_OwnKernel(transport="ipc", connection_file=f"{folder}/kernel.json"),
            timeout=CELL_TIMEOUT_S,
            allow_errors=False,
            # Timings in the cells' metadata, which Sphinx hashes, would hide the result.
            record_timing=False,
            shutdown_kernel="immediate",
            resources={"metadata": {"path": str(path.parent)}},
            on_notebook_start=kernel_is_up,
            on_cell_execute=started,
            on_cell_executed=finished,
        )
        client.execute(env=_environ(book, path, said) | more, cleanup_kc=True)
        return ""
    except CellExecutionError as error:
        return _failure(
            path, book, notebook, at, f"{error.ename}: {' '.join(error.evalue.split())}"
        )
    except CellTimeoutError:
        reason = f"it took longer than {CELL_TIMEOUT_S} s"
    except (DeadKernelError, asyncio.CancelledError):
        if interrupted.is_set():
            raise KeyboardInterrupt from None
        reason = "the kernel died (out of memory, or the cell ended its process)"
    finally:
        for task in watching:
            task.cancel()
    # These leave nothing in the notebook that a reader of the page could see.
    stopped = v4.new_output(
        "error", ename="Stopped", evalue=reason, traceback=[f"Stopped: {reason}"]
    )
    notebook.cells[at["cell_index"]].outputs.append(stopped)
    return _failure(path, book, notebook, at, reason)


def _environ(book: Book, path: Path, said: Path) -> dict[str, str]:
    environ = dict(os.environ)
    # The modules whose digest was taken are the ones that the cells import.
    environ["PYTHONPATH"] = str(book.root)
    # A build may show a measurement of the same digest again; a reader's cell always measures.
    environ["CASEBOOK_BUILD"] = "1"
    environ["CASEBOOK_CHAPTER"] = path.stem
    environ[progress_of_kernel.VARIABLE] = str(said)
    # Not the user's own start-up files and history.
    environ["IPYTHONDIR"] = str(book.build / "ipython")
    return environ


def _failure(path: Path, book: Book, notebook: NotebookNode, at: dict, reason: str) -> str:
    index = at["cell_index"]
    number = sum(cell.cell_type == "code" for cell in notebook.cells[: index + 1])
    first_line = (notebook.cells[index].source.strip().splitlines() or [""])[0]
    return f"{path.relative_to(book.root)}, code cell {number} ({first_line}): {reason}"
