"""Runs the notebooks whose stamp has changed and keeps the results where Sphinx finds them.

Sphinx looks a notebook up in the jupyter-cache by its code alone. The stamp, which also sees
imported modules, data and interpreters, is stored with each record here, and a record whose stamp
is not today's is deleted before the notebook runs: nothing stale is left to be found.

A chapter of which a finding comes out otherwise is executed once more: the measurements behind
that finding are made again, and all runs together decide. A chapter that raises is kept as far
as it got, with the error in its place, and runs again in the next build.
"""

import contextlib
import itertools
import json
import signal
import tempfile
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.main import JupyterCacheBase
from nbformat import NotebookNode

from casebook.errors import BookFailed
from casebook.findings import media
from casebook.pages import kernel, staleness
from casebook.pages.contents import Book
from casebook.pages.costs import Costs
from casebook.runs import again
from casebook.runs.decisions import OTHERWISE

#: How many chapters are executed at a time: while one measures alone, the others draw. What they
#: may measure beside each other is said in casebook/runs/beside.py.
LANES = 3


@dataclass(frozen=True)
class Chapter:
    """An executed notebook. stem: of its file, "01_one_at_a_time". failure: what ended it before
    its end, in one line; empty where nothing did."""

    stem: str
    notebook: NotebookNode
    failure: str = ""


def execute(book: Book) -> list[Chapter]:
    """Bring every notebook of the book up to date and return them executed, in reading order.

    Raises BookFailed only for what is no notebook, or changed while the book was being built; a
    chapter that raises, takes longer than kernel.CELL_TIMEOUT_S or ends its kernel says so.
    """
    surroundings = staleness.of_surroundings(book)
    cache = get_cache(book.cache)
    notebooks = {path: _read(path) for path in book.notebooks()}
    stamps = {
        path: staleness.of_notebook(notebook, surroundings) for path, notebook in notebooks.items()
    }
    stale = [path for path in notebooks if not _is_fresh(cache, notebooks[path], stamps[path])]
    # First delete, then run: whatever happens below, no old result passes for a new one.
    for path in stale:
        _forget(cache, book.name(path), notebooks[path])
    failures: dict[Path, str] = {}
    # Closed at once, so that an interrupt while a result is kept ends the kernels as well.
    with contextlib.closing(_all_executed(stale, book)) as all_executed:
        for path, executed, failure in all_executed:
            failures[path] = failure
            stamp = "failed" if failure else stamps[path]
            bundle = CacheBundleIn(executed, book.name(path), data={"stamp": stamp})
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    chapters = []
    for path in notebooks:
        notebook, failure = _read(path), failures.get(path, "")
        stamp = staleness.of_notebook(notebook, surroundings)
        if not failure and not _is_fresh(cache, notebook, stamp):
            raise BookFailed(f"{book.name(path)} changed while the book was built: build it again.")
        # As the cache holds it: what Sphinx will find.
        executed = cache.merge_match_into_notebook(notebook)[1]
        chapters.append(Chapter(path.stem, executed, failure))
    return chapters


def _all_executed(
    paths: list[Path], book: Book
) -> Generator[tuple[Path, NotebookNode, str], None, None]:
    """(path, executed notebook, failure) of each, as they are done: LANES at a time.

    By turns from the front and from the back: neighbours measure the same stacks, and the later
    takes from the store what the earlier has measured.
    """
    order = dict.fromkeys(itertools.chain.from_iterable(zip(paths, reversed(paths), strict=True)))
    stop = threading.Event()

    def one(path: Path) -> tuple[Path, NotebookNode, str]:
        with costs.chapter(book.name(path)) as progress:
            executed, failure = _executed(path, book, progress, stop)
            if failure:
                progress.tell(f"failed: {failure}")
        return path, executed, failure

    with (
        Costs(book, [book.name(path) for path in paths], LANES) as costs,
        ThreadPoolExecutor(LANES) as pool,
        _ended_as_interrupted(),
    ):
        try:
            for done in as_completed([pool.submit(one, path) for path in order]):
                yield done.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


@contextlib.contextmanager
def _ended_as_interrupted() -> Iterator[None]:
    """Meanwhile, an interrupt and SIGTERM raise KeyboardInterrupt, so that no kernel is left; also
    where interrupts were ignored, as a shell has it for what it starts in the background."""
    if threading.current_thread() is not threading.main_thread():  # which alone takes signals
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler or signal.SIG_DFL)  # None: not set by Python


def _executed(path: Path, book: Book, progress, stop: threading.Event) -> tuple[NotebookNode, str]:
    """A notebook, executed, and once more where a finding came out otherwise; and its failure."""
    with tempfile.TemporaryDirectory(prefix="casebook-") as name:
        notebook, folder = _read(path), Path(name)
        failure = kernel.run(notebook, path, book, folder, progress, {}, stop)
        claims = [] if failure else otherwise(notebook)
        if not claims:
            return notebook, failure
        progress.again(claims)
        keys = sorted({key for record in claims for key in record["keys"]})
        attempt = {"keys": keys, "claims": {record["id"]: record for record in claims}}
        (folder / "again.json").write_text(json.dumps(attempt))
        variables = {again.VARIABLE: str(folder / "again.json")}
        notebook = _read(path)
        return notebook, kernel.run(notebook, path, book, folder, progress, variables, stop)


def otherwise(notebook: NotebookNode) -> list[dict]:
    """The records of an executed notebook's claims that came out otherwise, here and now."""
    found = media.records(notebook, media.CLAIM)
    return [each for each in found if each["outcome"] == OTHERWISE and each["live"]]


def _read(path: Path) -> NotebookNode:
    try:
        return nbformat.read(path, as_version=4)
    except (ValueError, nbformat.ValidationError) as error:
        raise BookFailed(f"{path.name} is not a valid notebook: {error}") from error


def _is_fresh(cache: JupyterCacheBase, notebook: NotebookNode, stamp: str) -> bool:
    try:
        return (cache.match_cache_notebook(notebook).data or {}).get("stamp") == stamp
    except KeyError:
        return False


def _forget(cache: JupyterCacheBase, name: str, notebook: NotebookNode) -> None:
    """Delete every record under a name, and any that the notebook's code of today matches."""
    keys = {record.pk for record in cache.list_cache_records() if record.uri == name}
    with contextlib.suppress(KeyError):
        keys.add(cache.match_cache_notebook(notebook).pk)
    for key in keys:
        cache.remove_cache(key)
