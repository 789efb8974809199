"""Where a page's numbers come from: a line at its foot, and before it has any, a note on top."""

import re
from datetime import datetime
from pathlib import Path

from casebook.pages.contents import Book

#: Where and when something was measured, in the captions of a page (charts/origins.py).
_CAPTION = re.compile(
    r"(?P<how>Measured|[Rr]ecorded) on (?P<place>(?:(?!: r|Recorded on)[^<>])+?), "
    r"(?P<first>\d+ \w+ \d{4})(?:, \d\d:\d\d(?: UTC)?)?"
    r"(?: to (?:(?P<last>\d+ \w+ \d{4})|\d))?"
)


def while_written(book: Book, path: Path | None = None) -> str:
    """Return the note on top of a page whose numbers are still to come, as Markdown.

    path: of a chapter; None: another page. The note is empty if the page has its numbers.
    """
    if path is not None:
        if not book.is_waiting(path):
            return ""
        return (
            "The book is being written, and this chapter's turn has not come: its text is here, "
            "and its numbers and charts follow within minutes. Load the page again."
        )
    waiting = sum(map(book.is_waiting, book.notebooks()))
    if not waiting:
        return ""
    return (
        f"This book is being written: {waiting} of its {len(book.notebooks())} chapters have no "
        "numbers yet. Load the page again in a minute."
    )


def of_chapter(book: Book, path: Path) -> str:
    """Return whose answers a chapter shows; empty if this machine was measured."""
    machine = book.machine_of(path)
    if not machine or book.is_waiting(path):
        return ""
    measures = "" if path in book.story() else " make book ALL=1 measures it here."
    return f"This page shows what another machine measured: {machine}.{measures}"


def of_the_book(book: Book) -> str:
    """Return the same for every other page, whose figures come from several chapters."""
    story = book.story()
    machines = [book.machine_of(path) for path in book.notebooks()]
    further = list(dict.fromkeys(filter(None, machines)))
    if not further or any(map(book.is_waiting, book.notebooks())):
        return ""
    owners = " and of ".join(further)
    own_count = machines.count("")
    if not own_count:
        return f"The measurements in this book are those of another machine: of {owners}."
    if any(map(book.machine_of, story)):
        return (
            f"This book is being measured: {own_count} of its {len(machines)} notebooks show this "
            f"machine. The others still show the measurements of {owners}, and say so."
        )
    return (
        f"The story was measured where these pages were written. Laboratory chapters show the "
        f"measurements of {owners}, and say so; make book ALL=1 measures them here."
    )


def of_captions(text: str) -> str:
    """Return where and when what a page shows was measured, once for all of its captions."""
    days: dict[tuple[str, str], list[str]] = {}
    for found in _CAPTION.finditer(text):
        key = (found["how"].capitalize(), found["place"])
        days.setdefault(key, []).extend(filter(None, (found["first"], found["last"])))
    sentences = []
    for (how, place), named in days.items():
        first, last = min(named, key=_as_date), max(named, key=_as_date)
        sentences.append(f"{how} on {place}, {first}{f' to {last}' if last != first else ''}.")
    return " ".join(sentences)


def _as_date(day: str) -> datetime:
    return datetime.strptime(day, "%d %B %Y")
