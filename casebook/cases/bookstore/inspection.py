"""What a client of the bookstore brought, compared with the stock."""

import json
from collections import Counter

from casebook.cases.bookstore import readers, stock
from casebook.errors import VisitFailed


def check(client: str, answer: dict, n: int) -> None:
    """Refuse a visit that did not bring the whole list and n books as the stock has them.

    Raises VisitFailed with the book and the cause.
    """
    known, bodies, wanted = stock.books(), answer["bodies"], readers.get(client).protocol
    if answer["failure"]:
        _refuse(client, in_words(answer["failure"]))
    if answer["protocol"] != wanted:
        _refuse(client, f"it spoke {answer['protocol']}, not {wanted}")
    listed = answer["index"]
    for odd, what in (
        (known.keys() - set(listed), "lacks"),
        (set(listed) - known.keys(), "has what the stock has not:"),
        ([book for book, times in Counter(listed).items() if times > 1], "repeats"),
    ):
        if odd:
            said = f"{what} {len(odd)} of {len(known):,}, such as {min(odd)}"
            _refuse(client, f"the list of books {said}")
    for book in stock.ids()[:n]:
        if book not in bodies:
            _refuse(client, f"book {book} is missing")
        if json.loads(bodies[book]) != known[book]:
            _refuse(client, f"book {book}: the body is not the one in the stock")
    if len(bodies) != n:
        _refuse(client, "it brought books that nobody asked for")


def _refuse(client: str, what: str) -> None:
    raise VisitFailed(f"{client}: {what}. Nothing was recorded.")


def in_words(failure: dict) -> str:
    """A failure, as clients/visit.py says it: the book, the cause, and who else waited."""
    where = f"book {failure['book']}" if failure["book"] else "the list of books"
    text = f"{where}: {failure['type']}: {failure['message']}"
    if failure["waiting"] and not failure["certain"]:
        text += f" ({len(failure['waiting'])} more were waited for)"
    if "alone" in failure:
        alone = failure["alone"]
        text += "; asked for one at a time, "
        text += f"it is {in_words(alone)}" if alone else "all of them came"
    return text
