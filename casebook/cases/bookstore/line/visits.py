"""Visits to the bookstore over a line: TCP and TLS over the whole way, in namespaces of our own.

    frame = visit(["pipes:6", "bare-h2"], n=13, latency_s=[0.004, 0.035])
    frame = visit("bare-h2", n=100, latency_s=0.004, lose=loss(31_000))

The store is Twisted's of today, client and server speak TLS 1.3, and TCP's congestion control is
reno (ends.CONGESTION), which every kernel has. Each book is compared.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pandas as pd

from casebook.build import in_build, not_a_measurement
from casebook.cases.bookstore import opening, readers, stock
from casebook.cases.bookstore.line import ends, feasibility, lines, wire
from casebook.cases.bookstore.line.feasibility import STACK
from casebook.cases.bookstore.line.lines import Conditions, Kind
from casebook.errors import NotInFile, RunFailed
from casebook.laboratory import reservation, rounds
from casebook.laboratory.decisions import HOLDS, ratio
from casebook.laboratory.experiment import Experiment, runnable
from casebook.mistakes import check_range
from casebook.stacks import digests, environments

#: Where a client has a library around the protocol, both ends run in this one, which has the
#: libraries beside what STACK has.
WITH_LIBRARIES = "line-libraries-today"

#: Who can visit over a line: without a library around the protocol, and with one.
BARE = ("pipes", "bare-h2")
LIBRARIES = ("requests", "httpx-h1", "httpx-h2", "aiohttp", "niquests")
#: niquests brings a urllib3 of its own, which takes the place of requests': it has another one.
WITH_NIQUESTS = "quic-today"

_HERE = Path(__file__).parent

#: Of what the script says where a congestion control cannot be chosen, or the line is too slow.
_NO_CONTROL, _TOO_MUCH = "does not let a namespace choose", "the line could not keep up"

#: The columns that say what was chosen of the line, beside its latency and what is lost.
_CHOSEN = ("window_bytes", "delays_small", "congestion", "mbit")


class Row(TypedDict):
    """The columns of `visit`; behind them come lines.PROVENANCE."""

    stack: str
    client: str
    label: str
    protocol: str
    connections: int
    at_once: int
    n: int
    body_bytes: int
    #: Each way.
    latency_ms: float
    window_bytes: int
    delays_small: bool
    #: What is lost, as JSON; "" for nothing.
    lose: str
    #: The seed of the build, if something was drawn; missing in older answers.
    lots: int | None
    congestion: str
    mbit: float
    #: How the packets were had (ends.DEVICES).
    way: str
    repeat: int
    #: From the first connection to the last book.
    wall_s: float
    #: The same in round trips of the line.
    round_trips: float
    #: TCP connections.
    opened: int
    #: What the server sent: packets, bytes of IP, and packets with data that came a second time.
    packets: int
    bytes: int
    #: Packets that were lost, in both directions.
    dropped: int
    again: int
    #: From when the first lost packet left the server to when it left once more. Missing, like
    #: the next two, if nothing was lost or nobody missed it.
    repair_ms: float
    #: To when the next packet with new data left on that connection: before it nobody can miss the
    #: lost one. Missing if there was none before the repair.
    next_ms: float
    #: How many of these the server sent meanwhile; the client may read none of them before.
    behind: int
    #: How much later than promised packets were: half of them, and the last one.
    late_ms: float
    most_late_ms: float
    #: Packets a second in the busiest window (wire.WINDOW_S), in both directions; missing in older
    #: answers.
    busiest: float
    #: How often the visit was made until the line kept up.
    tries: int


class Packet(TypedDict):
    """The further columns of `packets`."""

    #: Since the first packet, as it reached the middle of the line from its sender.
    t_s: float
    #: wire.THERE or wire.BACK.
    direction: str
    connection: int
    #: The number of its first byte of data.
    seq: int
    bytes: int
    #: Whether all of its data had been sent before.
    is_again: bool
    dropped: bool


COLUMNS = [*Row.__annotations__, *lines.PROVENANCE]
PACKET_COLUMNS = [*Packet.__annotations__]


#: The most bytes that each book can be asked to have.
MOST_BYTES = 10_000_000


class NoControl(RunFailed):
    """There is no such congestion control to be had here."""


class TooMuch(RunFailed):
    """The line could not keep up with a visit, so that its times say nothing of the visit."""


def loss(byte: int, count: int = 1, connection: int = 0) -> dict[str, int]:
    """Return what `lose` takes for one packet that the server sends, once, or for a burst.

    Parameters:
        byte: of the connection's data; the packet that has it is lost.
        count: of the packets that are lost, from that one on.
        connection: its number, in the order of opening.
    """
    return {"connection": connection, "byte": byte, "count": count}


@rounds.takes_until
def visit(
    clients: str | Iterable[str],
    n: int | Iterable[int] = 13,
    body_bytes: int = 0,
    repeats: int | range | None = None,
    **conditions: Unpack[Conditions],
) -> pd.DataFrame:
    """Visit the store over a line, once in each of the ways, in turns: columns COLUMNS.

    Parameters:
        clients: as visits.visit takes them, of BARE and LIBRARIES.
        n: books asked for, one number or several.
        body_bytes: of each book at least.
        repeats: how many rounds, or which; 1 by default.
        conditions: of the line (`lines.Line`); of latency_s and lose one or several. A window and
            Nagle's algorithm are not for LIBRARIES.
        until, looks: what is to be decided (laboratory/rounds.py).

    Rounds that wait and hardly compute are taken side by side, each on a line of its own, if
    `lines_at_once` allows it. Raises UsageError, MissingInterpreter, RunFailed.
    """
    check_range("body_bytes", body_bytes, 0, MOST_BYTES)
    numbers = rounds.numbers(1 if repeats is None else repeats)
    kinds = lines.kinds(clients, n, (*BARE, *LIBRARIES), **conditions)
    light = len(numbers) > 1 and _waits(kinds, body_bytes)
    answer_lists = rounds.side_by_side(
        lambda repeat: list(_round(kinds, body_bytes, repeat)),
        numbers,
        lines_at_once() if light else 1,
        _OVER.script.stem,
    )
    rows = [
        row | _traffic(answer) | _repair(_packets(answer))
        for answers in answer_lists
        for row, answer in answers
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


@rounds.takes_until
def visit_all(
    kinds: Iterable[Mapping[str, Any]],
    repeats: int | range | None = None,
    **common: Any,
) -> pd.DataFrame:
    """Make several kinds of visits in each round, if one question rests on all of them.

    Parameters:
        kinds: of each, what `visit` takes.
        repeats: how many rounds, or which; 1 by default.
        common: what all kinds share.
        until, looks: what is to be decided (laboratory/rounds.py).

    Returns the columns of `visit`. Raises as `visit`.
    """
    kinds = list(kinds)
    frames = [
        visit(**kind, **common, repeats=range(repeat, repeat + 1))
        for repeat in rounds.numbers(1 if repeats is None else repeats)
        for kind in kinds
    ]
    return pd.concat(frames, ignore_index=True)


def with_controls(
    controls: Iterable[str], clients: str | Iterable[str], **parameters: Any
) -> tuple[pd.DataFrame, list[str]]:
    """Make the same visits with each of TCP's congestion controls.

    Returns the visits, and the controls that are missing: this kernel has none of that name, or
    lets no namespace choose it. Raises as `visit`.
    """
    frames, missing = [], []
    for control in controls:
        try:
            frames.append(visit(clients, congestion=control, **parameters))
        except (NoControl, NotInFile):
            missing.append(control)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(), missing


def packets(
    clients: str | Iterable[str],
    n: int = 13,
    body_bytes: int = 0,
    **conditions: Unpack[Conditions],
) -> pd.DataFrame:
    """Return the packets of a visit, one row each: COLUMNS of the visit, and PACKET_COLUMNS.

    Parameters and errors are those of `visit`, without rounds.
    """
    kinds = lines.kinds(clients, n, (*BARE, *LIBRARIES), **conditions)
    rows: list[dict[str, Any]] = []
    for row, answer in _round(kinds, body_bytes, 1, records=True):
        traffic = _packets(answer)
        rows += [row | packet | {"t_s": packet["t_s"] - traffic[0]["t_s"]} for packet in traffic]
    return pd.DataFrame(rows, columns=list(dict.fromkeys([*COLUMNS, *PACKET_COLUMNS])))


#: How many lines a build has at the same time, at most.
LINES = 4

#: The visits that say whether they disturb each other: 13 books of 27 kB from 35 ms away, over
#: thirteen connections and as streams, _VISITS of each. Only visits from at least as far, of no
#: more bytes and by clients without a library are made side by side.
_CONTROL = lines.kinds(("pipes:13", "bare-h2"), 13, BARE, latency_s=0.035, window_bytes=1 << 24)
_CONTROL_BYTES, _VISITS, _MOST_BOOKS = 27_000, 4, 100


@cache
@not_a_measurement
def lines_at_once() -> int:
    """Return how many visits from afar may be made at the same time.

    LINES, if the control takes less than a tenth longer beside others of its kind than alone; else
    1. Outside a build it is 1: the control takes longer than a few visits.
    """
    if not in_build() or environments.is_another_machine():
        return 1
    if feasibility.not_here() or not runnable([STACK]):
        return 1
    question = ratio("round_trips", "together", "alone", by="control", below=1.1)
    try:
        decision = question.decide(control())
    except RunFailed:
        return 1
    return LINES if decision.outcome == HOLDS else 1


def control() -> pd.DataFrame:
    """Make the visits of the control alone, and then on LINES lines at the same time.

    Returns two rows a visit, with the columns control ("alone" or "together"), repeat (the number
    of the visit), label and round_trips, the median of the lines. Raises RunFailed.
    """
    with reservation.exclusive():
        single = [_control("alone", 1)]
        parallel = rounds.side_by_side(lambda line: _control("together", line), LINES, LINES)
    rows = pd.concat(
        pd.concat(lines).assign(control=name)
        for name, lines in (("alone", single), ("together", parallel))
    )
    columns = ["control", "repeat", "label"]
    return rows.groupby(columns, sort=False)["round_trips"].median().reset_index()


def _control(name: str, line: int) -> pd.DataFrame:
    """Make the control's visits on one line: a row each, with its label and its round trips."""
    kinds = _CONTROL * _VISITS
    parameters = {"way": "", "congestion": ends.CONGESTION, "least_bytes": _CONTROL_BYTES}
    parameters |= {"visits": [_visit(kind, line) for kind in kinds], "control": name}
    [row] = _OVER.measure(STACK, [parameters], repeats=range(line, line + 1)).to_dict("records")
    return pd.DataFrame(
        {
            "repeat": number,
            "label": kind.manner.label,
            "round_trips": kind.line.round_trips(answer["wall_s"]),
        }
        for number, (kind, answer) in enumerate(zip(kinds, row["answers"], strict=True), 1)
    )


def _waits(kinds: Iterable[Kind], body_bytes: int) -> bool:
    """Check whether visits wait as much as the control's, and compute no more."""
    control = _CONTROL[0]
    return all(
        kind.manner.client in BARE
        and kind.line.latency_s >= control.line.latency_s
        and kind.n <= _MOST_BOOKS
        and kind.n * body_bytes <= control.n * _CONTROL_BYTES
        for kind in kinds
    )


def _traffic(answer: dict[str, Any]) -> dict[str, int]:
    """Return what the server sent in a visit, and what was dropped in both directions."""
    counts = answer["counts"]
    dropped = sum(direction["dropped"] for direction in counts.values())
    return {name: counts[wire.BACK][name] for name in ("packets", "bytes", "again")} | {
        "dropped": dropped
    }


def _packets(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the packets of an answer that belong to a connection."""
    records = [dict(zip(PACKET_COLUMNS, packet, strict=True)) for packet in answer["packets"]]
    return [packet for packet in records if packet["connection"] is not None]


def _repair(packets: list[dict[str, Any]]) -> dict[str, float]:
    """Return how long the first lost packet took to come again, and what was sent meanwhile."""
    sent = [packet for packet in packets if packet["direction"] == wire.BACK and packet["bytes"]]
    loss = next((packet for packet in sent if packet["dropped"]), None)
    if loss is None:
        return {}
    later = [
        packet
        for packet in sent[sent.index(loss) + 1 :]
        if packet["connection"] == loss["connection"]
    ]
    covers = (
        i
        for i, packet in enumerate(later)
        if packet["seq"] <= loss["seq"] < packet["seq"] + packet["bytes"] and not packet["dropped"]
    )
    repair_index = next(covers, None)
    if repair_index is None:
        return {}
    behind = [packet for packet in later[:repair_index] if not packet["is_again"]]
    figures = {
        "repair_ms": 1000 * (later[repair_index]["t_s"] - loss["t_s"]),
        "behind": len(behind),
    }
    return figures | ({"next_ms": 1000 * (behind[0]["t_s"] - loss["t_s"])} if behind else {})


def _round(
    kinds: list[Kind], body_bytes: int, repeat: int, records: bool = False
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Make one round, and yield (what each visit was, its answer).

    None, if it is a later round that the machine that stands in did not take.
    """
    kinds = lines.in_turn(kinds, repeat)
    parameters = {
        "way": "",
        "congestion": kinds[0].line.congestion,
        "least_bytes": body_bytes,
        "visits": [_visit(kind, repeat, records) for kind in kinds],
    }
    frame = _OVER.measure(_stack(kinds), [parameters], repeats=range(repeat, repeat + 1))
    for row in frame.to_dict("records"):
        shared = {name: row.get(name) for name in lines.SHARED}
        shared |= {"body_bytes": body_bytes, "way": row["took"]}
        for kind, answer in zip(kinds, row["answers"], strict=True):
            line = kind.line
            figures = {name: getattr(line, name) for name in _CHOSEN} | kind.columns()
            figures |= {"lots": row["lots"] if "share" in line.lose else None}
            figures |= {name: answer[name] for name in lines.ANSWERED}
            figures |= {"busiest": answer.get("busiest", float("nan"))}
            figures |= {"round_trips": line.round_trips(answer["wall_s"])}
            yield shared | figures | {"opened": len(answer["opened"])}, answer


def _stack(kinds: Iterable[Kind]) -> str:
    """Return the stack in which both ends of some visits run."""
    clients = {kind.manner.client for kind in kinds}
    if "niquests" in clients:
        return WITH_NIQUESTS
    return STACK if clients <= set(BARE) else WITH_LIBRARIES


def _visit(kind: Kind, repeat: int, records: bool = False) -> dict[str, Any]:
    """Return what over.py is told of a visit."""
    line = kind.line
    back = line.direction(_with_seed(line.lose, repeat))
    told = kind.visit("completed", there=line.direction(), back=back)
    return told | {"records": records or "byte" in line.lose}


def _with_seed(lose: Mapping[str, Any], repeat: int) -> Mapping[str, Any]:
    """Add the seed of a round to what is lost, if that is drawn at random.

    Each round has a lot of its own, which is the same for all its ways. The build's seed comes to
    it (over.with_lots).
    """
    return {"seed": repeat, **lose} if "share" in lose else lose


def is_random(parameters: Mapping[str, Any]) -> bool:
    """Check whether something is lost at random in one of the visits of a question."""
    directions = (
        visit[direction] for visit in parameters["visits"] for direction in (wire.THERE, wire.BACK)
    )
    return any("share" in (direction.get("lose") or {}) for direction in directions)


def figures_of(parameters: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return what follows from the answer of a script that visits: Experiment.figures."""
    if "failed" in answer:
        # As ends._settings and over.carried say it, in the script's own process.
        kinds = {_NO_CONTROL: NoControl, _TOO_MUCH: TooMuch}
        kind = next((kinds[reason] for reason in kinds if reason in answer["failed"]), RunFailed)
        raise lines.failure(answer["failed"], kind)
    books = stock.books()
    for visit, reply in zip(parameters["visits"], answer["visits"], strict=True):
        expected = sorted((book, books[book]) for book in stock.ids()[: visit["n"]])
        bytes_ = sum(max(len(json.dumps(book)), parameters["least_bytes"]) for _, book in expected)
        actual = reply["list_digest"], reply["books_digest"], reply["body_bytes"], reply["protocol"]
        if actual != (_digest(sorted(books)), _digest(expected), bytes_, visit["protocol"]):
            raise RunFailed("over the line: the books came as others. Nothing was recorded.")
    return {"took": answer["way"], "lots": answer.get("lots"), "answers": answer["visits"]}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


_OVER = Experiment(
    _HERE / "over.py",
    figures_of,
    within_s=300,
    depends_on=(
        *digests.executed(opening.SERVING / "twisted_store.py"),
        *digests.executed(readers.VISIT),
        *(
            file
            for script in (
                *("with_h2", "pipes", "with_requests", "with_httpx", "with_aiohttp"),
                "with_niquests",
            )
            for file in digests.executed(readers.SCRIPTS / f"{script}.py")
        ),
        stock.FILE,
    ),
    lacks=not_a_measurement(feasibility.not_here),
    tells=feasibility.line_capacity,
    is_random=is_random,
)
