"""Visits to the bookstore, timed as the article timed them, and every book compared.

    frame = visit(["requests-py37", "hyper"])
    frame = visit("bare-h2", n=[1, 10, 100], latency_s=[0, 0.02])
    seen = arrivals("bare-h2", n=100, order="asked", slow=one_slow())

Each visit is a process of its own in the client's environment
(casebook/cases/bookstore/readers.py): it fetches the list of ids, then the books. A visit that
brought less, or anything else, raises VisitFailed with the book and the cause.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from casebook import stacks
from casebook.cases.bookstore import readers, recorded, stock, store
from casebook.cases.bookstore.hosting import Host
from casebook.errors import MissingInterpreter, UsageError
from casebook.runs import decisions, measurements, modes
from casebook.runs.decisions import Question
from casebook.runs.measure import in_turns, rounds, several
from casebook.runs.progress import Progress
from casebook.server import relay
from casebook.stacks import environments

#: The columns of `visit`. Times in seconds.
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
ARRIVAL_COLUMNS = [
    "client", "label", "engine", "protocol", "n", "at_once", "connections", "order", "latency_ms",
    "delay_s", "slow", "repeat", "book", "position", "arrived", "at_s", "source", "measured_at",
    "instead", *measurements.COLUMNS,
]  # fmt: skip


def one_slow(position: int = 10, wait_s: float = 1.0) -> dict[str, float]:
    """What `slow` takes: the book at this position of the list (from 1) waits so many seconds."""
    return {stock.ids()[position - 1]: wait_s}


def one_slow_in_each(chunk: int, books: int, wait_s: float) -> dict[str, float]:
    """What `slow` takes: of so many books, the last of each chunk waits so many seconds."""
    return {book: wait_s for book in stock.ids()[chunk - 1 : books : chunk]}


_PAIR = ["requests-2.10-py37", "hyper"]

#: The visits that need a Python 3.7 on one side: arguments of `visit`. With these a machine
#: without it can still build the book. Of those that decide something there are sixteen rounds:
#: the chapters look after eight, and after sixteen where that was not enough.
RECORDED = [
    dict(clients=_PAIR, engine="twisted-16.3", repeats=3),
    dict(
        clients=[*_PAIR, "requests-2.31-py37", "hyper:1"], n=200, engine="twisted-16.3", repeats=16
    ),
    dict(clients=_PAIR, n=200, repeats=16),
    dict(clients="hyper", n=100, slow=one_slow(), repeats=3),
    dict(clients="hyper:10", n=30, slow=one_slow_in_each(10, 50, 0.15), repeats=3),
]


def visit(
    clients: str | Iterable[str],
    repeats: int | range | None = None,
    until: Question | Iterable[Question] = (),
    looks: Iterable[int] = decisions.LOOKS,
    **asked,
) -> pd.DataFrame:
    """Visit the store with one client or several: one row a visit, columns COLUMNS.

    clients: names of readers.READERS; "aiohttp:100" is aiohttp with 100 connections, and
    "httpx-h2:100" httpx with 100 requests at once on its one. repeats: visits of each kind, in
    turns; one in quick mode and three in full. until: what is to be decided
    (casebook/runs/decisions.py): there are then as many visits of each kind as that takes, at most
    the last of `looks`. Further keywords, each with its usual value: n=None (books
    asked for, one number or several; None for the stock, after which it begins again), at_once
    (requests open on the one HTTP/2 connection), connections (over HTTP/1.1), order (of
    readers.ORDERS, one or several), latency_s=0 (each way, one or several), engine="twisted" (of
    store.ENGINES, one or several), delay_s=0 (before each answer), slow={id: seconds}, patience_s
    (without a book, then it fails), target (an open store of the caller's, whose visits are not
    stored).

    label: the client and its manner in words. wall_s, user_s, sys_s: from the first connection to
    the last book; cpu_percent: their share, as the article printed it. process_*: the same of the
    whole process, start and imports included, which is what the article's `time` measured.
    server_*: what the store's process used and counted meanwhile. opened: TCP connections that
    the client opened; peak_in_flight: the most books that it had asked for and not yet read.
    recovered: connections that it had to open beyond those planned, in words; empty when there
    was none.

    Where an interpreter is missing the rows are those of the reference machine, with source
    `reference`. Raises UsageError, VisitFailed, ServerFailed, and MissingInterpreter when nothing
    was recorded.
    """
    questions = [until] if isinstance(until, Question) else list(until)
    if questions:
        return decisions.until_decided(lambda some: visit(clients, some, **asked), questions, looks)
    return pd.DataFrame(records(clients, repeats, **asked), columns=COLUMNS)


def cpu_of_both(visits: pd.DataFrame) -> pd.Series:
    """Processor time of visits, in seconds: the client's and the server's together."""
    return visits["user_s"] + visits["sys_s"] + visits["server_cpu_s"]


def arrivals(clients: str | Iterable[str], repeats: int | None = 1, **asked) -> pd.DataFrame:
    """When each book was read: one row a book and visit, columns ARRIVAL_COLUMNS.

    position: the book's place among those asked for, from 1; arrived: its place among those read;
    at_s: seconds since the visit began. Parameters and errors as for `visit`.
    """
    rows = []
    for record in records(clients, repeats, **asked):
        n = record["n"]
        position = {book: i for i, book in enumerate(readers.books(n), 1)}
        for arrived, (book, at_s) in enumerate(record["arrivals"], 1):
            place = {"book": book, "position": position[book], "arrived": arrived, "at_s": at_s}
            rows.append(record | place)
    return pd.DataFrame(rows, columns=ARRIVAL_COLUMNS)


def from_reference(client: str, repeats: int, n: int, engine: str = "twisted") -> pd.DataFrame:
    """Visits of one client that the reference machine made, columns COLUMNS; never measured here.

    Of those that were recorded (RECORDED). Raises UsageError where there are none of this kind.
    """
    name, number = readers.numbered(client)
    asked = _asked(name, readers.manner(name, number), engine, n, 0.0, 0.0, {})
    found = [recorded.visit(asked | {"repeat": repeat}) for repeat in rounds(repeats)]
    if None in found:
        raise UsageError(f"the reference run has no {repeats} visits of {client} for {n} books")
    return pd.DataFrame(found, columns=COLUMNS)


def record(into: Path) -> None:
    """Make the reference visits, and keep them in a folder: into/visits.csv.

    Takes some minutes. Raises as `visit`.
    """
    recorded.save([each for asked in RECORDED for each in records(**asked)], into)


def records(
    clients,
    repeats=None,
    n=None,
    at_once=None,
    connections=None,
    order=None,
    latency_s=0.0,
    engine="twisted",
    delay_s=0.0,
    slow=None,
    patience_s=readers.PATIENCE_S,
    target=None,
) -> list[dict]:
    """The visits as dictionaries: the columns, and "arrivals" as [id, seconds]."""
    engines = several(engine)
    if target is not None:
        ways = getattr(target, "ways", None)
        engines, delay_s, slow = (
            [target.engine],
            getattr(ways, "delay_s", 0.0),
            getattr(ways, "slow", {}),
        )
    elif unknown := [each for each in engines if each not in store.ENGINES]:
        raise UsageError(f"unknown engine {unknown[0]!r}: choose {', '.join(store.ENGINES)}")
    visitors = [
        (name, readers.manner(name, number, at_once, connections, each))
        for name, number in map(readers.numbered, several(clients))
        for each in several(order)
    ]
    if repeats is None:
        repeats = 1 if modes.current().name == "quick" else 3
    size = len(stock.ids())
    sizes = [size if each is None else each for each in several(n)]
    latencies = several(latency_s)
    _check(sizes, latencies, len(rounds(repeats)))
    ways = [
        _asked(name, manner, serving, each, latency, delay_s, dict(slow or {}))
        for latency in latencies
        for each in sizes
        for serving in engines
        for name, manner in visitors
    ]
    asked = [way | {"repeat": repeat} for repeat, way in in_turns(ways, repeats)]
    missing = {
        (name, serving): error
        for serving in engines
        for name, error in _missing([name for name, _ in visitors], serving, target).items()
    }
    found = []
    with contextlib.ExitStack() as open_things:
        hosts = {each: Host(each, delay_s, slow or {}, target, open_things) for each in engines}
        here = [each for each in asked if (each["client"], each["engine"]) not in missing]
        progress = open_things.enter_context(Progress(len(here), "visiting the bookstore", "visit"))
        for each in asked:
            if each in here:
                found.append(hosts[each["engine"]].visit(each, patience_s))
                progress.step()
            elif record := recorded.visit(each):
                found.append(record)
    for (name, serving), error in missing.items():
        came = any((each["client"], each["engine"]) == (name, serving) for each in found)
        if not came and 1 in rounds(repeats):
            raise error
    return found


def _check(sizes: list[int], latencies: list[float], repeats: int) -> None:
    for each in sizes:
        if not 1 <= each <= readers.MOST_BOOKS:
            raise UsageError(f"n is {each}; choose 1 to {readers.MOST_BOOKS}")
    for latency_s in latencies:
        if not 0 <= latency_s <= relay.LONGEST_S:
            raise UsageError(f"the latency is {latency_s} s; choose 0 to {relay.LONGEST_S:g}")
    if not 1 <= repeats <= 100:
        raise UsageError(f"repeats is {repeats}; choose 1 to 100")


def _asked(client, manner, engine, n, latency_s, delay_s, slow) -> dict:
    """The columns that say what a visit is."""
    return {
        "client": client,
        "engine": engine,
        "n": n,
        **asdict(manner),
        # Always a float: 0 and 0.0 are the same distance, and the same measurement.
        "latency_ms": round(float(latency_s) * 1000, 3),
        "delay_s": delay_s,
        "slow": "; ".join(f"{book}: {wait_s:g} s" for book, wait_s in slow.items()),
    }


def _missing(names: list[str], engine: str, target) -> dict[str, MissingInterpreter]:
    """Which clients cannot run here, or have no store to visit. Raises what is required."""
    missing = {}
    for name in names:
        needed = [readers.get(name).stack]
        if target is None:
            needed.append(store.ENGINES[engine][0])
        for stack in map(stacks.get, needed):
            try:
                environments.ensure(stack)
            except MissingInterpreter as error:
                if stack.python in environments.required():
                    raise
                missing[name] = error
    return missing
