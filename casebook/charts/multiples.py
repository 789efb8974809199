"""Small multiples: every stage on every Python, over HTTPS and over plain HTTP."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from casebook import words
from casebook.charts.figure import SMALL, TEXT, WIDTH, Chart, chart, drawing
from casebook.charts.lines import all_xs, draw, set_axes, spans_a_decade
from casebook.charts.origins import origin
from casebook.charts.series import Series, columns, gather
from casebook.colours import sentinel
from casebook.runs.analysis import verdict_of

#: One row of panels, in points.
_ROW = 98


def stages(
    frame: pd.DataFrame,
    title: str = "The stages, Python by Python",
    limit_s: float | None = None,
    name: str = "",
) -> Chart:
    """Small multiples: a row per stage, a column per Python, n against wall time in each.

    frame: runs of stacks named <stage>-<py27|py37|today>; those over plain HTTP (scheme
    `http`) are the control, drawn in grey. All panels share their axes.
    """
    columns(frame, "stack", "n", "wall_s", "scheme")
    split = [words.split_stack(stack) for stack in frame["stack"]]
    frame = frame.assign(stage=[what for what, _ in split], on=[python for _, python in split])
    rows = list(dict.fromkeys(sorted(frame["stage"])))
    pythons = [p for p in words.PYTHONS.values() if p in set(frame["on"])]
    lines = {
        (stage, python): gather(part)
        for (stage, python), part in frame.groupby(["stage", "on"], sort=False)
    }
    every = [series for panel in lines.values() for series in panel]
    log = spans_a_decade(all_xs(every))
    height = 18 + _ROW * len(rows) + 34
    with drawing(WIDTH, height) as figure:
        grid = figure.subplots(len(rows), len(pythons), squeeze=False)
        left, right, gap = 26, 4, 12
        wide = (WIDTH - left - right - gap * (len(pythons) - 1)) / len(pythons)
        for row, stage in enumerate(rows):
            for column, python in enumerate(pythons):
                axes = grid[row][column]
                panel = lines.get((stage, python), [])
                set_axes(axes, every, [], log, log, ticks=4)
                _panel(axes, panel, limit_s)
                x = left + column * (wide + gap)
                y = height - 18 - _ROW * (row + 1)
                axes.set_position([x / WIDTH, y / height, wide / WIDTH, (_ROW - 22) / height])
                if row < len(rows) - 1:
                    axes.tick_params(labelbottom=False)
                if column:
                    axes.tick_params(labelleft=False)
                label = words.stack_label(stage)
                verdict = _verdict(frame, stage, python)
                axes.annotate(
                    f"{label}: {verdict}" if verdict else label,
                    (0, 1),
                    (0, 3),
                    xycoords="axes fraction",
                    textcoords="offset points",
                    fontsize=SMALL,
                    fontweight="bold",
                )
        for column, python in enumerate(pythons):
            heading = "today" if python == "today" else f"Python {python}"
            x = (left + column * (wide + gap)) / WIDTH
            figure.text(x, 1, heading, fontsize=TEXT, va="top")
        figure.text(
            0.5,
            2 / height,
            "requests (n); wall time in seconds upwards",
            fontsize=TEXT,
            ha="center",
            va="bottom",
        )
    return chart(
        name,
        figure,
        title=title,
        finding=_finding(frame, rows, pythons),
        reading="Colour: over HTTPS; grey: the same over plain HTTP"
        + (f"; dotted: one delay, {words.delay(limit_s)}" if limit_s is not None else "")
        + (", both axes logarithmic." if log else "."),
        source=origin(frame),
    )


def _panel(axes: Axes, panel: Sequence[Series], limit_s: float | None) -> None:
    if limit_s is not None:
        axes.axhline(limit_s, color=sentinel("faint"), linewidth=1, linestyle=(0, (1, 2)))
    for series in sorted(panel, key=lambda s: s.colour != "control"):
        draw(axes, series)
    if not panel:
        axes.text(
            0.5,
            0.5,
            "not measured",
            transform=axes.transAxes,
            ha="center",
            va="center",
            fontsize=SMALL,
            color=sentinel("faint"),
        )


def _verdict(frame: pd.DataFrame, stage: str, python: str) -> str:
    rows = frame[(frame["stage"] == stage) & (frame["on"] == python) & (frame["scheme"] == "https")]
    if rows.empty or "verdict" not in rows:
        return ""
    return verdict_of(rows)


def _finding(frame: pd.DataFrame, rows: Sequence[str], pythons: Sequence[str]) -> str:
    found: dict[str, list[str]] = {}
    for stage in rows:
        for python in pythons:
            verdict = _verdict(frame, stage, python)
            if verdict:
                where = "today" if python == "today" else f"Python {python}"
                found.setdefault(verdict, []).append(f"{words.stack_label(stage)} ({where})")
    parts = [f"{words.capital(verdict)}: {words.join(where)}" for verdict, where in found.items()]
    control = frame[frame["scheme"] == "http"]
    if len(control):
        n = control["n"].max()
        worst = control[control["n"] == n]["wall_s"].max()
        https = frame[(frame["scheme"] == "https") & (frame["n"] == n)]["wall_s"]
        text = f"Over plain HTTP the slowest of all runs at n = {n} took {words.seconds(worst)}"
        if len(https):
            text += f", over HTTPS {words.seconds(https.max())}"
        parts.append(text)
    return ". ".join(parts) + "."
