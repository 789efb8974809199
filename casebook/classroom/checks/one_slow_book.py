"""One slow book: how many others have arrived before it?

Predicted by a model, then measured; and a loop that is not held up.
"""

import json
import secrets
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from casebook.cases.bookstore import readers, stock, store, visiting
from casebook.classroom import prediction, room
from casebook.classroom.grade_report import ANOTHER, Report, Task, machine_note, picked
from casebook.classroom.grader_runs import GraderRuns

LAB = "one-slow-book"
STACK = "h2-today"
NAMES = ("PREDICTION", "BECAUSE")
#: What a shelf needs: its client's, and its store's.
STACKS = (STACK, store.ENGINES["twisted"][0])
#: What a loop is graded by.
_COMPLETE = Task("{n} books: all come, as they are, once each", 2)
_NOBODY_WAITS = Task("{n} books: nobody waits for the slow one", 2)
#: How often five shelves are drawn for a machine file.
DRAWN = 4
#: How long a slow book takes, in seconds, and how often a shelf is measured until the machine did
#: not come between.
SLOW_S, TRIES = 0.8, 3
#: A loop in which nothing moves for so long, in seconds, is given the book that was held back.
STANDS_S = 2.0


@dataclass(frozen=True)
class Shelf:
    """Books, the places of the slow ones, and how they are fetched.

    kind: of shelf; what: in words.
    """

    kind: str
    what: str
    client: str
    n: int
    slow: tuple[int, ...]
    lanes: int
    in_order: bool = False

    def model(self) -> int:
        """Return how many books arrive before the first slow one, if nothing else holds them up."""
        if self.in_order:
            return self.slow[0] - 1
        if len(self.slow) < self.lanes:
            return self.n - len(self.slow)
        return self.slow[self.lanes - 1] - self.lanes


def shelves() -> list[Shelf]:
    """Draw five shelves at random."""
    draw = secrets.SystemRandom()
    n, lanes = draw.randint(25, 45), draw.randint(3, 6)
    place = draw.choice([*range(5, 10), *range(11, 21)])
    all_slow = tuple(sorted(draw.sample(range(2, 22), lanes)))
    few_slow = tuple(sorted(draw.sample(range(2, 22), lanes - 1)))
    return [
        Shelf(
            "in order", "HTTP/2, in the order asked", "two-loops", n, (place,), 100, in_order=True
        ),
        Shelf("one lane", "one connection of HTTP/1.1", "pipes:1", n, (place,), 1),
        Shelf("one slow", f"{lanes} connections, one slow", f"pipes:{lanes}", n, (place,), lanes),
        Shelf("few slow", f"{lanes} connections, {len(few_slow)} slow",
              f"pipes:{lanes}", n, few_slow, lanes),
        Shelf("all slow", f"{lanes} connections, {lanes} slow",
              f"pipes:{lanes}", n, all_slow, lanes),
    ]  # fmt: skip


def count_before(shelf: Shelf) -> int:
    """Measure how many books a real client has before the first slow one.

    Tried again if the machine held up what the model lets through; the last try counts.
    """
    ids = stock.ids()
    slow = {ids[place - 1]: SLOW_S for place in shelf.slow}
    manner = readers.manner(shelf.client, "asked" if shelf.in_order else None)
    count = -1
    for _ in range(TRIES):
        with store.open_store(slow=slow) as open_:
            answer = readers.read(manner, open_, ids[: shelf.n])
        visiting.check(manner, answer, shelf.n)
        order = [book for book, _ in answer["arrivals"]]
        count = min(order.index(book) for book in slow)
        if count == shelf.model():
            break
    return count


@dataclass(frozen=True)
class Held:
    """How many books a client had before the first slow one (count).

    machine: where it was so; empty: here, now.
    """

    shelf: Shelf
    count: int
    machine: str


def look_at(grader_runs: GraderRuns, shelf: Shelf) -> Held:
    """Return what the grader sees of a shelf."""
    result = grader_runs.answer(
        STACKS, asdict(shelf), lambda: {"before": count_before(shelf)},
        lambda answer: {"count": int(answer["before"])},
    )  # fmt: skip
    return Held(shelf, **result)


def _pick(grader_runs: GraderRuns, shelf: Shelf) -> Shelf:
    """Return a shelf that was drawn at random.

    If it cannot be measured here, one of its kind that was measured elsewhere takes its place.
    """

    def as_shelf(parameters: dict[str, Any]) -> Shelf:
        candidate = Shelf(**parameters | {"slow": tuple(map(int, parameters["slow"]))})
        candidate.model()  # raises if this is no shelf
        return candidate

    return grader_runs.draw(STACKS, lambda: shelf, as_shelf, kind=shelf.kind)


def grade(file: Path, report: Report, grader_runs: GraderRuns) -> None:
    """Add what was found of a submission to the report."""
    stack_here = grader_runs.room(*STACKS)
    entered = prediction.entered(
        STACK, stack_here, file, report, 15, NAMES, setting=room.NOT_COUNTABLE
    )
    if entered is None:
        return
    names, guess = entered
    rows = _rows(grader_runs)
    counts = ", ".join(str(row.count) for row in (rows["A"], rows["D"], rows["C"]))
    prediction.grade(report, guess, f"measured: {counts}", rows["A"].machine)
    _grade_model(grader_runs, stack_here, file, report)
    if grader_runs.can_run(*STACKS):
        _grade_loop(file, report)
    else:
        _leave_loop(report)
    _grade_explanation(names["BECAUSE"], rows, report)


def record(grader_runs: GraderRuns) -> None:
    """Make all runs that any submission may need, for some shelves."""
    _rows(grader_runs)
    for shelf in [shelf for _ in range(DRAWN) for shelf in shelves()]:
        look_at(grader_runs, shelf)


def _rows(grader_runs: GraderRuns) -> dict[str, Held]:
    shelves_ = {
        "A": Shelf(
            "row", "HTTP/2, in the order asked", "two-loops", 100, (10,), 100, in_order=True
        ),
        "B": Shelf("row", "HTTP/2, as they come", "two-loops", 100, (10,), 100),
        "C": Shelf("row", "one connection of HTTP/1.1", "pipes:1", 100, (10,), 1),
        "D": Shelf("row", "six connections of HTTP/1.1", "pipes:6", 100, (10,), 6),
    }
    return {letter: look_at(grader_runs, shelf) for letter, shelf in shelves_.items()}


def _grade_model(grader_runs: GraderRuns, stack_here: str, file: Path, report: Report) -> None:
    shelves_ = [_pick(grader_runs, shelf) for shelf in shelves()]
    jobs = [
        {"function": "before", "how": "call",
         "args": [shelf.n, list(shelf.slow), shelf.lanes, shelf.in_order]}
        for shelf in shelves_
    ]  # fmt: skip
    outcome = room.run(stack_here, file, jobs, room.NOT_COUNTABLE)
    report.stopped = report.stopped or outcome.stopped
    for shelf, answer in zip(shelves_, outcome.answers, strict=True):
        row = look_at(grader_runs, shelf)
        count = row.count
        value = answer.get("value")
        slow = ", ".join(map(str, shelf.slow))
        report.add(
            f"the model: {shelf.what}", type(value) is int and value == count, 1,
            answer.get("error")
            or f"{shelf.n} books, slow at {slow}: you say {value!r}, measured {count}",
            "Draw the lanes as lines, put the books on them in turn, and look who still moves when "
            "the first slow one is waited for.", row.machine,
        )  # fmt: skip


class Keeper:
    """Keeps a book back until all others were taken, or until nothing moves any more.

    A loop that waits for it cannot have taken them before.

    open_: the store, which holds the book. books: what it has, by id, with words that nobody knows
    who did not receive them. ahead: how many were taken, as the store has them, before the book was
    let go.
    """

    def __init__(self, open_: store.Store, books: dict[str, dict[str, Any]]) -> None:
        self._store, self._books = open_, books
        self._moved, self._at, self._keeps = (0, 0), time.monotonic(), True
        self.ahead = 0

    def right(self, outcome: room.Outcome) -> list[str]:
        """Return the books that were taken and are as the store has them."""
        return [book for book, body in outcome.took if _is_same(self._books.get(book), body)]

    def __call__(self, outcome: room.Outcome) -> None:
        """Look at what was told so far."""
        if not self._keeps:
            return
        self.ahead = len(set(self.right(outcome)))
        progress = self._store.counters()["requests"], self.ahead
        if progress != self._moved:
            self._moved, self._at = progress, time.monotonic()
        is_stuck = progress[0] > 0 and time.monotonic() - self._at > STANDS_S
        if is_stuck or self.ahead == len(self._books) - 1:
            self._keeps = False
            self._store.let_go()


def _grade_loop(file: Path, report: Report) -> None:
    draw = secrets.SystemRandom()
    for n in (10, draw.randint(25, 60)):
        ids, place = stock.ids()[:n], draw.randint(2, 8)
        books = {book: stock.books()[book] | {"word": secrets.token_hex(8)} for book in ids}
        with _store(books, slow_book=ids[place - 1]) as open_:
            job = {
                "function": "loop", "how": "shelf", "url": open_.url, "ca_file": str(open_.ca_file),
                "books": ids, "scripts": str(readers.SCRIPTS),
            }  # fmt: skip
            keeper = Keeper(open_, books)
            outcome = room.run(STACK, file, [job], room.NOT_COUNTABLE, observer=keeper)
            requests = open_.counters()["requests"]
        report.stopped = report.stopped or outcome.stopped
        (answer,) = outcome.answers
        right = keeper.right(outcome)
        complete = sorted(right) == sorted(ids) and requests == n and "error" not in answer
        report.add(
            _COMPLETE.of(n).title, complete, _COMPLETE.points,
            answer.get("error") or f"{len(set(right))} of {n} came right, of {requests} requests",
            "Ask the store for every book once, and take each when it has come, the slow one too.",
        )  # fmt: skip
        report.add(
            _NOBODY_WAITS.of(n).title, complete and keeper.ahead == n - 1, _NOBODY_WAITS.points,
            f"slow at {place}: {keeper.ahead} of {n - 1} were taken before it",
            "Your loop waits for one answer. Which of connection's functions waits for any?",
        )  # fmt: skip


def _store(books: dict[str, dict[str, Any]], slow_book: str) -> store.Store:
    """Open a store of these books, which has read them already when it returns."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(books, file)
        file.flush()
        return store.open_store(slow={slow_book: None}, books=Path(file.name))


def _is_same(book: dict[str, Any] | None, body: str) -> bool:
    try:
        return book is not None and json.loads(body) == book
    except ValueError:
        return False


def _leave_loop(report: Report) -> None:
    for n in (10, ANOTHER):
        for task in (_COMPLETE.of(n), _NOBODY_WAITS.of(n)):
            report.leave(task.title, task.points, STACK)


def _grade_explanation(choice: Any, rows: dict[str, Held], report: Report) -> None:
    for letter, row in rows.items():
        report.notes.append(
            f"Row {letter}: {row.shelf.what}: {row.shelf.n} books, slow at 10, {row.count} "
            f"before it{machine_note(row.machine)}"
        )
    letters = sorted(picked(choice))
    right = False
    if len(letters) == 2 and {*letters} <= {*rows}:
        upper, lower = (rows[letter] for letter in letters)
        first, second = upper.shelf, lower.shelf
        # The same client and lanes, another order of reading, and another number.
        same_client = (first.client, first.lanes) == (second.client, second.lanes)
        right = same_client and first.in_order != second.in_order and upper.count != lower.count
    report.add(
        "the two rows which show that the loop holds up, not HTTP/2", right, 1,
        f"you said {letters}", "In which two rows is everything the same but the loop?",
        rows["A"].machine,
    )  # fmt: skip
