"""Writes pages again of which running text alone has changed: seconds in place of a minute."""

import shutil
import sys
from collections.abc import Sequence

from casebook.pages import accessibility, last_build, links, permanent, site, staleness
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
    before = staleness.states(written)
    problems = site.write(book, strict=True, only=names)
    shutil.rmtree(draft, ignore_errors=True)
    for name, state in staleness.states(written).items():
        if before.get(name) != state:
            copy = draft / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(written / name, copy)
    pages = links.page_files(draft)
    permanent.lead_on(book.root, draft, {page.relative_to(draft).as_posix() for page in pages})
    accessibility.amend(pages)
    for file in draft.rglob("*"):  # one by one: a reader finds whole files meanwhile
        if file.is_file():
            file.replace(book.html / file.relative_to(draft))
    site.write_index(book, book.html)
    problems += links.broken(
        book.html, only=[book.html / page.relative_to(draft) for page in pages]
    )
    if problems:
        raise last_build.failure(problems)
    last_build.keep(book, stamp, summary)
    last_build.print_summary(summary)
