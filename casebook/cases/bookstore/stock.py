"""The stock: 3,000 science-fiction books that nobody wrote, the same ones on every machine.

Titles, authors and figures are invented from word lists and a seed, and kept in data/books.json,
which `python -m casebook.cases.bookstore.stock` writes again, byte for byte. Of `random` only what
is promised to stay as it is from version to version is used: the sequence of `random()`.
"""

import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from casebook import places

#: Where the books are kept: one JSON object, a line for each book.
FILE = places.DATA / "books.json"

#: How many there are.
SIZE = 3_000

_SEED = 2016
_FIRST_ID = 10_000

#: Qualities, things, places, first names, family names: a paragraph each.
_WORDS = Path(__file__).with_name("stock_words.txt").read_text(encoding="utf-8").split("\n\n")
_QUALITY, _THING, _PLACE, _FIRST_NAME, _LAST_NAME = (each.split() for each in _WORDS)

#: How titles are built: quality, thing, a second thing, a place.
_PATTERNS = (
    "The {quality} {thing}", "The {quality} {thing}", "{quality} {thing}", "The {thing} of {place}",
    "The {quality} {thing} of {place}", "{place} {thing}", "A {thing} for {place}",
    "The {thing} and the {other}", "The {thing} Beyond {place}", "{thing} Without {other}",
    "Beneath the {quality} {thing}", "Letters from the {quality} {thing}", "The {thing}'s {other}",
    "Return to {place} {thing}",
)  # fmt: skip

#: How titles begin in which "A" is to be "An".
_WANT_AN = ("A A", "A E", "A I", "A O", "A Heir", "A Hour ")

_AUTHORS = 900


class _Lots(random.Random):
    """Draws lots from a seed."""

    def below(self, limit: int) -> int:
        """A whole number from 0 to limit - 1."""
        return int(self.random() * limit)

    def among(self, choices: Sequence[str]) -> str:
        return choices[self.below(len(choices))]

    def hill(self, lowest: int, highest: int) -> int:
        """A whole number of the range, more often from its middle than from its ends."""
        return lowest + sum(self.below(highest - lowest + 1) for _ in range(3)) // 3


def make() -> dict[str, dict]:
    """The books by id, invented again: what data/books.json must hold.

    Each has title (there are no two alike), author, rating (1 to 5, two digits), pages and year.
    Ids are five-digit numbers in rising order, with gaps between them.
    """
    lots = _Lots(_SEED)
    authors = _names(lots)
    made: dict[str, dict] = {}
    titles, number = set(), _FIRST_ID
    while len(made) < SIZE:
        title = _title(lots)
        if title in titles:
            continue
        titles.add(title)
        number += 1 + lots.below(9)
        made[str(number)] = {
            "title": title,
            # Two draws, the lower wins: some write much more than others.
            "author": authors[min(lots.below(_AUTHORS), lots.below(_AUTHORS))],
            "rating": lots.hill(250, 495) / 100,
            "pages": lots.hill(90, 780),
            "year": 1931 + max(lots.below(85), lots.below(85)),
        }
    return made


def text() -> str:
    """The content of data/books.json."""
    lines = (
        f"{json.dumps(number)}: {json.dumps(book, ensure_ascii=False)}"
        for number, book in make().items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def books() -> dict[str, dict]:
    """The books by id, as data/books.json has them (see `make`); a new copy each time."""
    return json.loads(FILE.read_text(encoding="utf-8"))


@cache
def ids() -> tuple[str, ...]:
    """The books' ids, in their order."""
    return tuple(books())


def _names(lots: _Lots) -> list[str]:
    names: dict[str, None] = {}  # a set that keeps the order of arrival
    while len(names) < _AUTHORS:
        names[f"{lots.among(_FIRST_NAME)} {lots.among(_LAST_NAME)}"] = None
    return list(names)


def _title(lots: _Lots) -> str:
    pattern = lots.among(_PATTERNS)
    words = {"quality": lots.among(_QUALITY), "thing": lots.among(_THING)}
    words["place"] = lots.among(_PLACE)
    words["other"] = lots.among([each for each in _THING if each != words["thing"]])
    title = pattern.format(**words)
    return f"An {title[2:]}" if title.startswith(_WANT_AN) else title


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
