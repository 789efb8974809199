"""What a client of the bookstore brought, compared with the stock."""

import json
from collections import Counter

from casebook.cases.bookstore import readers, stock
from casebook.errors import VisitFailed


def check(client: str, answer: dict, n: int) -> None:
    """Refuse a visit that did not bring the whole list and n books as the stock has them.

    Raises VisitFailed with the book and the cause.
    """
    known, asked = stock.books(), readers.books(n)

    def refuse(what: str) -> None:
        raise VisitFailed(f"{client}: {what}. Nothing was recorded.")

    if answer["failure"]:
        refuse(in_words(answer["failure"]))
    if answer["protocol"] != readers.get(client).protocol:
        refuse(f"it spoke {answer['protocol']}, not {readers.get(client).protocol}")
    listed = answer["index"]
    twice = [book for book, times in Counter(listed).items() if times > 1]
    for odd, what in (
        (known.keys() - set(listed), "lacks"),
        (set(listed) - known.keys(), "has what the stock has not:"),
        (twice, "repeats"),
    ):
        if odd:
            refuse(f"the list of books {what} {len(odd)} of {len(known):,}, such as {min(odd)}")
    for book in asked:
        if book not in answer["bodies"]:
            refuse(f"book {book} is missing")
        if json.loads(answer["bodies"][book]) != known[book.partition("&")[0]]:
            refuse(f"book {book}: the body is not the one in the stock")
    if len(answer["bodies"]) != n:
        refuse("it brought books that nobody asked for")


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
