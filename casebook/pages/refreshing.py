"""Writes the pages again while chapters are still being measured.

Only in a book that was written from a machine file before: its pages are there, and each shows this
machine as soon as its chapter has been measured here. Elsewhere the pages are written once, at the
end.
"""

import threading
import time

from casebook.errors import CasebookError
from casebook.pages import execution, records, rendering
from casebook.pages.contents import Book

#: Pages are written again at most so often, and take at most a fifth of the time.
_EVERY_S, _TIMES_AS_LONG = 60.0, 4


class Refreshing:
    """A context manager, within which the pages follow the chapters that are done."""

    def __init__(self, book: Book):
        self._book = book
        has_others = any(map(book.machine_of, book.notebooks()))
        self._is_needed = has_others and (book.html / "index.html").exists()
        self._is_over, self._news = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="refreshing")

    def chapter_done(self) -> None:
        """Note that a chapter has been executed."""
        self._news.set()

    def __enter__(self) -> "Refreshing":
        if self._is_needed:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        if self._is_needed:
            self._thread.join()

    def _follow(self) -> None:
        took_s = 0.0
        while not self._is_over.wait(max(_EVERY_S, _TIMES_AS_LONG * took_s)):
            if not self._news.is_set():
                continue
            self._news.clear()
            began = time.monotonic()
            try:
                chapters = execution.chapters(self._book)
                collected = records.collect(self._book, chapters)
                rendering.render(self._book, chapters, collected, is_last=False, gently=True)
            except CasebookError:
                pass  # the last one, after all chapters, says what is wrong
            took_s = time.monotonic() - began
