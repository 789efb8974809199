"""Visits to the bookstore, timed as the article timed them, and every book compared.

    frame = visit(["requests-py37", "hyper"])
    frame = visit("bare-h2", n=[1, 10, 100], latency_s=[0, 0.02])
    seen = arrivals("bare-h2", n=100, order="asked", slow=one_slow())

Each visit is a process of its own in the client's environment: it fetches the list of ids, then
the books. One that brought less, or anything else, raises VisitFailed with the book and the cause.
Without the Python 3.7 of the old clients, visits of the machines in data/machines/ stand in.

A Host keeps a store open from one visit to the next: what the store used and counted meanwhile is
part of the answer.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import product
from typing import Any

import pandas as pd

from casebook import stacks
from casebook.cases.bookstore import readers, stock, store
from casebook.cases.bookstore.visiting import NUMBERS, VISITED, Host, Visit, figures
from casebook.cases.fetching import modes
from casebook.cases.fetching.server import relay
from casebook.errors import CasebookError, UsageError
from casebook.laboratory import measurements, recorded_rows, rounds
from casebook.laboratory.experiment import runnable
from casebook.laboratory.progress import Progress
from casebook.laboratory.rounds import as_list, in_turns
from casebook.mistakes import check_range, for_readers

#: The columns of `visit`. Times in seconds.
#:
#: label: the client and its manner in words. wall_s, user_s, sys_s: from the first connection to
#: the last book; cpu_percent: their share, as the article printed it. process_*: the same of the
#: whole process, start and imports included, which is what the article's `time` measured.
#: server_*: what the store's process used and counted meanwhile. opened: TCP connections that the
#: client opened; peak_in_flight: the most books that it had asked for and not yet read. recovered:
#: connections that it had to open beyond those planned, in words; empty when there was none.
COLUMNS = [
    "client", "label", "stack", "library", "version", "python", "protocol", "engine",
    "n", "at_once", "connections", "order", "latency_ms", "delay_s", "slow", "repeat",
    "wall_s", "user_s", "sys_s", "cpu_percent",
    "process_wall_s", "process_user_s", "process_sys_s", "process_cpu_percent",
    "server_cpu_s", "server_connections", "server_streams_peak",
    "opened", "peak_in_flight", "books", "recovered", "source", "measured_at", "instead",
    *measurements.COLUMNS,
]  # fmt: skip

#: The columns of `arrivals`.
ARRIVAL_COLUMNS = [*COLUMNS, "book", "position", "arrived", "at_s"]


@for_readers
def one_slow(position: int = 10, wait_s: float = 1.0) -> dict[str, float]:
    """Return what `slow` takes for one book that waits that many seconds.

    position: of the book, in the list, from 1.
    """
    check_range("position", position, 1, stock.SIZE)
    check_range("wait_s", wait_s, 0, store.MAX_DELAY_S, " s")
    return {stock.ids()[position - 1]: wait_s}


#: Of recorded visits with at most this many books it is known when each of them arrived.
FEW = 300

_PAIR = ["requests-2.10-py37", "hyper"]


def visits_to_record() -> list[dict]:
    """Return the visits that need a Python 3.7 on one side: arguments of `visit`.

    With these a machine without it can still build the book. Those that decide something have
    sixteen rounds: the chapters look after eight, and after sixteen if that was not enough.
    """
    return [
        dict(clients=_PAIR, engine="twisted-16.3", repeats=3),
        dict(
            clients=[*_PAIR, "requests-2.31-py37", "hyper:1"],
            n=200,
            engine="twisted-16.3",
            repeats=16,
        ),
        dict(clients=_PAIR, n=200, repeats=16),
        dict(clients="hyper", n=100, slow=one_slow(), repeats=3),
        dict(clients="hyper:10", n=30, slow=dict.fromkeys(stock.ids()[9:50:10], 0.15), repeats=3),
    ]


@rounds.takes_until
def visit(
    clients: str | Iterable[str],
    repeats: int | range | None = None,
    **parameters,
) -> pd.DataFrame:
    """Visit the store with one client or several: one row a visit, columns COLUMNS.

    repeats: visits of each kind, in turns; one in quick mode and three in full. until, looks: what
    is to be decided (casebook/laboratory/rounds.py). What else can be asked for, and errors: see
    `records`.
    """
    return pd.DataFrame(records(clients, repeats, **parameters), columns=COLUMNS)


@for_readers
def cpu_of_both(visits: pd.DataFrame) -> pd.Series:
    """Add up the processor time of visits, in seconds: the client's and the server's."""
    return visits["user_s"] + visits["sys_s"] + visits["server_cpu_s"]


@for_readers
def arrivals(clients: str | Iterable[str], repeats: int | None = 1, **parameters) -> pd.DataFrame:
    """Visit, and say when each book was read: one row a book and visit, columns ARRIVAL_COLUMNS.

    position: the book's place among those asked for, from 1; arrived: its place among those read;
    at_s: seconds since the visit began. Parameters and errors as for `visit`.
    """
    position = {book: i for i, book in enumerate(stock.ids(), 1)}
    rows = [
        record | {"book": book, "position": position[book], "arrived": arrived, "at_s": at_s}
        for record in records(clients, repeats, **parameters)
        for arrived, (book, at_s) in enumerate(record["arrivals"], 1)
    ]
    return pd.DataFrame(rows, columns=ARRIVAL_COLUMNS)


@for_readers
def from_reference(
    clients: str | Iterable[str], repeats: int, n: int, engine: str = "twisted"
) -> pd.DataFrame:
    """Return visits that the reference machine made, columns COLUMNS; never measured here.

    Of those that were recorded (`visits_to_record`). Raises UsageError where there are none of
    this kind.
    """
    planned, rows = plan(clients, repeats, n=n, engine=engine), []
    for visit in planned:
        numbers = range(visit.repeat, visit.repeat + 1)
        of = [stacks.get(visit.reader.stack)]
        for measurement in VISITED.recorded(of, visit.parameters, numbers):
            rows += VISITED.rows(measurement)
    if len(rows) < len(planned):
        raise UsageError(f"the reference run has no {repeats} visits of {clients} for {n} books")
    return pd.DataFrame(rows, columns=COLUMNS)


def record() -> None:
    """Make the visits of the reference run. Takes minutes. Raises as `visit`."""
    for parameters in visits_to_record():
        records(**parameters)


def without_many_arrivals(answer: dict[str, Any]) -> dict[str, Any]:
    """Drop the arrivals of a visit to more than FEW books; any other answer stays as it is."""
    visit = measurements.answer_in(answer)
    books = visit.get("books")
    if "arrivals" not in visit or not isinstance(books, int) or books <= FEW:
        return answer
    shorter = visit | {"arrivals": []}
    return answer | ({"answer": shorter} if "answer" in answer else shorter)


@for_readers
def records(  # noqa: PLR0913 - what a chapter may ask for, each by its keyword
    clients: str | Iterable[str],
    repeats: int | range | None = None,
    engine: str | Iterable[str] = "twisted",
    delay_s: float = 0.0,
    slow: dict[str, float] | None = None,
    patience_s: float = readers.PATIENCE_S,
    target=None,
    **parameters,
) -> list[dict]:
    """Make the visits, and return them as dictionaries: COLUMNS, and "arrivals" as [id, seconds].

    patience_s: without a book, then the visit fails. target: an open store of the caller's, whose
    visits are not stored. All others: see `plan`.

    If a stack cannot run, the rows are those of another machine, with source `reference`.
    Raises UsageError, VisitFailed, ServerFailed, and what environments.ensure raises when nothing
    was recorded.
    """
    check_range("patience_s", patience_s, 1, 3600, " s")
    if target is not None:
        engine, delay_s, slow = target.engine, target.delay_s, target.slow
    planned = plan(clients, repeats, engine=engine, delay_s=delay_s, slow=slow, **parameters)
    progress = Progress(len(planned), "visiting the bookstore", "visit")
    with Host(delay_s, slow, target) as host:
        runnable(stack for visit in planned for stack in host.stacks(visit))
        rows: list[dict] = []
        with progress:
            for visit in planned:
                if measurement := host.answer(visit, patience_s):
                    rows += VISITED.rows(measurement)
                progress.step()
    return rows


@for_readers
def plan(  # noqa: PLR0913 - one keyword for each thing in which visits differ
    clients: str | Iterable[str],
    repeats: int | range | None = None,
    n: int | Iterable[int] = stock.SIZE,
    order: str | Iterable[str] | None = None,
    latency_s: float | Iterable[float] = 0.0,
    engine: str | Iterable[str] = "twisted",
    delay_s: float = 0.0,
    slow: dict[str, float] | None = None,
) -> list[Visit]:
    """Return the visits that are asked for, in turns.

    clients: names of readers.READERS, with a number as readers.manner takes them. n: books asked
    for. order: of readers.ORDERS; latency_s: each way; engine: of store.ENGINES; delay_s: before
    each answer; slow: {id: seconds}, books that wait longer. Of clients, n, order, latency_s and
    engine one or several. Raises UsageError.
    """
    if repeats is None:
        repeats = 1 if modes.current().name == "quick" else 3
    sizes, distances = as_list(n), as_list(latency_s)
    for name, values, unit, minimum, maximum in (
        ("n", sizes, "", 1, stock.SIZE),
        ("the latency", distances, " s", 0, relay.LONGEST_S),
        ("the delay", [delay_s, *(slow or {}).values()], " s", 0, store.MAX_DELAY_S),
        ("repeats", [len(rounds.numbers(repeats))], "", 1, 100),
    ):
        for value in values:
            check_range(name, value, minimum, maximum, unit)
    for chosen in as_list(engine):
        store.stack_of(chosen)
    manners = [readers.manner(*pair) for pair in product(as_list(clients), as_list(order))]
    in_words = "; ".join(f"{book}: {wait_s:g} s" for book, wait_s in (slow or {}).items())
    answers: dict[str, Any] = {"delay_s": delay_s, "slow": in_words}
    kinds = [
        # Always a float: 0 and 0.0 are the same distance, and the same measurement.
        Visit(
            **asdict(manner), n=size, engine=on, latency_ms=round(float(far) * 1000, 3), **answers
        )
        for far, size, on, manner in product(distances, sizes, as_list(engine), manners)
    ]
    return [replace(kind, repeat=repeat) for repeat, kind in in_turns(kinds, repeats)]


def _visits(stored: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        script, [stack, *_], asked, *_ = stored["asked"]
        if script != VISITED.script.stem:
            return []
        row = asked | figures(asked, measurements.answer_in(stored)) | {"stack": stack}
        row |= {name: stored.get(name) for name in ("measured_at", *measurements.COLUMNS)}
        return [row | {"arrivals": json.dumps(row["arrivals"], separators=(",", ":"))}]
    except (AttributeError, LookupError, TypeError, ValueError, CasebookError):
        return []


#: Visits as machine files have them.
VISITS = recorded_rows.Kind("visits", _visits, (*NUMBERS, "n", "repeat", "latency_ms"))
