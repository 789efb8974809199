"""Charts of runs for the book's usual questions, made of `against` and `dots`."""

from collections.abc import Mapping, Sequence

import pandas as pd

from casebook import words
from casebook.cases.fetching.analysis import CONCURRENT, CONCURRENT_FROM, SERIAL, verdict_of
from casebook.cases.fetching.names import CURES
from casebook.charts import series
from casebook.charts.against import against
from casebook.charts.curves import Limit
from casebook.charts.dots import dots
from casebook.charts.figure import Chart
from casebook.mistakes import for_readers

_E = "effective_concurrency"
_ROLE_OF_VERDICT = {SERIAL: "slow", CONCURRENT: "fast"}


@for_readers
def n_against_wall(
    frame: pd.DataFrame,
    published: pd.DataFrame | None = None,
    *,
    by: str = "stack",
    title: str = "Wall time against the number of requests",
    name: str = "",
    limits: Mapping[str, Limit] | None = None,
) -> Chart:
    """Draw the wall time of n requests, one line per stack, or per value of the column `by`.

    frame: runs (stack, client, n, delay_s, wall_s, source, measured_at); plain HTTP is grey.
    published: rows of published.series(). If its delay is not that of the runs, all is shown in
    delays instead of seconds. limits: {label: seconds, or seconds as a function of n}. Both axes
    are logarithmic if n spans a decade or more.
    """
    series.require_columns(frame, "stack", "n", "wall_s", "delay_s")
    rows = frame if published is None else pd.concat([frame, published])
    delays = sorted(rows["delay_s"].dropna().unique())
    name, unit, limits = name or title, "s", limits or {}
    if len(delays) > 1:
        delay_s = frame["delay_s"].iloc[0]
        frames = {"here": frame} | ({} if published is None else {"where published": published})
        delays_by_place = (f"{_delays_of(runs)} {place}" for place, runs in frames.items())
        title = f"{title}, in delays ({', '.join(delays_by_place)})"
        unit, rows = "delays", rows.assign(wall_s=rows["wall_s"] / rows["delay_s"])
        limits = {text: _divided(limit, delay_s) for text, limit in limits.items()}
    return against(
        rows,
        "n",
        {"wall_s": f"wall time, {unit}"},
        by,
        title=title,
        name=name,
        limits=limits,
        log={"wall_s": series.spans_a_decade(rows["n"])},
    )


def _delays_of(runs: pd.DataFrame) -> str:
    return words.join(map(words.delay, sorted(runs["delay_s"].dropna().unique())))


def _divided(limit: Limit, delay_s: float) -> Limit:
    return (lambda n: limit(n) / delay_s) if callable(limit) else limit / delay_s


@for_readers
def effective_concurrency(
    frame: pd.DataFrame,
    by: str | Sequence[str] = "stack",
    *,
    title: str = "Effective concurrency",
    name: str = "",
) -> Chart:
    """Draw how many requests were served at a time, every run a dot, one row per value of `by`.

    frame: runs (stack, effective_concurrency, source, measured_at; and, if it is known,
    verdict). Lines stand at 1, which no serial run can exceed, and at 1.5, from which a run
    counts as concurrent.
    """
    series.require_columns(frame, "stack", _E)
    parts = series.groups(series.usable(frame, _E), by)
    finding = "; ".join(
        f"{part.label} {series.span(part.rows[_E])} "
        f"({len(part.rows)} run{'s' * (len(part.rows) > 1)})"
        for part in parts
    )
    return dots(
        frame,
        _E,
        by,
        title=title,
        name=name,
        axis="effective concurrency = n × delay / wall time",
        limits={"1: one at a time": 1.0, f"from {CONCURRENT_FROM}: concurrent": CONCURRENT_FROM},
        end=lambda median, _: words.number(median, 2),
        finding=f"{words.capital(finding)}.{_gap(frame)}",
    )


@for_readers
def cures(frame: pd.DataFrame, *, title: str = "What each variant takes", name: str = "") -> Chart:
    """Draw the wall time of each variant at the largest n, every run a dot.

    frame: runs (stack, n, delay_s, wall_s, effective_concurrency, verdict, source, measured_at).
    They stand in the order of their stacks, of which the first is the one to compare with.
    The delay is a line if all have the same.
    """
    series.require_columns(frame, "stack", "n", "delay_s", "wall_s", _E, "verdict")
    frame = frame[frame["n"] == frame["n"].max()]
    names = {name: CURES.get(name) or words.stack_label(name) for name in frame["stack"]}
    frame = frame.assign(variant=frame["stack"].map(names))
    n, delays = int(frame["n"].iloc[0]), frame["delay_s"].unique()
    parts = series.groups(series.usable(frame, "wall_s"), "variant")
    [wall] = series.quantities("wall_s")
    finding = wall.describe_range(
        [series.Point.from_runs(part, part.rows["wall_s"]) for part in parts], f"At n = {n}, "
    )
    # A row's label, its colour and the caption follow one rule, that of the best repeat: noise can
    # hide concurrency, and then the repeats differ, but it cannot make it.
    verdicts = {part.label: verdict_of(part.rows) for part in parts}
    for verdict, labels in words.grouped((one, label) for label, one in verdicts.items()).items():
        finding += f" {words.capital(verdict)}: {'; '.join(labels)}."
    return dots(
        frame,
        "wall_s",
        "variant",
        title=title,
        name=name,
        axis=f"wall time of n = {n} requests, s",
        order=[part.name for part in parts],
        limits={f"one delay, {words.delay(delays[0])}": delays[0]} if len(delays) == 1 else {},
        end=lambda median, rows: f"{words.seconds(median)}, {verdict_of(rows)}",
        finding=finding,
        roles={label: _ROLE_OF_VERDICT.get(one, "other") for label, one in verdicts.items()},
    )


def _gap(frame: pd.DataFrame) -> str:
    """Say whether serial and concurrent runs lie apart."""
    if "verdict" not in frame:
        return ""
    serial = frame[frame["verdict"] == "serial"][_E]
    concurrent = frame[frame["verdict"] == "concurrent"][_E]
    if serial.empty or concurrent.empty:
        return ""
    high, low = words.number(serial.max(), 2), words.number(concurrent.min(), 2)
    if serial.max() < concurrent.min():
        return f" No serial run is above {high} and no concurrent one below {low}."
    return f" The two overlap: a serial run reaches {high}, a concurrent one falls to {low}."
