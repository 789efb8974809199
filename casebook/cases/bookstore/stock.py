"""The stock: 3,000 science-fiction books that nobody wrote, the same ones on every machine.

data/books.json has them, one JSON object with a line for each book. Titles, authors and figures
were drawn at random from lists of words, once.
"""

import json
from functools import cache

from casebook import places

#: Where the books are kept.
FILE = places.DATA / "books.json"

#: How many there are.
SIZE = 3_000


def books() -> dict[str, dict]:
    """Return the books by id; a new copy each time.

    Each has title (there are no two alike), author, rating (1 to 5, two digits), pages and year.
    Ids are five-digit numbers in rising order, with gaps between them.
    """
    return json.loads(FILE.read_text(encoding="utf-8"))


@cache
def ids() -> tuple[str, ...]:
    """Return the books' ids, in their order."""
    return tuple(books())
