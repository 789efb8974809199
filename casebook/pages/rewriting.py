"""Writes pages again of which running text alone has changed: seconds in place of a minute."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from casebook.errors import BookFailed
from casebook.pages import accessibility, last_build, links, permanent, site
from casebook.pages.contents import Book


def rewrite(book: Book, names: Sequence[str], stamp: last_build.Stamp, summary: str) -> None:
    """Write these pages again: their running text has changed, and nothing else of the book.

    Parameters:
        book: where they are written.
        names: of the pages.
        stamp: of the book as it is.
        summary: what the last build printed at its end; what findings came to is the same.

    Raises BookFailed with what is wrong with the pages, as a build does.
    """
    print(f"writing again: {', '.join(names)}", file=sys.stderr, flush=True)
    last_build.forget(book)
    (book.build / "site.stamp").unlink(missing_ok=True)  # it is of the former text
    written, draft = site.folder(book), book.build / "site"
    before = _states(written)
    problems = site.write(book, strict=True, only=names)
    shutil.rmtree(draft, ignore_errors=True)
    for file, state in _states(written).items():
        if before.get(file) != state:
            copy = draft / file.relative_to(written)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)
    pages = links.page_files(draft)
    permanent.lead_on(book.root, draft, {page.relative_to(draft).as_posix() for page in pages})
    accessibility.amend(pages)
    for file in draft.rglob("*"):  # one by one: a reader finds whole files meanwhile
        if file.is_file():
            file.replace(book.html / file.relative_to(draft))
    site.write_index(book, book.html)
    broken = links.problems(book.html, only=[book.html / page.relative_to(draft) for page in pages])
    problems += ["The pages have broken links:\n" + "\n".join(broken)] * bool(broken)
    if problems:
        raise BookFailed("\n".join(problems) + "\nThe pages are there all the same.")
    last_build.keep(book, stamp, summary)
    last_build.print_summary(summary)


def _states(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return size and time of each file in a folder, and in those within."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {file: (file.stat().st_size, file.stat().st_mtime_ns) for file in files}
