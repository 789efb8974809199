"""What the last build was made of: if nothing of it has changed, a build has nothing to do.

A build asks here before it imports what measures, draws and writes. Only a build whose pages are
whole and in which nothing waits to be measured again is kept.
"""

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from casebook import places
from casebook.errors import BookFailed
from casebook.pages import running_text, staleness
from casebook.pages.contents import Book
from casebook.stacks import digests


@dataclass(frozen=True)
class Stamp:
    """A stamp of everything that a build of this machine's book depends on, or has made.

    rest: of each file of the project that was not made here, but for running text, and of the
    surroundings of the notebooks. pages: of each page's text, by its name. made: by name, size and
    time, of what is kept: executed notebooks, stored measurements, a report for *Your program*, and
    the pages' own stamp.
    """

    rest: str
    pages: dict[str, str]
    made: str

    def changed_pages(self, former: "Stamp") -> list[str] | None:
        """Return the pages whose running text has changed; None if anything else has, too."""
        if (former.rest, former.made, [*former.pages]) != (self.rest, self.made, [*self.pages]):
            return None
        return [name for name, stamp in self.pages.items() if stamp != former.pages[name]]


@dataclass(frozen=True)
class Record:
    """A build that left nothing to do, and what it printed at its end."""

    stamp: Stamp
    summary: str


def stamp(book: Book, everything: bool) -> Stamp:
    """Return the stamp of a book as it is. everything: the whole laboratory is measured."""
    sources = [path.name for path in book.root.iterdir() if _is_source(path)]
    page_files = [book.page_file(name) for name in book.page_names()]
    rest, pages = running_text.split(book)
    rest = digests.digest(
        staleness.of_files(book.root, sources, without=page_files),
        staleness.of_surroundings(book),
        [rest, everything, os.environ.get("CASEBOOK_REQUIRE", "")],
    )
    return Stamp(rest, pages, _made(book))


def read(book: Book) -> Record | None:
    """Return the last build; None if it left something to do, or an earlier version kept it."""
    try:
        fields = json.loads(_file(book).read_text(encoding="utf-8"))
        return Record(Stamp(**fields["stamp"]), fields["summary"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def keep(book: Book, stamp: Stamp, summary: str) -> None:
    """Keep that a build left nothing to do. stamp: of the book as it was built."""
    record = Record(replace(stamp, made=_made(book)), summary)
    _file(book).write_text(json.dumps(asdict(record)), encoding="utf-8")


def forget(book: Book) -> None:
    """Forget the last build, before another one changes what it made."""
    _file(book).unlink(missing_ok=True)


def print_summary(summary: str) -> None:
    """Print the end of a build."""
    print(summary, file=sys.stderr, flush=True)


def failure(problems: Iterable[str], advice: str = "") -> BookFailed:
    """Return the error that ends a build whose pages are there, but not all as they should be."""
    return BookFailed("\n".join([*problems, f"The pages are there all the same.{advice}"]))


def _file(book: Book) -> Path:
    return book.build / "last_build.json"


def _is_source(path: Path) -> bool:
    """Say whether a build may read what is at the top of the project, and did not make it."""
    return path.name[0] not in "._" or path.name in ("_config.yml", "_toc.yml")


def _made(book: Book) -> str:
    """Return a stamp of what builds made, and keep."""
    kept_files = [
        book.executed, book.runs, book.build / "site.stamp", book.html / "index.html",
        book.root / places.LOCAL_NAME / "program.json",
    ]  # fmt: skip
    return digests.digest([staleness.states(path) for path in kept_files])
