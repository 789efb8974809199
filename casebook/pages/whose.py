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
    return (
        f"This page shows what another machine measured: **{ledger.in_cell(machine)}**. All of it "
        "comes from that machine's file, and nothing was measured where the page was written."
    )


def of_the_book(book: Book) -> str:
    """The note of every other page, whose figures come from several chapters."""
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
    return (
        f"This book is being measured: {own} of its {len(every)} chapters show this machine. The "
        f"others still show the measurements of {whose}, and say so."
    )
