"""Runs gathered into the lines of a chart."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from casebook import words
from casebook.colours import colour_name
from casebook.errors import UsageError


@dataclass(frozen=True)
class Series:
    """One line: wall times by number of requests.

    ns, medians, lows, highs: one entry per n, ascending. dots: every run as (n, wall).
    per_delay says whether walls are in seconds or in delays.
    """

    label: str
    colour: str
    source: str
    ns: tuple[int, ...]
    medians: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    dots: tuple[tuple[int, float], ...]


def columns(frame: pd.DataFrame, *needed: str) -> None:
    """Refuse a frame without some columns, or without rows."""
    missing = [name for name in needed if name not in frame]
    if missing:
        raise UsageError(f"the chart needs a column {' and '.join(missing)} in the frame")
    if frame.empty:
        raise UsageError("the chart got no runs; measure some, or look at the filter before it")


def gather(
    frame: pd.DataFrame, by: str | Sequence[str] = "stack", per_delay: bool = False
) -> list[Series]:
    """The series in a frame of runs, in the order in which they first appear.

    by: the column or columns that name a line; client, scheme and source always tell lines
    apart as well. per_delay: divide each wall time by its own delay.
    """
    columns(frame, "stack", "n", "wall_s")
    by = [by] if isinstance(by, str) else list(by)
    columns(frame, *by)
    frame = frame.assign(
        client=frame.get("client", "grequests"),
        scheme=frame.get("scheme", "https"),
        source=frame.get("source", words.LIVE),
        wall=frame["wall_s"] / frame["delay_s"] if per_delay else frame["wall_s"],
    )
    keys = list(dict.fromkeys([*by, "client", "scheme", "source"]))
    found = []
    for _, rows in frame.groupby(keys, sort=False, dropna=False):
        first = rows.iloc[0]
        at = rows.groupby("n")["wall"]
        control = first["scheme"] == "http"
        found.append(
            Series(
                label=_label(first, by),
                colour="control" if control else colour_name(first["stack"], first["client"]),
                source=first["source"],
                ns=tuple(int(n) for n in at.median().index),
                medians=tuple(map(float, at.median())),
                lows=tuple(map(float, at.min())),
                highs=tuple(map(float, at.max())),
                dots=tuple(
                    (int(n), float(w)) for n, w in rows[["n", "wall"]].itertuples(index=False)
                ),
            )
        )
    return found


def _label(row: pd.Series, by: Sequence[str]) -> str:
    named = [
        words.stack_label(row["stack"], row["client"]) if column == "stack" else str(row[column])
        for column in by
    ]
    if row["scheme"] == "http":
        named.append("plain HTTP")
    if row["source"] == words.PUBLISHED:
        named.append("published")
    if row["source"] == words.REFERENCE:
        named.append("reference")
    return ", ".join(named)


def spread(series: Series, i: int, unit: str = "s") -> str:
    """The median at one n and, where runs differ visibly, the fastest and slowest."""
    middle, low, high = (
        words.number(v) for v in (series.medians[i], series.lows[i], series.highs[i])
    )
    return f"{middle} {unit}" if low == high else f"{middle} {unit} ({low}–{high})"
