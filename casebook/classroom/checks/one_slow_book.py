"""One slow book: how many others are in hand before it? Predicted by a law, then measured; and a
loop that is not held up."""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casebook.cases.bookstore import readers, stock, store, visiting
from casebook.classroom import prediction, room
from casebook.classroom.report import Report, picked

LAB = "one-slow-book"
STACK = "h2-today"
NAMES = ("PREDICTION", "BECAUSE")
#: How long a slow book takes, in seconds, and how often a shelf is measured until the machine did
#: not come between.
SLOW_S, TRIES = 0.8, 3


@dataclass(frozen=True)
class Shelf:
    """Books, the places of the slow ones, and how they are fetched. what: in words."""

    what: str
    client: str
    n: int
    slow: tuple[int, ...]
    lanes: int
    in_order: bool = False

    def law(self) -> int:
        """How many books are in hand before the first slow one, if nothing else holds them up."""
        if self.in_order:
            return self.slow[0] - 1
        if len(self.slow) < self.lanes:
            return self.n - len(self.slow)
        return self.slow[self.lanes - 1] - self.lanes


def shelves() -> list[Shelf]:
    """Five shelves, drawn by lot."""
    draw = secrets.SystemRandom()
    n, lanes = draw.randint(25, 45), draw.randint(3, 6)
    place = draw.choice([*range(5, 10), *range(11, 21)])
    many = tuple(sorted(draw.sample(range(2, 22), lanes)))
    few = tuple(sorted(draw.sample(range(2, 22), lanes - 1)))
    return [
        Shelf("HTTP/2, in the order asked", "two-loops", n, (place,), 100, in_order=True),
        Shelf("one connection of HTTP/1.1", "pipes:1", n, (place,), 1),
        Shelf(f"{lanes} connections, one slow", f"pipes:{lanes}", n, (place,), lanes),
        Shelf(f"{lanes} connections, {len(few)} slow", f"pipes:{lanes}", n, few, lanes),
        Shelf(f"{lanes} connections, {lanes} slow", f"pipes:{lanes}", n, many, lanes),
    ]


def measured(shelf: Shelf) -> int:
    """How many books a real client had before the first slow one. Measured again where the machine
    held up what the law lets through; and then it is what it is."""
    ids = stock.ids()
    slow = {ids[place - 1]: SLOW_S for place in shelf.slow}
    how = readers.manner(shelf.client, "asked" if shelf.in_order else None)
    found = -1
    for _ in range(TRIES):
        with store.open_store(slow=slow) as open_:
            answer = readers.read(how, open_, ids[: shelf.n])
        visiting.check(how, answer, shelf.n)
        order = [book for book, _ in answer["arrivals"]]
        found = min(order.index(book) for book in slow)
        if found == shelf.law():
            break
    return found


def grade(file: Path, report: Report) -> None:
    """Add to the report what was found of a submission."""
    first = room.run(STACK, file, [], names=NAMES, countable=False)
    if first.stopped or first.error:
        report.stopped = first.stopped
        report.give("the file runs", False, 15, first.error or first.stopped, "Mend that first.")
        return
    guess = prediction.kept(file, first.names["PREDICTION"])
    if guess is None:
        report.give(
            "a prediction is entered", False, 15, "nothing was measured",
            "Enter PREDICTION before anything is measured: you can only do it once.",
        )  # fmt: skip
        return
    rows = _rows()
    said = ", ".join(str(count) for _, count in (rows["A"], rows["D"], rows["C"]))
    report.give(
        "a prediction is entered", True, 1,
        f"you said {guess['prediction']!r} on {guess['at']}; measured: {said}. It costs nothing to "
        "have been wrong.", "",
    )  # fmt: skip
    _law(file, report)
    _loop(file, report)
    _explains(first.names["BECAUSE"], rows, report)


def _rows() -> dict[str, tuple[Shelf, int]]:
    shelves_ = {
        "A": Shelf("HTTP/2, in the order asked", "two-loops", 100, (10,), 100, in_order=True),
        "B": Shelf("HTTP/2, as they come", "two-loops", 100, (10,), 100),
        "C": Shelf("one connection of HTTP/1.1", "pipes:1", 100, (10,), 1),
        "D": Shelf("six connections of HTTP/1.1", "pipes:6", 100, (10,), 6),
    }
    return {letter: (shelf, measured(shelf)) for letter, shelf in shelves_.items()}


def _law(file: Path, report: Report) -> None:
    drawn = shelves()
    jobs = [
        {"function": "before", "how": "call",
         "args": [each.n, list(each.slow), each.lanes, each.in_order]}
        for each in drawn
    ]  # fmt: skip
    outcome = room.run(STACK, file, jobs, countable=False)
    report.stopped = report.stopped or outcome.stopped
    for shelf, answer in zip(drawn, outcome.answers, strict=True):
        count = measured(shelf)
        value = answer.get("value")
        slow = ", ".join(map(str, shelf.slow))
        report.give(
            f"the law: {shelf.what}", type(value) is int and value == count, 1, answer.get("error")
            or f"{shelf.n} books, slow at {slow}: you say {value!r}, measured {count}",
            "Draw the lanes as lines, put the books on them in turn, and look who still moves when "
            "the first slow one is waited for.",
        )  # fmt: skip


def _loop(file: Path, report: Report) -> None:
    draw, ids = secrets.SystemRandom(), stock.ids()
    for n in (10, draw.randint(25, 60)):
        place = draw.randint(2, 8)
        slow = ids[place - 1]
        with store.open_store(slow={slow: SLOW_S}) as open_:
            job = {
                "function": "loop", "how": "shelf", "url": open_.url, "ca_file": str(open_.ca_file),
                "books": ids[:n], "scripts": str(readers.SCRIPTS),
            }  # fmt: skip
            outcome = room.run(STACK, file, [job], countable=False)
            asked = open_.counters()["requests"]
        report.stopped = report.stopped or outcome.stopped
        known, (answer,) = stock.books(), outcome.answers
        # As each was taken, and was as the stock has it: told at once, so that none is put back.
        order = [book for book, body in outcome.took if _is(known.get(book), body)]
        whole = sorted(order) == sorted(ids[:n]) and asked == n and "error" not in answer
        report.give(
            f"{n} books: all come, as they are, once each", whole, 2,
            answer.get("error") or f"{len(set(order))} of {n} came right, of {asked} requests",
            "Ask the store for every book once, and take each when it has come, the slow one too.",
        )  # fmt: skip
        ahead = order.index(slow) if slow in order else len(order)
        # Whoever gathers all answers first, and hands on the slow one last, was held up as well.
        ahead = min(ahead, outcome.came.get(slow, ahead))
        report.give(
            f"{n} books, the slow one at {place}: nobody waits for it", whole and ahead == n - 1, 2,
            f"{ahead} of {n - 1} were taken before it",
            "Your loop waits for one answer. Which of connection's functions waits for any?",
        )  # fmt: skip


def _is(book: dict | None, body: str) -> bool:
    try:
        return book is not None and json.loads(body) == book
    except ValueError:
        return False


def _explains(said: Any, rows: dict[str, tuple[Shelf, int]], report: Report) -> None:
    for letter, (shelf, count) in rows.items():
        report.notes.append(
            f"Row {letter}: {shelf.what}: {shelf.n} books, slow at 10, {count} before it"
        )
    letters = sorted(picked(said))
    right = False
    if len(letters) == 2 and {*letters} <= {*rows}:
        (one, its), (two, others) = (rows[letter] for letter in letters)
        # The same client and lanes, another order of reading, and another number.
        alike = (one.client, one.lanes) == (two.client, two.lanes)
        right = alike and one.in_order != two.in_order and its != others
    report.give(
        "the two rows which show that the loop holds up, not HTTP/2", right, 1,
        f"you said {letters}", "In which two rows is everything the same but the loop?",
    )  # fmt: skip
