"""Visits to the bookstore over a line: TCP and TLS over the whole way, in namespaces of our own.

    frame = visit(["pipes:6", "bare-h2"], n=13, latency_s=[0.004, 0.035])
    frame = visit("bare-h2", n=100, latency_s=0.004, lose=lost(31_000))

The store is Twisted's of today, client and server speak TLS 1.3, and TCP's congestion control is
reno (ends.CONGESTION), which every kernel has. Each book is compared.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook.cases.bookstore import opening, readers, stock
from casebook.cases.bookstore.line import ends, feasibility, wire
from casebook.cases.bookstore.line.feasibility import STACK
from casebook.errors import NotInFile, RunFailed, UsageError
from casebook.laboratory import measurements, reservation, rounds
from casebook.laboratory.decisions import HOLDS, ratio
from casebook.laboratory.experiment import Experiment, runnable
from casebook.laboratory.rounds import as_list
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

#: What a client can be made to do otherwise, and how it is called then: columns of `visit`.
_NOT_SO = {"window_bytes": 0, "delays_small": False}

COLUMNS = [
    *("stack", "client", "label", "protocol", "connections", "at_once", "n", "body_bytes"),
    *("latency_ms", *_NOT_SO, "lose", "lots", "congestion", "mbit", "way", "repeat"),
    *("wall_s", "round_trips", "opened", "packets", "bytes", "dropped", "again"),
    *("repair_ms", "next_ms", "behind"),
    *("late_ms", "most_late_ms", "busiest", "tries"),
    *("source", "instead", "measured_at", *measurements.COLUMNS),
]

PACKET_COLUMNS = ["t_s", "direction", "connection", "seq", "bytes", "is_again", "dropped"]


class NoControl(RunFailed):
    """There is no such congestion control to be had here."""


class TooMuch(RunFailed):
    """The line could not keep up with a visit, so that its times say nothing of the visit."""


def lost(byte: int, count: int = 1, connection: int = 0) -> dict[str, int]:
    """Return what `lose` takes: of what the server sends on this connection, in the order of
    opening, the packet with this byte of its data, once, and further ones behind it for a burst of
    count.
    """
    return {"connection": connection, "byte": byte, "count": count}


@rounds.takes_until
def visit(
    clients: str | Iterable[str],
    n: int | Iterable[int] = 13,
    latency_s: float | Iterable[float] = 0.035,
    body_bytes: int = 0,
    lose: Mapping[str, Any] | Iterable[Mapping[str, Any]] = (),
    repeats: int | range | None = None,
    *,
    window_bytes: int = 0,
    delays_small: bool = False,
    congestion: str = ends.CONGESTION,
    mbit: float = 0,
) -> pd.DataFrame:
    """Visit the store over a line, once in each of the ways, in turns: columns COLUMNS.

    clients: as visits.visit takes them, of BARE and LIBRARIES. latency_s: each way. body_bytes: of
    each book at least. lose: what is lost of what the server sends (wire.py says how), {} for
    nothing; one or several; a share is drawn by lot, anew in each build and round. window_bytes: of
    HTTP/2, on each stream and in all, 0 for its own 65,535. delays_small: whether the client of
    HTTP/2 leaves Nagle's algorithm on; neither is for LIBRARIES. congestion: TCP's. mbit: bandwidth
    of both directions, 0 for none. until, looks: laboratory/rounds.py.

    lots: the seed of the build, where something was drawn (missing in older answers). round_trips:
    wall_s in round trips of the line; packets, bytes, dropped and again (came a second
    time) are of what the server sent. repair_ms: of the first packet that was lost, from when it
    left the server to when it left once more; next_ms: to when the next packet with new data left
    on that connection, missing where there was none before the repair: before it nobody can miss
    the lost one; behind: how many of these the server sent meanwhile, none of which the client may
    read before. All are missing where nothing was lost, or nobody missed it. busiest: packets a
    second in the busiest window (wire.WINDOW_S), in both directions; missing in older answers.
    Rounds that wait and hardly compute are taken side by side, each on a line of its own, where
    `lines_at_once` allows it. Raises UsageError, MissingInterpreter, RunFailed.
    """
    several = rounds.numbers(1 if repeats is None else repeats)
    light = len(several) > 1 and _waits(as_list(clients), n, latency_s, body_bytes)
    answer_lists = rounds.side_by_side(
        lambda repeat: list(
            _round(
                clients, n, latency_s, body_bytes, lose, repeat,
                window_bytes, delays_small, congestion, mbit,
            )
        ),
        several, lines_at_once() if light else 1, _OVER.script.stem,
    )  # fmt: skip
    rows = []
    for answers in answer_lists:
        for row, answer in answers:
            back = answer["counts"][wire.BACK]
            rows.append(row | {name: back[name] for name in ("packets", "bytes", "again")})
            rows[-1]["dropped"] = sum(
                direction["dropped"] for direction in answer["counts"].values()
            )
            rows[-1] |= _repair(_packets(answer))
    return pd.DataFrame(rows, columns=COLUMNS)


@rounds.takes_until
def visit_all(
    kinds: Iterable[Mapping[str, Any]],
    repeats: int | range | None = None,
    **common: Any,
) -> pd.DataFrame:
    """Make several kinds of visits in each round, where one question rests on all of them.

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
    """Make the same visits with each of TCP's congestion controls; return them, and the controls
    that are missing: this kernel has none of that name, or lets no namespace choose it. Raises as
    `visit`.
    """
    frames, missing = [], []
    for control in controls:
        try:
            frames.append(visit(clients, congestion=control, **parameters))
        except (NoControl, NotInFile):
            missing.append(control)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(), missing


def packets(clients: str | Iterable[str], n: int = 13, **parameters: Any) -> pd.DataFrame:
    """Return the packets of a visit, one row each: COLUMNS of the visit, and PACKET_COLUMNS.

    parameters: as for `visit`, without rounds. t_s: since the first packet, as it reached the
    middle of the line from its sender; direction: "there" or "back"; seq: of its first byte;
    is_again: all of its data had been sent before. Raises as `visit`.
    """
    defaults = dict(latency_s=0.035, body_bytes=0, lose=(), window_bytes=0, delays_small=False)
    settings: dict[str, Any] = defaults | dict(congestion=ends.CONGESTION, mbit=0) | parameters
    rows: list[dict[str, Any]] = []
    for row, answer in _round(
        clients, n, settings["latency_s"], settings["body_bytes"], settings["lose"], 1,
        settings["window_bytes"], settings["delays_small"], settings["congestion"],
        settings["mbit"], records=True,
    ):  # fmt: skip
        traffic = _packets(answer)
        rows += [row | packet | {"t_s": packet["t_s"] - traffic[0]["t_s"]} for packet in traffic]
    return pd.DataFrame(rows, columns=list(dict.fromkeys([*COLUMNS, *PACKET_COLUMNS])))


#: How many lines a build has at the same time, at most.
LINES = 4

#: The visit that says whether they disturb each other: 13 books of 27 kB from 35 ms away, over
#: thirteen connections and as streams. Only visits from at least as far, of no more bytes and by
#: clients without a library are made side by side.
_CONTROL: dict[str, Any] = {
    "clients": ("pipes:13", "bare-h2"), "n": 13, "body_bytes": 27_000, "latency_s": 0.035,
    "window_bytes": 1 << 24,
}  # fmt: skip
_MOST_BOOKS, _VISITS = 100, 4


@cache
def lines_at_once() -> int:
    """Return how many visits from afar may be made at the same time: LINES where the control takes
    less than a tenth longer beside others of its kind than alone; else 1.

    Outside a build it is 1: the control takes longer than a few visits.
    """
    if not measurements.in_build() or environments.is_another_machine():
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
    manners = [readers.manner(client) for client in _CONTROL["clients"]] * _VISITS
    visits = [
        _visit(manner, _CONTROL["n"], _CONTROL["latency_s"], 0, {})
        | {"window_bytes": _CONTROL["window_bytes"], "delays_small": False, "records": False}
        for manner in manners
    ]
    parameters = {"way": "", "congestion": ends.CONGESTION, "least_bytes": _CONTROL["body_bytes"]}
    parameters |= {"visits": visits, "control": name}
    [row] = _OVER.measure(STACK, [parameters], repeats=range(line, line + 1)).to_dict("records")
    trip_s = 2 * _CONTROL["latency_s"]
    return pd.DataFrame(
        {"repeat": number, "label": manner.label, "round_trips": answer["wall_s"] / trip_s}
        for number, (manner, answer) in enumerate(zip(manners, row["answers"], strict=True), 1)
    )


def _waits(clients: list[str], n: Any, latency_s: Any, body_bytes: int) -> bool:
    """Check whether visits wait as much as the control's, and compute no more."""
    return (
        all(readers.manner(client).client in BARE for client in clients)
        and all(far_s >= _CONTROL["latency_s"] for far_s in as_list(latency_s))
        and max(as_list(n)) <= _MOST_BOOKS
        and max(as_list(n)) * body_bytes <= _CONTROL["n"] * _CONTROL["body_bytes"]
    )


def _packets(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the packets of an answer that belong to a connection."""
    records = [dict(zip(PACKET_COLUMNS, packet, strict=True)) for packet in answer["packets"]]
    return [packet for packet in records if packet["connection"] is not None]


def _repair(packets: list[dict[str, Any]]) -> dict[str, float]:
    """Return how long the first lost packet took to come again, and what was sent behind it
    meanwhile.
    """
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
    clients, n, latency_s, body_bytes, lose, repeat, window, small, congestion, mbit, records=False
):
    """Make one round, and yield (what each visit was, its answer)."""
    loses = (
        [dict(lose)] if isinstance(lose, Mapping) or not lose else [dict(losing) for losing in lose]
    )
    manners = [readers.manner(client) for client in as_list(clients)]
    for manner in manners:
        if manner.client not in (*BARE, *LIBRARIES):
            raise UsageError(
                f"{manner.client} does not visit over a line: choose "
                f"{', '.join((*BARE, *LIBRARIES))}"
            )
    if not all(1 <= size <= stock.SIZE for size in as_list(n)):
        raise UsageError(f"n is {n}; choose 1 to {stock.SIZE:,}")
    if not 0 <= mbit <= wire.MOST_MBIT:
        raise UsageError(f"the bandwidth is {mbit:g} Mbit/s; choose up to {wire.MOST_MBIT}, or 0")
    for far_s in as_list(latency_s):
        if not 0 <= far_s <= wire.LONGEST_S:
            raise UsageError(f"the latency is {far_s:g} s; choose 0 to {wire.LONGEST_S:g}")
    kinds = list(product(as_list(latency_s), loses, as_list(n), manners))
    if repeat % 2 == 0:
        kinds.reverse()
    visits = [
        {
            **_visit(manner, size, float(far_s), mbit, _with_seed(losing, repeat)),
            **{"window_bytes": window, "delays_small": small},
            "records": records or "byte" in losing,
        }
        for far_s, losing, size, manner in kinds
    ]
    parameters = {"way": "", "congestion": congestion, "least_bytes": body_bytes, "visits": visits}
    stack = STACK if all(manner.client in BARE for manner in manners) else WITH_LIBRARIES
    if any(manner.client == "niquests" for manner in manners):
        stack = WITH_NIQUESTS
    frame = _OVER.measure(stack, [parameters], repeats=range(repeat, repeat + 1))
    if frame.empty:
        return  # a later round, which the machine that stands in did not take
    [row] = frame.to_dict("records")
    shared = {
        name: row.get(name) for name in ("stack", "repeat", "source", "instead", "measured_at")
    }
    shared |= {name: row.get(name) for name in measurements.COLUMNS}
    for (far_s, losing, size, manner), answer in zip(kinds, row["answers"], strict=True):
        figures = {
            "client": manner.client,
            "label": manner.label,
            "protocol": manner.reader.protocol,
        }
        figures |= {"connections": manner.connections, "at_once": manner.at_once, "n": size}
        figures |= {"body_bytes": body_bytes, "latency_ms": round(1000 * float(far_s), 3)}
        figures |= {"window_bytes": window, "delays_small": small, "congestion": congestion}
        figures |= {"lose": json.dumps(losing) if losing else "", "way": row["took"], "mbit": mbit}
        figures |= {"lots": row["lots"] if "share" in losing else None}
        figures |= {name: answer[name] for name in ("wall_s", "late_ms", "most_late_ms", "tries")}
        figures |= {"busiest": answer.get("busiest", float("nan")), "opened": len(answer["opened"])}
        figures |= {"round_trips": answer["wall_s"] / (2 * far_s) if far_s else float("nan")}
        yield shared | figures, answer


def _visit(
    manner: Any, size: int, far_s: float, mbit: float, losing: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what over.py is told of a visit: by whom, of how many books, over what line."""
    return {
        **{"script": manner.reader.script, "protocol": manner.reader.protocol, "n": size},
        **{"at_once": manner.at_once, "connections": manner.connections, "order": "completed"},
        "there": {"latency_s": far_s, "mbit": mbit},
        "back": {"latency_s": far_s, "mbit": mbit, "lose": dict(losing)},
    }


def _with_seed(losing: dict[str, Any], repeat: int) -> dict[str, Any]:
    """Add the seed of a round to what is lost: each round has a lot of its own, which is the same
    for all its ways. The build's seed comes to it (over.drawn).
    """
    return {"seed": repeat, **losing} if "share" in losing else losing


def draws(parameters: Mapping[str, Any]) -> bool:
    """Check whether something is lost by lot in one of the visits of a question."""
    directions = (
        visit[direction] for visit in parameters["visits"] for direction in (wire.THERE, wire.BACK)
    )
    return any("share" in (direction.get("lose") or {}) for direction in directions)


def _figures(parameters: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    if "failed" in answer:
        # As ends._settings and over.carried say it, in the script's own process.
        kinds = {_NO_CONTROL: NoControl, _TOO_MUCH: TooMuch}
        kind = next((kinds[reason] for reason in kinds if reason in answer["failed"]), RunFailed)
        raise kind(
            f"over the line: {answer['failed']}. Nothing was recorded; try it on a quieter machine."
        )
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
    _figures,
    within_s=300,
    made_of=(
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
    lacks=feasibility.not_here,
    tells=feasibility.told,
    draws=draws,
)
