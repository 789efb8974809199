"""What the last build was made of: if nothing of it has changed, a build has nothing to do.

A build asks here before it imports what measures, draws and writes. Only a build whose pages are
whole and in which nothing waits to be measured again is kept.
"""

import json
import os
import sys
from pathlib import Path

from casebook import places
from casebook.pages import staleness
from casebook.pages.contents import Book
from casebook.stacks import digests


def stamp(book: Book, everything: bool) -> str:
    """Return a stamp of everything that a build of this machine's book depends on, or has made.

    That is each file of the project that was not made here, the surroundings of the notebooks, and
    by name, size and time what is kept: executed notebooks, stored measurements, a report for *Your
    program*, and the pages' own stamp.

    everything: the whole laboratory is measured.
    """
    sources = [path.name for path in book.root.iterdir() if _is_source(path)]
    kept_files = [book.executed, book.runs, book.build / "site.stamp", book.html / "index.html"]
    return digests.digest(
        staleness.of_files(book.root, sources),
        staleness.of_surroundings(book),
        [_states(path) for path in [*kept_files, book.root / places.LOCAL_NAME / "program.json"]],
        [everything, os.environ.get("CASEBOOK_REQUIRE", "")],
    )


def summary(book: Book, everything: bool) -> str | None:
    """Return what the last build printed at its end; None if another one has something to do."""
    try:
        record = json.loads(_file(book).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record["summary"] if record["stamp"] == stamp(book, everything) else None


def keep(book: Book, everything: bool, summary: str) -> None:
    """Keep that this build left nothing to do, and what it printed at its end."""
    record = {"stamp": stamp(book, everything), "summary": summary}
    _file(book).write_text(json.dumps(record), encoding="utf-8")


def forget(book: Book) -> None:
    """Forget the last build, before another one changes what it made."""
    _file(book).unlink(missing_ok=True)


def print_summary(summary: str) -> None:
    """Print the end of a build."""
    print(summary, file=sys.stderr, flush=True)


def _file(book: Book) -> Path:
    return book.build / "last_build.json"


def _is_source(path: Path) -> bool:
    """Say whether a build may read what is at the top of the project, and did not make it."""
    return path.name[0] not in "._" or path.name in ("_config.yml", "_toc.yml")


def _states(path: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of a file, or of each file of a folder; of nothing, nothing."""
    files = sorted(path.iterdir()) if path.is_dir() else [path] * path.exists()
    return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
