"""Runs the notebooks whose stamp has changed, and keeps the results in `Book.executed`.

The stamp sees a notebook's code and all that this code can reach: modules, data, interpreters. It
is kept beside the result, and taken away before the notebook runs: nothing old passes for new.

A finding on a clock that comes out otherwise has had its second attempt where its rounds were taken
(laboratory/rounds.py). What was only counted is not read from the store for ever if it came out
otherwise: the next build measures it again. A chapter that raises is kept as far as it got, with
the error in its place, and runs again in the next build.
"""

import itertools
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nbformat import NotebookNode

from casebook.findings import media
from casebook.findings.finding import Finding
from casebook.laboratory import machine_files, progress
from casebook.laboratory.decisions import OTHERWISE
from casebook.pages import contents, kernel, staleness
from casebook.pages.contents import Book
from casebook.pages.timing import ChapterTime, Timing

#: How many chapters are executed at a time: while one measures alone, the others draw. What they
#: may measure beside each other is said in casebook/laboratory/reservation.py.
LANES = 3
#: How many of the things that have changed are named.
MOST_NAMED = 5


@dataclass(frozen=True)
class Chapter:
    """An executed notebook.

    stem: of its file, "01_one_at_a_time". failure: what ended it before its end, in one line; empty
    if nothing did.
    """

    stem: str
    notebook: NotebookNode
    failure: str = ""


def execute(
    book: Book,
    files: Sequence[Path] = (),
    chapter_done: Callable[[], None] = lambda: None,
    only: Collection[Path] | None = None,
    expected: Mapping[str, ChapterTime] | None = None,
) -> list[Chapter]:
    """Bring notebooks of the book up to date.

    Parameters:
        book: where the results are kept.
        files: machine files. Each chapter has its answers from the first of them that answers all
            of its cells; if none does, from the first. Without any, this machine is measured.
        chapter_done: called after each chapter, in its thread.
        only: these notebooks; None: all. Another one that was never executed waits for its turn,
            with a page that says so.
        expected: what chapters may take that were never executed here, by their files' stems.

    Returns all chapters, in reading order. Raises BookFailed only for what is no notebook, or
    changed while the book was being built; a chapter that raises, takes longer than
    kernel.CELL_TIMEOUT_S or ends its kernel says so.
    """
    chosen = [path for path in book.notebooks() if only is None or path in only]
    book.executed.mkdir(parents=True, exist_ok=True)
    stale = stale_notebooks(book, chosen, files)
    for path in book.notebooks():
        if path not in chosen and not book.has_result(path):
            _let_wait(book, path)
    failures = _execute_all(book, stale, files, chapter_done, expected)
    return chapters(book, failures)


def stale_notebooks(
    book: Book, paths: Iterable[Path], files: Sequence[Path] = ()
) -> dict[Path, str]:
    """Return those of these notebooks that have to be executed, each with the stamp of that run.

    files: machine files, as for `execute`.
    """
    by_files = staleness.of_machine_files
    surroundings = by_files(book, files) if files else staleness.of_surroundings(book)
    stamps = {path: staleness.of_notebook(contents.read(path), surroundings) for path in paths}
    return {
        path: stamp
        for path, stamp in stamps.items()
        if not book.has_run(path, stamp) or (not files and _to_count_again(book, path))
    }


def _let_wait(book: Book, path: Path) -> None:
    """Keep a notebook as it is, for a page that says that its turn is still to come."""
    notebook = contents.read(path)
    for cell in contents.code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    notebook.metadata[contents.WAITING] = True
    book.keep(path, notebook, "")


def chapters(book: Book, failures: Mapping[Path, str] | None = None) -> list[Chapter]:
    """Return the notebooks of the book as they were executed last, in reading order.

    failures: what stopped some of them before their end. Raises BookFailed if one was never
    executed.
    """
    failures = failures or {}
    return [
        Chapter(path.stem, book.result(path), failures.get(path, "")) for path in book.notebooks()
    ]


def _execute_all(
    book: Book,
    stamps: dict[Path, str],
    files: Sequence[Path],
    chapter_done: Callable[[], None],
    expected: Mapping[str, ChapterTime] | None,
) -> dict[Path, str]:
    """Execute these notebooks, LANES at a time; keep them, and return what stopped each.

    By turns from the front and from the back: neighbours measure the same stacks, and the later
    takes from the store what the earlier has measured.
    """
    by_turns = itertools.chain(*zip(stamps, reversed(stamps), strict=True))
    order = dict.fromkeys(stamps if files else by_turns)  # a file has been measured already
    stop = threading.Event()

    def execute_chapter(path: Path) -> str:
        with tempfile.TemporaryDirectory(prefix="casebook-") as name:
            folder = Path(name)
            with times.chapter(path.stem, folder / kernel.SPANS):
                notebook, failure = (
                    _answered(path, book, times, stop, folder, files)
                    if files
                    else _executed(path, book, times, stop, folder)
                )
                book.keep(path, notebook, "" if failure else stamps[path])
                if failure:
                    times.print_line(path.stem, f"failed: {failure}")
        chapter_done()
        return failure

    names = [path.stem for path in stamps]
    source = f" of {files[0].name}" if files else ""
    timing = Timing(book, names, LANES, source, expected)
    with timing as times, ThreadPoolExecutor(LANES) as pool:
        tasks = {path: pool.submit(execute_chapter, path) for path in order}
        try:
            return {path: task.result() for path, task in tasks.items()}
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _executed(
    path: Path, book: Book, times: Timing, stop: threading.Event, folder: Path
) -> tuple[NotebookNode, str]:
    """Execute a notebook, and return it and its failure.

    What was counted and came out otherwise before is forgotten first.
    """
    if doubtful := _to_count_again(book, path):
        ids = ", ".join(finding.id for finding in doubtful)
        times.print_line(path.stem, f"came out otherwise before, so it is measured again: {ids}")
        book.forget(key for finding in doubtful for key in finding.keys)
    notebook, failure = kernel.run(path, book, folder, partial(times.show, path.stem), stop)
    if changed := _changed(folder / kernel.PROGRESS):
        times.print_line(path.stem, f"measured again what depends on what has changed: {changed}")
    return notebook, failure


def _to_count_again(book: Book, path: Path) -> list[Finding]:
    """Return the findings of a notebook that were counted here and came out otherwise last time."""
    last = book.executed / path.name
    records = media.records(contents.read(last), media.CLAIM) if last.exists() else []
    findings = otherwise(map(Finding.from_json, records))
    return [finding for finding in findings if finding.keys and finding.window is None]


def _answered(
    path: Path,
    book: Book,
    times: Timing,
    stop: threading.Event,
    folder: Path,
    files: Sequence[Path],
) -> tuple[NotebookNode, str]:
    """Execute a notebook with the answers of one of these files; return it and its failure.

    It is never of two: what two machines measured is not compared as if one had.
    """
    tried = []
    for file in files:
        notebook, failure = kernel.run(
            path, book, folder, partial(times.show, path.stem), stop, file
        )
        notebook.metadata[contents.MACHINE] = machine_files.read_kept(file).label
        notebook.metadata[contents.MACHINE_FILE] = file.name
        tried.append((notebook, failure))
        missing = not_in_file(notebook)
        if not missing:
            return notebook, failure
        number = f"{len(missing)} cell{'s' * (len(missing) != 1)}"
        times.print_line(path.stem, f"{file.name} has no answer to {number}")
    return tried[0]


def not_in_file(notebook: NotebookNode) -> list[str]:
    """Return, for each cell that the machine file has no answer to, why it is not here."""
    return [record["why"] for record in media.records(notebook, media.NOT_IN_FILE)]


def _changed(progress_file: Path) -> str:
    """Return what has changed since the last time, as a kernel noted it, in words.

    Empty if nothing has.
    """
    file = progress.changes_file(progress_file)
    names = dict.fromkeys(file.read_text().splitlines()) if file.exists() else {}
    return ", ".join([*names][:MOST_NAMED]) + ", …" * (len(names) > MOST_NAMED)


def otherwise(findings: Iterable[Finding]) -> list[Finding]:
    """Return those findings that came out otherwise, here and now."""
    return [finding for finding in findings if finding.outcome == OTHERWISE and finding.live]
