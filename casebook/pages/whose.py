"""Whose measurements a page shows, where they are not this machine's: a note for its top."""

from pathlib import Path

from casebook.pages import ledger
from casebook.pages.contents import Book


def of_chapter(book: Book, path: Path) -> str:
    """The note of a chapter, as Markdown; empty where this machine was measured."""
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
    """The note of every other page, whose figures come from several chapters."""
    story = book.story()
    every = [book.machine_of(path) for path in book.notebooks()]
    others = list(dict.fromkeys(filter(None, every)))
    if waiting := sum(map(book.is_waiting, book.notebooks())):
        return (
            f"This book is being written: {waiting} of its {len(every)} chapters have no numbers "
            "yet. Load the page again in a minute."
        )
    if not others:
        return ""
    whose = " and of ".join(f"**{ledger.in_cell(each)}**" for each in others)
    own = every.count("")
    if not own:
        return f"The measurements in this book are those of another machine: of {whose}."
    if any(map(book.machine_of, story)):
        return (
            f"This book is being measured: {own} of its {len(every)} chapters show this machine. "
            f"The others still show the measurements of {whose}, and say so."
        )
    return (
        f"The story was measured where these pages were written. Laboratory chapters show the "
        f"measurements of {whose}, and say so; `make book ALL=1` measures them here."
    )
