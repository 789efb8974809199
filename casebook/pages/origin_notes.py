"""Where a page's numbers come from: a line at its foot, and before it has any, a note on top."""

import os
import re
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path

from casebook.laboratory import machine_files
from casebook.pages.contents import Book

#: Where and when something was measured, in the captions of a page (charts/origins.py).
_CAPTION = re.compile(
    r"(?P<how>Measured|[Rr]ecorded) on (?P<place>(?:(?!: r|Recorded on)[^<>])+?), "
    r"(?P<first>\d+ \w+ \d{4})(?:, \d\d:\d\d(?: UTC)?)?"
    r"(?: to (?:(?P<last>\d+ \w+ \d{4})|\d))?"
)

#: How a caption begins whose runs are the build's own.
_HERE = "Measured on this machine"


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
        others = "other machines" if len(further) > 1 else "another machine"
        return f"The measurements in this book are those of {others}: of {owners}."
    if any(map(book.machine_of, story)):
        return (
            f"This book is being measured: {own_count} of its {len(machines)} notebooks show this "
            f"machine. The others still show the measurements of {owners}, and say so."
        )
    return (
        f"The story's numbers were measured on the machine that made these pages, the laboratory's "
        f"earlier, on {owners}. make book ALL=1 measures those as well."
    )


@cache
def own_machine() -> str:
    """Name the machine that writes the pages, to those who have another: "Intel Xeon, 2 cores"."""
    about = {"processor": machine_files.processor(), "cores": os.cpu_count()}
    return re.sub(r"\((?:R|TM)\)|(?: Processor| CPU)\b| @ [^,]*", "", machine_files.label(about))


def with_machine_name(text: str) -> str:
    """Return captions as a published page shows them, with the name of the machine.

    To its reader "this machine" would be her own.
    """
    return text.replace(_HERE, f"Measured on {escape(own_machine())}")


def of_captions(text: str, is_published: bool = False) -> str:
    """Return where and when what a page shows was measured, once for all of its captions.

    text: as the captions were written. is_published: whether others read the page, who
    are told how to measure theirs; without it, the page says "this machine".
    """
    days: dict[tuple[str, str], list[str]] = {}
    for match in _CAPTION.finditer(text):
        key = (match["how"].capitalize(), match["place"])
        days.setdefault(key, []).extend(filter(None, (match["first"], match["last"])))
    sentences = []
    for (verb, place), dates in days.items():
        first, last = min(dates, key=_as_date), max(dates, key=_as_date)
        time = f"{first} to {last}" if last != first else first
        if f"{verb} on {place}" == _HERE:
            place, time = (
                (own_machine(), f"{time}; your own machine's numbers come from make book")
                if is_published
                else (f"{place} ({own_machine()})", time)
            )
        sentences.append(f"{verb} on {place}, {time}.")
    return " ".join(sentences)


def foot(note: str, captions: str, is_published: bool = False) -> str:
    """Return the foot of a page: whose answers it shows, and what `of_captions` says.

    A machine that the note names is not named again.
    """
    text = of_captions(captions, is_published)
    measured = re.compile(r"Measured on (.+?), (?=\d+ [A-Z])")
    text = measured.sub(lambda place: "Measured on " if place[1] in note else place[0], text)
    return f"{note} {text}".strip()


def _as_date(day: str) -> datetime:
    return datetime.strptime(day, "%d %B %Y")
