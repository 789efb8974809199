"""Who comes first over the line, situation by situation, each decided by rounds.

table = standings(visits, ["where", "bodies"])
cells(table, ["where", "bodies"])
"""

import json
import math
from collections.abc import Sequence
from itertools import product
from typing import Any, TypedDict

import pandas as pd

from casebook.cases.bookstore.line import model
from casebook.cases.bookstore.line.visits import TooMuch, visit, with_controls
from casebook.cases.fetching import modes
from casebook.laboratory.decisions import HOLDS, OTHERWISE, decide, window

#: A way that takes at least this many times as long as the best is slower; below, it is as good.
SLOWER = 1.1

BEST, AS_GOOD, LONGER, UNDECIDED = "best", "as good", "longer", "undecided"


class Standing(TypedDict):
    """The columns of `standings`, behind those of the situation."""

    way: str
    #: The median of the rounds.
    wall_s: float
    #: As long as the best way of that situation: the median of the rounds, and its interval
    #: (decisions.interval; NaN if there are too few rounds).
    times: float
    low: float
    high: float
    rounds: int
    #: BEST for the way with the smallest median; LONGER if the whole interval is above SLOWER,
    #: AS_GOOD if it is below, else UNDECIDED.
    outcome: str


COLUMNS = [*Standing.__annotations__]


def standings(visits: pd.DataFrame, situation: Sequence[str], way: str = "label") -> pd.DataFrame:
    """Rank the ways in each situation: one row for each situation and way.

    Parameters:
        visits: columns `repeat`, `wall_s`, way and those of situation; of each way at most one
            visit a round.
        situation: the columns that make a situation.
        way: the column that tells the ways apart.

    Returns the columns of the situation, and those of Standing.
    """
    rows = []
    for values, group in visits.groupby(list(situation), sort=False):
        walls = group.pivot_table("wall_s", "repeat", way, sort=False)
        first = walls.median().idxmin()
        for label in walls:
            row = dict(zip(situation, values, strict=True)) | {"way": label}
            row["wall_s"] = float(walls[label].median())
            rows.append(row | _comparison(walls, label, first))
    return pd.DataFrame(rows, columns=[*situation, *COLUMNS])


def _comparison(walls: pd.DataFrame, label: Any, best: Any) -> dict[str, Any]:
    """Compare a way with the best one, round by round: columns of Standing."""
    times = (walls[label] / walls[best]).dropna()
    decided = decide(times, window(above=SLOWER))
    outcome = {HOLDS: LONGER, OTHERWISE: AS_GOOD}.get(decided.outcome, UNDECIDED)
    return {
        **{"times": decided.value, "low": decided.low, "high": decided.high},
        **{"rounds": decided.rounds, "outcome": BEST if label == best else outcome},
    }


def cells(table: pd.DataFrame, situation: Sequence[str]) -> pd.DataFrame:
    """Put standings into a table to read, in words: a row a situation.

    Parameters:
        table: the rows of `standings`. situation: the columns that make a situation.

    Returns the columns of the situation, `soonest` (the best way, with its time) and `others`: each
    other way that was measured there, beside it.
    """
    rows = []
    for values, group in table.groupby(list(situation), sort=False):
        best = group["outcome"] == BEST
        (soonest,) = map(_text, group[best].to_dict("records"))
        others = group[~best].sort_values("wall_s", kind="stable").to_dict("records")
        row = dict(zip(situation, values, strict=True)) | {"soonest": soonest}
        rows.append(row | {"others": "; ".join(map(_text, others))})
    return pd.DataFrame(rows, columns=[*situation, "soonest", "others"])


def _text(row: dict[str, Any]) -> str:
    """Say how a way came out: with a number only if the rounds agree on it."""
    if row["outcome"] == BEST:
        return "{way}, {wall_s:.2f} s".format(**row)
    if row["outcome"] == LONGER:
        return "{way} {times:.1f} times as long".format(**row)
    if row["outcome"] == AS_GOOD:
        return "{way} as good".format(**row)
    doubt = "too few rounds" if math.isnan(row["low"]) else "the rounds do not agree"
    return f"{row['way']}: {doubt}"


#: Bytes of a book as the store has it, in the middle.
SMALL = 109


def placed(visits: pd.DataFrame) -> pd.DataFrame:
    """Return the visits that the model knows, with further columns: way, body (bytes) and loss.

    They are in a way of model.WAYS, with reno and no limit to the bandwidth, and lose nothing or a
    share of all packets.
    """
    rows = visits[visits["congestion"] == "reno"]
    if "mbit" in rows:
        rows = rows[~(rows["mbit"] > 0)]
    labels = [_model_way(row) for row in rows.itertuples()]
    losses = [_loss(lose) for lose in rows["lose"]]
    rows = rows.assign(way=labels, loss=losses, body=rows["body_bytes"].replace(0, SMALL))
    return rows[rows["way"].ne("") & rows["loss"].notna()]


def by_model(visits: pd.DataFrame) -> pd.DataFrame:
    """Return the same, of visits that lost nothing, and model_s: seconds by the model."""
    rows = placed(visits)
    rows = rows[rows["loss"] == 0]
    seconds = [
        model.seconds(row.way, row.n, row.body, row.latency_ms / 500) for row in rows.itertuples()
    ]
    return rows.assign(model_s=seconds)


def by_lot(visits: pd.DataFrame, beside: pd.DataFrame) -> pd.DataFrame:
    """Return the same, of visits that lost a share of all packets, with the model's lots.

    low_s, high_s: the ends of the middle eight tenths of the lots (model.spread). way_s: wall_s
    without what such visits compute. as_most: whether way_s lies between the two.

    beside: visits of the same ways, sizes and distances that lost nothing. What they take beyond
    the model, in the median, is what is computed.
    """
    rows = placed(visits)
    rows = rows[rows["loss"] > 0]
    calm = by_model(beside)
    kinds = ["way", "n", "body", "latency_ms"]
    computed_s = (calm["wall_s"] - calm["model_s"]).groupby([calm[kind] for kind in kinds]).median()
    rows = rows.join(computed_s.clip(lower=0).rename("computed_s"), on=kinds)
    bounds = [
        model.spread(row.way, row.n, row.body, row.latency_ms / 500, row.loss)[1:]
        for row in rows.itertuples()
    ]
    rows = rows.assign(low_s=[low for low, _ in bounds], high_s=[high for _, high in bounds])
    rows = rows.assign(way_s=rows["wall_s"] - rows["computed_s"])
    return rows.assign(as_most=rows["way_s"].between(rows["low_s"], rows["high_s"]))


def _model_way(visit: Any) -> str:
    if visit.client == "bare-h2" and visit.at_once > 1:
        return "streams, wide window" if visit.window_bytes >= 1 << 24 else "streams, own window"
    if visit.client != "pipes":
        return ""
    names = {1: "one connection", 6: "six connections"}
    return names.get(visit.connections, "a connection for each" * (visit.connections >= visit.n))


def _loss(lose: str) -> float | None:
    conditions = json.loads(lose or "{}")
    return conditions.get("share", None if conditions else 0.0)


def matrix() -> tuple[pd.DataFrame, list[str]]:
    """Make the visits of a full build that the quick one leaves out, eight rounds each.

    13 books and 200, from 4, 35 and 150 ms away, in all sizes; and 13 of 27 kB with 0.1, 1 and 2 %
    of the packets lost. HTTP/2's own window is left out if streams would take longer than AT_MOST_S
    by the model: with a hundred streams in turn, none of them would end for so long that the reader
    took the store for dead. In quick mode there are no rows: it takes an hour or two.

    Returns them as `visit` does, and in words the ways that the line could not keep up with. Raises
    as `visit`.
    """
    if modes.current() != modes.FULL:
        return pd.DataFrame(), []
    bare, far = ["pipes:6", "pipes:100", "bare-h2"], (0.004, 0.035, 0.15)
    parameter_sets: list[dict[str, Any]] = [
        {"n": n, "latency_s": far_s, "body_bytes": body, "window_bytes": window}
        for n, far_s, body, window in product((13, 200), far, (0, 3_000, 27_000, 100_000), _WINDOWS)
        if window or model.seconds("streams, own window", n, body or SMALL, 2 * far_s) <= AT_MOST_S
    ]
    parameter_sets += [
        {"n": 13, "latency_s": far_s, "body_bytes": 27_000, "window_bytes": _WINDOWS[1]}
        | {"lose": {"share": share}}
        for far_s, share in product(far[:2], (0.001, 0.01, 0.02))
    ]
    with_all = ["pipes:1", "httpx-h2:100", "aiohttp:6", "requests"]
    plan = [(bare, question) for question in parameter_sets] + [
        (with_all, {"n": 13, "latency_s": far})
    ]
    frames: list[pd.DataFrame] = []
    refused: list[str] = []
    for clients, parameters in plan:
        _measure(clients, parameters, frames, refused)
    return pd.concat(frames, ignore_index=True), refused


def _measure(
    clients: list[str], parameters: dict[str, Any], frames: list[pd.DataFrame], refused: list[str]
) -> None:
    """Make eight rounds; if the line cannot keep up with all clients, with each that it can."""
    try:
        frames.append(visit(clients, **parameters, repeats=8))
    except TooMuch as error:
        if len(clients) == 1:
            description = ", ".join(f"{name} {value}" for name, value in parameters.items())
            refused.append(f"{clients[0]} ({description}): {error}")
            return
        for client in clients:
            _measure([client], parameters, frames, refused)


#: Seconds that a visit of the matrix may take by the model.
AT_MOST_S = 10.0

#: HTTP/2's own window, and one that limits nothing.
_WINDOWS = (0, 1 << 24)


def controls() -> tuple[pd.DataFrame, list[str]]:
    """Visit over TCP with its congestion controls, and lose 2 % of the packets.

    13 books of 27 kB from 35 ms away, over 13 connections and as streams with a wide window; ROUNDS
    rounds with each control in CONTROLS. In full mode also eight rounds with bbr, with 1 %, and
    from 4 ms away. The lots are the same for both ways and all controls.

    Returns the visits, and the controls that this kernel lacks. Raises as `visit`.
    """
    common: dict[str, Any] = {"n": 13, "body_bytes": 27_000, "window_bytes": _WINDOWS[1]}
    clients = ["pipes:13", "bare-h2"]
    base: dict[str, Any] = {"latency_s": 0.035, "lose": {"share": 0.02}}
    frame, missing = with_controls(CONTROLS, clients, **common, **base, repeats=ROUNDS)
    if modes.current() == modes.FULL:
        all_controls, shares = (*CONTROLS, "bbr"), [{"share": 0.01}, {"share": 0.02}]
        for controls, setting in (
            (("bbr",), base),
            (all_controls, {"latency_s": 0.035, "lose": shares[0]}),
            (all_controls, {"latency_s": 0.004, "lose": shares}),
        ):
            further, lacking = with_controls(controls, clients, **common, **setting, repeats=8)
            frame, missing = pd.concat([frame, further]), [*missing, *lacking]
    return frame, list(dict.fromkeys(missing))


#: RFC 5681's, which every kernel has, and the usual one of Linux; and how many lots of each.
CONTROLS, ROUNDS = ("reno", "cubic"), 24
