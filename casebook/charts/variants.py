"""The variants of one experiment in rows: effective concurrency, and what cures cost."""

from collections.abc import Sequence

import pandas as pd

from casebook import words
from casebook.charts.figure import Chart, chart
from casebook.charts.lines import spans_a_decade
from casebook.charts.origins import origin
from casebook.charts.rows import Dots, Row, in_rows, reading
from casebook.charts.series import columns
from casebook.colours import colour_name
from casebook.runs.analysis import CONCURRENT_FROM

_E = "effective_concurrency"


def effective_concurrency(
    frame: pd.DataFrame,
    by: str | Sequence[str] = "stack",
    title: str = "Effective concurrency",
    name: str = "",
) -> Chart:
    """Every run as a dot on the scale of effective concurrency, one row per stack.

    frame: runs (stack, effective_concurrency, source, measured_at). by: the column or columns
    that make a row, e.g. ["verdict", "load"] for runs on a quiet and on a busy machine.
    Lines stand at 1, which no serial run can exceed, and at 1.5, from where a run counts as
    concurrent. The scale is logarithmic where the runs span a decade.
    """
    columns(frame, "stack", _E)
    rows = _rows(frame, by, _E)
    log = spans_a_decade([value for _, part in rows for value in part[_E]])
    drawn = in_rows(
        [Row(label, (Dots(part, _E, _colour(part)),)) for label, part in rows],
        x_title="effective concurrency = n × delay / wall time",
        log=log,
        zero=not log,
        limits=[
            (1.0, "1: one at a time"),
            (CONCURRENT_FROM, f"from {CONCURRENT_FROM}: concurrent"),
        ],
    )
    groups = rows if len(rows) <= 5 or "verdict" not in frame else _rows(frame, "verdict", _E)
    finding = "; ".join(f"{label} {_range(part[_E])} ({_runs(part)})" for label, part in groups)
    return chart(
        name,
        drawn,
        title=title,
        finding=words.capital(finding) + "." + _gap(frame),
        reading=reading(frame, log),
        source=origin(frame),
    )


def cures(
    frame: pd.DataFrame,
    limit_s: float | None = None,
    title: str = "What each variant takes",
    scale: str = "",
    name: str = "",
) -> Chart:
    """The wall time of each variant at the largest n, fastest first, every run a dot.

    frame: runs (stack, n, wall_s, verdict, source, measured_at). limit_s: the delay, drawn as
    a line. scale: "linear" or "log"; by itself logarithmic where the runs span a decade.
    """
    columns(frame, "stack", "n", "wall_s")
    frame = frame[frame["n"] == frame["n"].max()]
    n = int(frame["n"].iloc[0])
    rows = sorted(_rows(frame, "stack", "wall_s"), key=lambda row: row[1]["wall_s"].median())
    log = scale == "log" or (not scale and spans_a_decade(frame["wall_s"]))
    drawn = in_rows(
        [Row(label, (_timed(part),)) for label, part in rows],
        x_title=f"wall time of n = {n} requests, s",
        log=log,
        zero=not log,
        limits=[(limit_s, f"one delay, {words.delay(limit_s)}")] if limit_s is not None else [],
        stems=True,
    )
    fast, slow = rows[0], rows[-1]
    medians = fast[1]["wall_s"].median(), slow[1]["wall_s"].median()
    finding = (
        f"At n = {n}, {fast[0]} is the fastest, {words.seconds(medians[0])}, and {slow[0]} the "
        f"slowest, {words.seconds(medians[1])}: {words.times(medians[1] / medians[0])} as long."
    )
    grouped = _by_verdict(rows)
    return chart(
        name,
        drawn,
        title=title,
        finding=finding + (f" {grouped}" if grouped else ""),
        reading=reading(frame, log),
        source=origin(frame),
    )


def _rows(frame: pd.DataFrame, by, value: str) -> list[tuple[str, pd.DataFrame]]:
    by = [by] if isinstance(by, str) else list(by)
    columns(frame, *by)
    frame = frame.assign(client=frame.get("client", "grequests"))
    keys = [*by, "client"] if "stack" in by else by
    rows = []
    for _, part in frame.dropna(subset=[value]).groupby(keys, sort=False):
        first = part.iloc[0]
        named = [
            words.stack_label(first["stack"], first["client"])
            if column == "stack"
            else str(first[column])
            for column in by
        ]
        recorded = "source" in part and (part["source"] == words.REFERENCE).all()
        rows.append((", ".join(named) + (", reference" if recorded else ""), part))
    return rows


def _timed(part: pd.DataFrame) -> Dots:
    end = f"{words.seconds(part['wall_s'].median())}{_verdict(part)}"
    return Dots(part, "wall_s", _colour(part), end)


def _colour(part: pd.DataFrame) -> str:
    return colour_name(part["stack"].iloc[0], part["client"].iloc[0])


def _range(values: pd.Series) -> str:
    low, high = words.number(values.min(), 2), words.number(values.max(), 2)
    return low if low == high else f"{low} to {high}"


def _runs(part: pd.DataFrame) -> str:
    return f"{len(part)} run{'s' if len(part) > 1 else ''}"


def _verdict(part: pd.DataFrame) -> str:
    if "verdict" not in part:
        return ""
    best = part.sort_values(_E).iloc[-1] if ("effective_concurrency" in part) else part.iloc[0]
    return f", {best['verdict']}"


def _by_verdict(rows: list[tuple[str, pd.DataFrame]]) -> str:
    found: dict[str, list[str]] = {}
    for label, part in rows:
        verdict = _verdict(part).removeprefix(", ")
        if verdict:
            found.setdefault(verdict, []).append(label)
    return " ".join(f"{words.capital(v)}: {'; '.join(labels)}." for v, labels in found.items())


def _gap(frame: pd.DataFrame) -> str:
    """Whether serial and concurrent runs lie apart, in words."""
    if "verdict" not in frame:
        return ""
    serial = frame[frame["verdict"] == "serial"]["effective_concurrency"]
    concurrent = frame[frame["verdict"] == "concurrent"]["effective_concurrency"]
    if serial.empty or concurrent.empty:
        return ""
    high, low = words.number(serial.max(), 2), words.number(concurrent.min(), 2)
    if serial.max() < concurrent.min():
        return f" No serial run is above {high} and no concurrent one below {low}."
    return f" The two overlap: a serial run reaches {high}, a concurrent one falls to {low}."
