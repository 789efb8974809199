"""Runs the notebooks whose digest has changed and keeps the results where Sphinx finds them.

Sphinx looks a notebook up in the jupyter-cache by its code alone. The digest, which also sees
imported modules, data and interpreters, is stored with each record here, and a record whose digest
is not today's is deleted before the notebook runs: nothing stale is left to be found.

A chapter of which a finding comes out otherwise is executed once more: the measurements behind
that finding are made again, and all runs together decide. A chapter that raises is kept as far
as it got, with the error in its place, and runs again in the next build.
"""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.main import JupyterCacheBase
from nbformat import NotebookNode

from casebook import media
from casebook.errors import BookFailed
from casebook.pages import kernel, staleness
from casebook.pages.contents import Book
from casebook.pages.costs import Costs
from casebook.runs import again
from casebook.runs.decisions import OTHERWISE


@dataclass(frozen=True)
class Chapter:
    """An executed notebook. name: of its page, "notebooks/01_one_at_a_time". failure: what ended
    it before its end, in one line; empty where nothing did."""

    name: str
    notebook: NotebookNode
    failure: str = ""

    @property
    def stem(self) -> str:
        return self.name.rpartition("/")[2]


def execute(book: Book) -> list[Chapter]:
    """Bring every notebook of the book up to date and return them executed, in reading order.

    Raises BookFailed only for what is no notebook, or changed while the book was being built; a
    chapter that raises, takes longer than kernel.CELL_TIMEOUT_S or ends its kernel says so.
    """
    paths = book.notebooks()
    surroundings = staleness.of_surroundings(book)
    cache = get_cache(book.cache)
    stale = {path: None for path in paths}
    for path in paths:
        notebook = _read(path)
        if _fresh_record(cache, notebook, staleness.of_notebook(notebook, surroundings)):
            del stale[path]
    # First delete, then run: whatever happens below, no old result passes for a new one.
    for path in stale:
        _forget(cache, book, path)
    failures: dict[Path, str] = {}
    with Costs(book, [_name(book, path) for path in stale]) as costs:
        for path in stale:
            notebook = _read(path)
            digest = staleness.of_notebook(notebook, surroundings)
            started = time.monotonic()
            with costs.chapter(_name(book, path)) as progress:
                failure = _run(notebook, path, book, progress)
                claims = otherwise(notebook)
                if claims and not failure:
                    progress.again(claims)
                    notebook = _read(path)
                    failure = _run(notebook, path, book, progress, claims)
            if failure:
                failures[path], digest = failure, "failed"
                costs.tell(f"      failed: {failure}")
            seconds = time.monotonic() - started
            bundle = CacheBundleIn(
                notebook, _name(book, path), data={"execution_seconds": seconds, "digest": digest}
            )
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return [_executed(book, cache, path, surroundings, failures.get(path, "")) for path in paths]


def otherwise(notebook: NotebookNode) -> list[dict]:
    """The records of an executed notebook's claims that came out otherwise, here and now."""
    records = [
        output.get("data", {}).get(media.CLAIM)
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    ]
    return [each for each in records if each and each["outcome"] == OTHERWISE and each["live"]]


def _run(
    notebook: NotebookNode, path: Path, book: Book, progress, first: list[dict] | None = None
) -> str:
    """Execute a notebook in place; what went wrong, in one line, or nothing.

    first: the records of a first attempt that came out otherwise.
    """
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        more = {}
        if first is not None:
            keys = sorted({key for record in first for key in record["keys"]})
            told = {"keys": keys, "claims": {record["id"]: record for record in first}}
            file = Path(folder) / "again.json"
            file.write_text(json.dumps(told))
            more[again.VARIABLE] = str(file)
        return kernel.run(notebook, path, book, Path(folder), progress, more)


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


def _executed(
    book: Book, cache: JupyterCacheBase, path: Path, surroundings: str, failure: str
) -> Chapter:
    """The chapter as the cache holds it: what Sphinx will find. Anything else is an error."""
    notebook = _read(path)
    name = _name(book, path)
    digest = staleness.of_notebook(notebook, surroundings)
    if not failure and not _fresh_record(cache, notebook, digest):
        raise BookFailed(f"{name} changed while the book was being built: build it again.")
    return Chapter(name, cache.merge_match_into_notebook(notebook)[1], failure)
