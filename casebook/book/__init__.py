"""From notebooks to pages, in one direction: execute, collect the evidence, render.

`build()` does all of it. Each step trusts only what the step before it has checked:

1. `execution` runs each notebook whose digest (its code and everything that code can reach) has
   changed, and keeps the result in the cache that Sphinx reads;
2. `evidence` takes claims, comparisons, figures and profiles out of the executed notebooks;
3. `pages` has Jupyter Book write the site, without executing anything, and checks its links.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from casebook import places, published
from casebook.book import evidence, execution, pages, required
from casebook.book.contents import Book
from casebook.errors import BookFailed

#: The parts of the sources (see casebook.published) that the chapters cover so far.
WRITTEN_PARTS = (1, 2, 3)


def build(root: Path = places.ROOT, parts: Iterable[int] = WRITTEN_PARTS) -> Path:
    """Bring the book under `root` up to date; returns the first page.

    parts: of which parts of data/published.csv every row must be compared with in a chapter.

    Raises BookFailed (a notebook, a page, or something that CASEBOOK_REQUIRE names and this machine
    does not have) or ClaimReversed (a finding that does not hold here). Tells its progress on
    standard error.
    """
    required.check()
    book = Book(root)
    chapters = execution.execute(book)
    found = evidence.collect(book, chapters)
    first_page = pages.render(book, chapters, found)
    # Last, because the page of comparisons is where an author sees what is missing.
    _check_compared(found, parts)
    print(f"the book is ready: {first_page.relative_to(root)}", file=sys.stderr)
    return first_page


def _check_compared(found: evidence.Evidence, parts: Iterable[int]) -> None:
    """Raise BookFailed when a published row of these parts stands in no chapter."""
    compared = [record["id"] for record in found.comparisons]
    missing = [row for part in parts for row in published.missing(compared, part)]
    if missing:
        raise BookFailed(
            f"No chapter compares itself with these rows of data/published.csv: "
            f"{', '.join(missing)}. Call published.compare for each, at least to say why not."
        )
