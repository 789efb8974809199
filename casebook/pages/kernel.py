"""One notebook in a kernel of its own: executed in place, as far as it gets."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode, v4

from casebook import build, places, spans
from casebook.laboratory import progress
from casebook.pages import contents, statements
from casebook.pages.provisioner import ForkProvisioner

#: A cell that needs longer than this is stuck: the longest makes all environments and measures.
CELL_TIMEOUT_S = 1800
#: A kernel that has not answered by then is stuck; on a crowded machine some take over a minute.
STARTUP_TIMEOUT_S = 600
#: The file in which a kernel says how far it is.
PROGRESS = "progress"
#: The file in which a kernel notes what its time goes to.
SPANS = "spans"
#: How often what a kernel says of its progress is shown.
_LOOKED_AT_EVERY_S = 0.5


class _OwnKernel(AsyncKernelManager):
    """The kernel of the Python that runs this build, whatever kernels its user has registered."""

    @property
    def kernel_spec(self) -> KernelSpec:
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        command.append(f"--IPKernelApp.extra_extensions={statements.__name__}")
        return KernelSpec(argv=command, display_name="Python 3", language="python")


def _kernel(connection_file: str, root: Path) -> _OwnKernel:
    """Return a kernel for the book under `root`, not begun yet.

    Its sockets are in the folder of its connection file: ports could be reached by others.
    """
    kernel = _OwnKernel(transport="ipc", connection_file=connection_file)
    # A fork has this process's modules: not for a book that brings its own. On macOS, what was
    # imported need not survive it.
    if sys.platform == "linux" and root == places.ROOT:
        kernel.provisioner = ForkProvisioner(kernel_spec=kernel.kernel_spec, parent=kernel)
    return kernel


def run(
    path: Path, book: contents.Book, folder: Path, show: Callable[[float, str], None],
    stop: threading.Event, machine: Path | None = None,
) -> tuple[NotebookNode, str]:  # fmt: skip
    """Execute a notebook: as far as it got, and what ended it before its end, in one line.

    folder: for files of this run. show: gets the share of cells that are done, and what the kernel
    says it is doing. stop: once it is set, this ends and raises KeyboardInterrupt. machine: the
    file that all answers come from; a cell without one says so, and the others go on. The kernel
    is gone afterwards. Not for a main thread, in which nbclient takes the signals and only half
    ends.
    """
    notebook, progress_file = contents.read(path), folder / PROGRESS
    cells = [cell for cell in contents.code_cells(notebook) if cell.source.strip()]
    environ = os.environ | {
        # The modules whose digest was taken are the ones that the cells import.
        "PYTHONPATH": str(book.root),
        # A build may show a measurement of the same digest again; a reader's cell always measures.
        build.VARIABLE: "1",
        progress.VARIABLE: str(progress_file),
        spans.VARIABLE: str(folder / SPANS),
        statements.CHAPTER: path.stem,
        # Not the user's own start-up files and history.
        "IPYTHONDIR": str(book.build / "ipython"),
    }  # fmt: skip
    if machine:
        environ[statements.MACHINE] = str(machine)
    client = _client(notebook, path, book.root, folder, stop)
    client.allow_errors = machine is not None

    def show_progress() -> None:
        cells_begun = client.code_cells_executed  # the last of which is under way
        show(
            max(0, cells_begun - 1) / max(1, len(cells)),
            progress_file.read_text() if progress_file.exists() else "",
        )

    try:
        asyncio.run(_execute(client, environ, show_progress, stop))
        return notebook, ""
    except CellExecutionError as error:
        reason = f"{error.ename}: {' '.join(error.evalue.split())}"
    except CellTimeoutError:
        reason = f"it took longer than {CELL_TIMEOUT_S} s"
    except (DeadKernelError, asyncio.CancelledError):
        if stop.is_set():
            raise KeyboardInterrupt from None
        reason = "the kernel died (out of memory, or the cell ended its process)"
    except RuntimeError as error:  # it ended before it was ready
        if stop.is_set():
            raise KeyboardInterrupt from None
        return notebook, f"{path.relative_to(book.root)}: its kernel could not begin ({error})"
    number = client.code_cells_executed
    cell = cells[number - 1]
    if not any(output.output_type == "error" for output in cell.outputs):
        stopped = {"ename": "Stopped", "evalue": reason, "traceback": [f"Stopped: {reason}"]}
        cell.outputs.append(v4.new_output("error", **stopped))
    first_line = cell.source.strip().splitlines()[0]
    return notebook, f"{path.relative_to(book.root)}, code cell {number} ({first_line}): {reason}"


def _client(
    notebook: NotebookNode, path: Path, root: Path, folder: Path, stop: threading.Event
) -> NotebookClient:
    def go_on(**_: object) -> None:
        # What is cancelled in the moment in which a cell ends would begin the next (wait_for in
        # Python 3.11 forgets it).
        if stop.is_set():
            raise asyncio.CancelledError

    return NotebookClient(
        notebook,
        km=_kernel(f"{folder}/kernel.json", root),
        timeout=CELL_TIMEOUT_S,
        startup_timeout=STARTUP_TIMEOUT_S,
        # The same cell leaves the same notebook, however long it took, and one output for each
        # stream: what a busy machine sends in two pieces would have a line break between them.
        record_timing=False,
        coalesce_streams=True,
        shutdown_kernel="immediate",
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_execute=go_on,
    )


async def _execute(
    client: NotebookClient,
    environ: dict[str, str],
    show_progress: Callable[[], None],
    stop: threading.Event,
) -> None:
    """Execute a notebook, telling how far it is; cancelled when `stop` is set."""
    running = asyncio.create_task(client.async_execute(env=environ, cleanup_kc=True))
    while not running.done():
        await asyncio.wait([running], timeout=_LOOKED_AT_EVERY_S)
        show_progress()
        if stop.is_set():
            running.cancel()
            break
    await running
