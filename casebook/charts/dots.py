"""One horizontal scale, one row per stack: effective concurrency, and what cures cost."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from casebook import words
from casebook.analysis import CONCURRENT_FROM
from casebook.charts.figure import SMALL, TEXT, WIDTH, Chart, chart, drawing, place, width_of
from casebook.charts.series import columns
from casebook.colours import colour_name, sentinel

_ROW = 30
#: A row needs more room where so many runs lie together that they are fanned out.
_FANNED_ROW, _MANY = 44, 8
#: Multiples of it, modulo 1, fill an interval evenly.
_GOLDEN = 0.618034
_E = "effective_concurrency"
_FILL = {words.LIVE: "full", words.REFERENCE: "left", words.PUBLISHED: "none"}


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
    values = [value for _, part in rows for value in part[_E]]
    row_height = _FANNED_ROW if max(len(part) for _, part in rows) > _MANY else _ROW
    with drawing(WIDTH, 34 + row_height * len(rows) + 34) as figure:
        axes = figure.add_subplot()
        log = max(values) >= 10 * min(values)
        _scale(axes, [*values, 1, CONCURRENT_FROM], log, zero=not log)
        place(axes, 6, 34, 10, 34)
        _frame_rows(axes, len(rows))
        _threshold(axes, 1.0, "1: one at a time", 15)
        _threshold(axes, CONCURRENT_FROM, f"from {CONCURRENT_FROM}: concurrent", 3)
        for i, (label, part) in enumerate(rows):
            _label(axes, i, label)
            _dots(axes, i, part, _E)
        axes.set_xlabel("effective concurrency = n × delay / wall time", fontsize=TEXT)
    groups = rows if len(rows) <= 5 or "verdict" not in frame else _rows(frame, "verdict", _E)
    finding = "; ".join(f"{label} {_range(part[_E])} ({_runs(part)})" for label, part in groups)
    return chart(
        name,
        figure,
        title=title,
        finding=words.capital(finding) + "." + _gap(frame),
        reading=_reading(frame) + (" Logarithmic scale." if log else ""),
        source=words.provenance(frame),
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
    values = list(frame["wall_s"])
    log = scale == "log" or (not scale and max(values) >= 10 * min(values))
    with drawing(WIDTH, 22 + _ROW * len(rows) + 34) as figure:
        axes = figure.add_subplot()
        _scale(axes, values + ([limit_s] if limit_s else []), log, zero=not log)
        ends = [f"{words.seconds(part['wall_s'].median())}{_verdict(part)}" for _, part in rows]
        place(axes, 6, 34, 12 + max(width_of(figure, text) for text in ends), 22)
        _frame_rows(axes, len(rows))
        if limit_s is not None:
            _threshold(axes, limit_s, f"one delay, {words.delay(limit_s)}", 3)
        for i, ((label, part), end) in enumerate(zip(rows, ends, strict=True)):
            _label(axes, i, label)
            colour = sentinel(_colour(part))
            start = axes.get_xlim()[0]
            axes.plot([start, part["wall_s"].median()], [i, i], color=colour, linewidth=1.8)
            _dots(axes, i, part, "wall_s")
            axes.annotate(
                end,
                (1, i),
                (8, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
                fontsize=SMALL,
            )
        axes.set_xlabel(f"wall time of n = {n} requests, s", fontsize=TEXT)
    fast, slow = rows[0], rows[-1]
    medians = fast[1]["wall_s"].median(), slow[1]["wall_s"].median()
    finding = (
        f"At n = {n}, {fast[0]} is the fastest, {words.seconds(medians[0])}, and {slow[0]} the "
        f"slowest, {words.seconds(medians[1])}: {words.times(medians[1] / medians[0])} as long."
    )
    grouped = _by_verdict(rows)
    return chart(
        name,
        figure,
        title=title,
        finding=finding + (f" {grouped}" if grouped else ""),
        reading=_reading(frame) + (" Logarithmic scale." if log else ""),
        source=words.provenance(frame),
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


def _scale(axes: Axes, values: Sequence[float], log: bool, zero: bool) -> None:
    low, high = min(values), max(values)
    axes.grid(axis="x")
    if log:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.25, high * 1.25)
        steps = [m * 10.0**e for e in range(-3, 5) for m in (1, 2, 5)]
        axes.xaxis.set_major_locator(FixedLocator([s for s in steps if low / 1.25 <= s]))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        room = (high - low) * 0.06 or 0.5
        axes.set_xlim(0 if zero else max(0, low - room), high + room)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _frame_rows(axes: Axes, count: int) -> None:
    axes.set_ylim(count - 0.5, -0.72)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _label(axes: Axes, row: int, text: str) -> None:
    axes.annotate(
        text,
        (0, row),
        (0, 6),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="bottom",
        fontsize=SMALL,
        bbox={"facecolor": sentinel("ground"), "edgecolor": "none", "pad": 0.5},
    )


def _threshold(axes: Axes, at: float, text: str, up: float) -> None:
    axes.axvline(at, color=sentinel("faint"), linewidth=1.1, linestyle=(0, (1, 2)))
    axes.annotate(
        text,
        (at, 1),
        (-1, up),
        va="bottom",
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=SMALL,
        color=sentinel("faint"),
    )


def _colour(part: pd.DataFrame) -> str:
    return colour_name(part["stack"].iloc[0], part["client"].iloc[0])


def _dots(axes: Axes, row: int, part: pd.DataFrame, value: str) -> None:
    """Each run a dot; many are fanned out below the label, always in the same way."""
    many = len(part) > _MANY
    colour = sentinel(_colour(part))
    sources = part["source"] if "source" in part else pd.Series(words.LIVE, part.index)
    for source, rows in part.groupby(sources, sort=False):
        fan = [i * _GOLDEN % 1 * 0.42 - 0.08 if many else 0.0 for i in range(len(rows))]
        axes.plot(
            rows[value],
            [row + off for off in fan],
            linestyle="none",
            marker="o",
            color=colour,
            markersize=3.2 if many else 6,
            fillstyle=_FILL[source],
            markerfacecoloralt=sentinel("ground"),
            markeredgewidth=0.3 if many else 1.2,
            alpha=0.6 if many else 1,
        )


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


def _reading(frame: pd.DataFrame) -> str:
    recorded = "source" in frame and (frame["source"] == words.REFERENCE).any()
    return "Each dot is one run" + ("; half-filled: reference machine." if recorded else ".")
