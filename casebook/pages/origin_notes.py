"""Notes at the top of pages that show the measurements of another machine."""

from pathlib import Path

from casebook.pages import ledger
from casebook.pages.contents import Book


def of_chapter(book: Book, path: Path) -> str:
    """Return the note of a chapter, as Markdown; empty if this machine was measured."""
    if book.is_waiting(path):
        return (
            "The book is being written, and this chapter's turn has not come: its text is here, "
            "and its numbers and charts follow within minutes. Load the page again."
        )
    machine = book.machine_of(path)
    if not machine:
        return ""
    measures = "" if path in book.story() else " `make book ALL=1` measures it here."
    return (
        f"This page shows what another machine measured: **{ledger.in_cell(machine)}**. All of it "
        f"comes from that machine's file.{measures}"
    )


def of_the_book(book: Book) -> str:
    """Return the note of every other page, whose figures come from several chapters."""
    story = book.story()
    machines = [book.machine_of(path) for path in book.notebooks()]
    further = list(dict.fromkeys(filter(None, machines)))
    if waiting := sum(map(book.is_waiting, book.notebooks())):
        return (
            f"This book is being written: {waiting} of its {len(machines)} chapters have no "
            "numbers yet. Load the page again in a minute."
        )
    if not further:
        return ""
    owners = " and of ".join(f"**{ledger.in_cell(machine)}**" for machine in further)
    own_count = machines.count("")
    if not own_count:
        return f"The measurements in this book are those of another machine: of {owners}."
    if any(map(book.machine_of, story)):
        return (
            f"This book is being measured: {own_count} of its {len(machines)} chapters show this "
            f"machine. The others still show the measurements of {owners}, and say so."
        )
    return (
        f"The story was measured where these pages were written. Laboratory chapters show the "
        f"measurements of {owners}, and say so; `make book ALL=1` measures them here."
    )
