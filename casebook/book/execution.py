"""Runs the notebooks whose digest has changed and keeps the results where Sphinx finds them.

Sphinx looks a notebook up in the jupyter-cache by its code alone. The digest, which also sees
imported modules, data and interpreters, is stored with each record here, and a record whose digest
is not today's is deleted before the notebook runs: nothing stale is left to be found.
"""

import asyncio
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.main import JupyterCacheBase
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from tqdm import tqdm

from casebook.book import digests
from casebook.book.contents import Book
from casebook.errors import BookFailed

#: A cell that needs longer than this is stuck: the longest makes all environments and measures.
CELL_TIMEOUT_S = 1800


@dataclass(frozen=True)
class Chapter:
    """An executed notebook. `name` is its page name, "notebooks/01_one_at_a_time"."""

    name: str
    notebook: NotebookNode

    @property
    def stem(self) -> str:
        return self.name.rpartition("/")[2]


def execute(book: Book) -> list[Chapter]:
    """Bring every notebook of the book up to date and return them executed, in reading order.

    Raises BookFailed with notebook, cell and error for each notebook of which a cell raises,
    takes longer than CELL_TIMEOUT_S or ends the kernel; the others have been executed then.
    """
    paths = book.notebooks()
    surroundings = digests.of_surroundings(book)
    cache = get_cache(book.cache)
    stale = {path: None for path in paths}
    for path in paths:
        notebook = _read(path)
        if _fresh_record(cache, notebook, digests.of_notebook(notebook, surroundings)):
            del stale[path]
    # First delete, then run: whatever happens below, no old result passes for a new one.
    for path in stale:
        _forget(cache, book, path)
    failures = []
    for number, path in enumerate(stale, 1):
        notebook = _read(path)
        digest = digests.of_notebook(notebook, surroundings)
        print(f"[{number}/{len(stale)}] {path.relative_to(book.root)}", file=sys.stderr, flush=True)
        started = time.monotonic()
        try:
            _run(notebook, path, book)
        except BookFailed as failure:
            print("      failed", file=sys.stderr, flush=True)
            failures.append(str(failure))
            continue
        seconds = time.monotonic() - started
        bundle = CacheBundleIn(
            notebook, _name(book, path), data={"execution_seconds": seconds, "digest": digest}
        )
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        print(f"      executed in {seconds:.1f} s", file=sys.stderr, flush=True)
    if failures:
        raise BookFailed("\n".join(failures))
    return [_executed(book, cache, path, surroundings) for path in paths]


class _OwnKernel(AsyncKernelManager):
    """The kernel of the Python that runs this build, whatever kernels its user has registered."""

    @property
    def kernel_spec(self) -> KernelSpec:
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


def _run(notebook: NotebookNode, path: Path, book: Book) -> None:
    """Execute `notebook` in place, or raise BookFailed. The kernel is gone afterwards."""
    code_cells = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    at = {"cell_index": code_cells[0] if code_cells else 0}
    bar = tqdm(total=len(code_cells), unit="cell", leave=False, disable=None, file=sys.stderr)

    def started(cell: NotebookNode, cell_index: int) -> None:
        at["cell_index"] = cell_index

    def finished(cell: NotebookNode, cell_index: int, execute_reply: dict) -> None:
        bar.update()

    interrupted = asyncio.Event()

    def kernel_is_up(notebook: NotebookNode) -> None:
        # In place of nbclient's own handlers, which end the kernel and then wonder where it is.
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def interrupt() -> None:
            interrupted.set()
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)

    try:
        with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
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
            client.execute(env=_environ(book, path), cleanup_kc=True)
    except CellExecutionError as error:
        reason = f"{error.ename}: {' '.join(error.evalue.split())}"
        raise BookFailed(_failure(path, book, notebook, at, reason)) from None
    except CellTimeoutError:
        reason = f"it took longer than {CELL_TIMEOUT_S} s"
        raise BookFailed(_failure(path, book, notebook, at, reason)) from None
    except (DeadKernelError, asyncio.CancelledError):
        if interrupted.is_set():
            raise KeyboardInterrupt from None
        reason = "the kernel died (out of memory, or the cell ended its process)"
        raise BookFailed(_failure(path, book, notebook, at, reason)) from None
    finally:
        bar.close()


def _environ(book: Book, path: Path) -> dict[str, str]:
    environ = dict(os.environ)
    # The modules whose digest was taken are the ones that the cells import.
    environ["PYTHONPATH"] = str(book.root)
    # A build may show a measurement of the same digest again; a reader's cell always measures.
    environ["CASEBOOK_BUILD"] = "1"
    environ["CASEBOOK_CHAPTER"] = path.stem
    # Not the user's own start-up files and history.
    environ["IPYTHONDIR"] = str(book.build / "ipython")
    return environ


def _failure(path: Path, book: Book, notebook: NotebookNode, at: dict, reason: str) -> str:
    index = at["cell_index"]
    number = sum(cell.cell_type == "code" for cell in notebook.cells[: index + 1])
    first_line = (notebook.cells[index].source.strip().splitlines() or [""])[0]
    return f"{path.relative_to(book.root)}, code cell {number} ({first_line}): {reason}"


def _name(book: Book, path: Path) -> str:
    return path.relative_to(book.root).with_suffix("").as_posix()


def _read(path: Path) -> NotebookNode:
    try:
        return nbformat.read(path, as_version=4)
    except (ValueError, nbformat.ValidationError) as error:
        raise BookFailed(f"{path.name} is not a valid notebook: {error}") from error


def _fresh_record(cache: JupyterCacheBase, notebook: NotebookNode, digest: str) -> bool:
    try:
        record = cache.match_cache_notebook(notebook)
    except KeyError:
        return False
    return (record.data or {}).get("digest") == digest


def _forget(cache: JupyterCacheBase, book: Book, path: Path) -> None:
    """Delete every record of the notebook at `path`, and any that its code of today matches."""
    records = cache.list_cache_records()
    keys = {record.pk for record in records if record.uri == _name(book, path)}
    try:
        keys.add(cache.match_cache_notebook(_read(path)).pk)
    except KeyError:
        pass
    for key in keys:
        cache.remove_cache(key)


def _executed(book: Book, cache: JupyterCacheBase, path: Path, surroundings: str) -> Chapter:
    """The chapter as the cache holds it: what Sphinx will find. Anything else is an error."""
    notebook = _read(path)
    name = _name(book, path)
    if not _fresh_record(cache, notebook, digests.of_notebook(notebook, surroundings)):
        raise BookFailed(f"{name} changed while the book was being built: build it again.")
    return Chapter(name, cache.merge_match_into_notebook(notebook)[1])
