"""What a visit over a line is: by whom, of how many books, and over what line.

What goes over TCP (`visits`), over QUIC (`quic`) and in `greetings` shares it.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, TypedDict, Unpack

from casebook.cases.bookstore import readers, stock
from casebook.cases.bookstore.line import ends, wire
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import measurements
from casebook.laboratory.rounds import as_list
from casebook.mistakes import check_range

#: The columns that say where a row comes from: the last ones of each frame.
PROVENANCE = ("source", "instead", "measured_at", *measurements.COLUMNS)

#: The columns that a visit shares with the others of its round.
SHARED = ("stack", "repeat", *PROVENANCE)

#: The columns that the answer to a visit has as they are.
ANSWERED = ("wall_s", "late_ms", "most_late_ms", "tries")

#: What is lost: one condition of wire.Wire, or several.
Losses = Mapping[str, Any] | Iterable[Mapping[str, Any]]


class Distance(TypedDict, total=False):
    """How far away the store is, and what is lost on the way: one of each, or several."""

    latency_s: float | Iterable[float]
    lose: Losses


class Conditions(Distance, total=False):
    """All that can be chosen of a line: see `Line`."""

    mbit: float
    congestion: str
    window_bytes: int
    delays_small: bool


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line between two namespaces, and how both ends use it. Raises UsageError.

    Parameters:
        latency_s: each way.
        mbit: bandwidth of both directions, in millions of bits a second; 0 for no limit.
        lose: what is lost of what the server sends, as wire.Wire takes it; {} for nothing. A share
            is drawn at random, anew in each build and round.
        congestion: TCP's congestion control.
        window_bytes: of HTTP/2, on each stream and in all; 0 for its own 65,535.
        delays_small: whether the client of HTTP/2 leaves Nagle's algorithm on.
    """

    latency_s: float = 0.035
    mbit: float = 0
    lose: Mapping[str, Any] = field(default_factory=dict)
    congestion: str = ends.CONGESTION
    window_bytes: int = 0
    delays_small: bool = False

    def __post_init__(self) -> None:
        check_range("the latency", self.latency_s, 0, wire.LONGEST_S, " s")
        check_range("the bandwidth", self.mbit, 0, wire.MOST_MBIT, " Mbit/s")

    @property
    def latency_ms(self) -> float:
        """Return how long it takes each way, in milliseconds."""
        return round(1000 * self.latency_s, 3)

    def round_trips(self, wall_s: float) -> float:
        """Convert seconds to round trips of this line; NaN without a latency."""
        return wall_s / (2 * self.latency_s) if self.latency_s else float("nan")

    def direction(self, lose: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return one direction as wire.Wire takes it, with what is lost in it."""
        conditions: dict[str, Any] = {"latency_s": self.latency_s, "mbit": self.mbit}
        return conditions if lose is None else conditions | {"lose": dict(lose)}


class Kind(NamedTuple):
    """A kind of visit: over what line, of how many books, and by whom in which manner."""

    line: Line
    n: int
    manner: readers.Manner

    def columns(self) -> dict[str, Any]:
        """Return what a frame says of it."""
        return {
            "client": self.manner.client,
            "label": self.manner.label,
            "protocol": self.manner.reader.protocol,
            "connections": self.manner.connections,
            "at_once": self.manner.at_once,
            "n": self.n,
            "latency_ms": self.line.latency_ms,
            "lose": json.dumps(self.line.lose) if self.line.lose else "",
        }

    def visit(self, order: str, there: dict[str, Any], back: dict[str, Any]) -> dict[str, Any]:
        """Return what the script that visits is told, with both directions of the line."""
        return {
            **{"script": self.manner.reader.script, "protocol": self.manner.reader.protocol},
            **{"n": self.n, "at_once": self.manner.at_once, "order": order},
            **{"connections": self.manner.connections, "there": there, "back": back},
            **{"window_bytes": self.line.window_bytes, "delays_small": self.line.delays_small},
        }


def lines(**conditions: Unpack[Conditions]) -> list[Line]:
    """Return the lines that are asked for: each latency with each of the losses.

    Raises UsageError.
    """
    chosen: dict[str, Any] = {"latency_s": Line.latency_s, "lose": {}, **conditions}
    latencies, lose = as_list(chosen.pop("latency_s")), chosen.pop("lose")
    losses = [lose] if isinstance(lose, Mapping) or not lose else lose
    return [
        Line(latency_s=float(latency_s), lose=dict(loss or {}), **chosen)
        for latency_s, loss in product(latencies, losses)
    ]


def kinds(
    clients: str | Iterable[str],
    n: int | Iterable[int],
    choices: Collection[str],
    **conditions: Unpack[Conditions],
) -> list[Kind]:
    """Return the kinds of visits that are asked for, in the order of the first round.

    Parameters:
        clients: as readers.manner takes them, one or several.
        n: how many books, one number or several.
        choices: the clients that there are.
        conditions: of the lines.

    Raises UsageError.
    """
    manners = [readers.manner(client) for client in as_list(clients)]
    for manner in manners:
        if manner.client not in choices:
            raise UsageError(
                f"{manner.client} does not visit over this line: choose {', '.join(choices)}"
            )
    sizes = as_list(n)
    for size in sizes:
        check_range("n", size, 1, stock.SIZE)
    return [Kind(*kind) for kind in product(lines(**conditions), sizes, manners)]


def failure(reason: str, kind: type[RunFailed] = RunFailed) -> RunFailed:
    """Return the error to raise if a script could not do its work over the line."""
    return kind(f"over the line: {reason}. Nothing was recorded; try it on a quieter machine.")


def in_turn(kinds: list[Kind], repeat: int) -> list[Kind]:
    """Return the kinds in the order of a round: every second round goes the other way."""
    return kinds if repeat % 2 else kinds[::-1]
