"""Has Jupyter Book write the site from executed notebooks, and checks what it wrote."""

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from nbformat import NotebookNode

from casebook.cases.fetching import observations
from casebook.charts import snakeviz
from casebook.pages import (
    accessibility,
    execution,
    ledger,
    links,
    permanent,
    site,
    staleness,
)
from casebook.pages.contents import Book
from casebook.pages.execution import Chapter
from casebook.pages.records import Records
from casebook.stacks import digests

#: What the site is made of, beside the executed notebooks and their records.
SOURCES = ("_config.yml", "_toc.yml", "book", "notebooks", "casebook", "requirements.txt")
#: Takes the place of a figure if its chapter stopped before drawing it.
NO_FIGURE = "<p><em>A figure is missing here: its chapter has not got so far.</em></p>\n"
#: The same if its chapter was written to its end from a machine file; and the end of a page that
#: lacks something with an address.
FIGURE_NOT_IN_FILE = (
    "<p><em>A figure is missing here: it is not in the machine file that this book is made of."
    "</em></p>\n"
)
NOT_IN_FILE = (
    "<em>What is missing on this page is not in the machine file that this book is made of.</em>"
)


def render(
    book: Book,
    chapters: Sequence[Chapter],
    collected: Records,
    is_last: bool = True,
    gently: bool = False,
) -> tuple[Path, list[str]]:
    """Write `book.html` anew when anything it is made of has changed.

    Parameters:
        book: where it is written.
        chapters: as they were executed last.
        collected: what they said.
        is_last: whether no chapter is still to come. Before that, what is wrong does not matter.
        gently: leave the processors to what is measured meanwhile.

    Returns the first page, and what is wrong with the site, in words: chapters that did not run to
    their end, warnings of Sphinx (a missing reference or glue key is one), links between pages that
    lead nowhere, pages that would load something from another site. The pages are there anyway.
    Raises BookFailed when nothing was written at all.
    """
    first_page, stamp_file = book.html / "index.html", book.build / "site.stamp"
    executed = [chapter.notebook for chapter in chapters]
    is_whole = not any(map(execution.not_in_file, executed))
    stamp = _stamp(book, executed, collected)
    failures = [chapter.failure for chapter in chapters if chapter.failure]
    if first_page.exists() and stamp_file.exists() and stamp_file.read_text() == stamp:
        return first_page, failures
    if is_last:
        print("writing the pages", file=sys.stderr, flush=True)
    if failures or not is_whole or not is_last:
        stopped = failures or not is_last
        _stand_in_for_figures(book, NO_FIGURE if stopped else FIGURE_NOT_IN_FILE)
    stamp_file.unlink(missing_ok=True)  # first: what is left of this build passes for nothing
    # What a chapter that stopped has not stated is missing on other pages: no fault of theirs.
    problems = site.write(book, is_whole and not failures and is_last, gently)
    problems = failures + problems
    draft = _copy(site.folder(book), book.build / "site")
    permanent.lead_on(book.root, draft)
    unknown = accessibility.amend(links.page_files(draft))
    site.write_index(book, draft)
    shutil.copy(book.included / ledger.FINDINGS_FILE, draft)
    if not is_whole and is_last:
        permanent.say_why(book.root, draft, NOT_IN_FILE)
    for recording in collected.profiles:
        profile = observations.recorded_profile(recording["name"])
        snakeviz.write(profile, draft / "profiles", recording["name"], recording["title"])
    if is_whole and not failures:
        problems += unknown + links.broken(draft)
    _replace(book.html, draft)
    if is_last and not problems:
        stamp_file.write_text(stamp)
    return first_page, problems


def _stamp(book: Book, executed: Sequence[NotebookNode], collected: Records) -> str:
    """Return a stamp of everything that the pages are made of."""
    outputs = [
        [notebook.metadata, [cell.get("outputs") for cell in notebook.cells]]
        for notebook in executed
    ]
    return digests.digest(
        staleness.of_files(book.root, SOURCES), staleness.of_files(book.included, [""]),
        asdict(collected), outputs, sys.version,
    )  # fmt: skip


def _replace(old: Path, new: Path) -> None:
    """Put a folder in the place of another. Readers always find whole pages."""
    former = old.with_name(f"{old.name}.before")
    shutil.rmtree(former, ignore_errors=True)
    if old.exists():
        old.rename(former)
    new.rename(old)
    shutil.rmtree(former, ignore_errors=True)


def _stand_in_for_figures(book: Book, message: str) -> None:
    """Say on other pages that a figure is missing, where its chapter has not drawn it."""
    for page in (book.root / "book").rglob("*.md"):
        for name in re.findall(r"_build/included/([\w-]+\.html)", page.read_text(encoding="utf-8")):
            if not (book.included / name).exists():
                (book.included / name).write_text(message)


def _copy(folder: Path, copy: Path) -> Path:
    """Copy a folder, in the place of an earlier copy. Returns the copy."""
    shutil.rmtree(copy, ignore_errors=True)
    return shutil.copytree(folder, copy)
