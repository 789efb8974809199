"""The emblem of the book: n against wall time, a panel for each Python, a line for each stage."""

from collections.abc import Iterable, Sequence

import pandas as pd
from matplotlib.axes import Axes

from casebook import words
from casebook.cases.fetching.analysis import SERIAL, verdicts
from casebook.charts.captions import Caption
from casebook.charts.figure import TEXT, WIDTH, Chart, chart, drawing, place, write
from casebook.charts.lines import all_xs, draw, draw_law, set_axes
from casebook.charts.origins import origin
from casebook.charts.series import (
    Series,
    chart_data,
    columns,
    gather,
    reading,
    span,
    spans_a_decade,
)
from casebook.errors import UsageError

#: In points: the whole drawing, a heading above the panels, what stands below them.
_HEIGHT, _HEADING, _FOOT = 252, 32, 34
_LEFT, _RIGHT, _GAP = 24, 4, 14
#: From one label to the next, and from a panel's edge to the first one.
_LINE, _EDGE = 11.5, 4
#: One delay for all requests, and one for each of n.
_LAWS = (lambda _: 1.0, float)


def stages(
    frame: pd.DataFrame,
    published: pd.DataFrame | None = None,
    *,
    title: str = "The stages, Python by Python",
    name: str = "",
) -> Chart:
    """Draw a panel for each Python: the wall time of n requests in delays, one line per stage.

    frame: runs of stacks named <stage>-<py27|py37|today>; those over plain HTTP (scheme
    `http`) are the control, drawn in grey. published: rows of published.series(), drawn
    hollow in the panel of their Python. All panels share their axes. Stages are named at the
    upper left if they are serial, at the lower right if they are not. Raises UsageError
    for runs without a delay.
    """
    columns(frame, "stack", "n", "wall_s", "delay_s", "scheme", "verdict")
    if not (frame["delay_s"] > 0).all():
        raise UsageError("the stages are drawn in delays: leave out the runs without a delay")
    frames = [frame, frame[:0] if published is None else published]
    ours, theirs = map(_by_python, frames)
    panels = {
        python: _lines(ours, python) + _lines(theirs, python)
        for python in words.PYTHONS.values()
        if python in set(ours["on"])
    }
    all_series = [series for panel in panels.values() for series in panel]
    log = spans_a_decade(all_xs(all_series))
    delays = words.join(map(words.delay, sorted({*pd.concat(frames)["delay_s"]})))
    return chart(
        name,
        _drawing(panels, ours, log),
        Caption(
            title,
            finding=_finding(ours, theirs, list(panels)),
            reading=reading(
                "A line for each stage through the medians, a dot for each run",
                all_series,
                f"dotted: one delay ({delays}), and one delay for each request",
                "both axes logarithmic" * log,
            ),
            source=origin(frames),
        ),
        data=chart_data(pd.concat(frames), "stack", "scheme", "n", "delay_s", "wall_s", "verdict"),
    )


def stages_named(stacks: Iterable[str]) -> str:
    """Name stacks by stage: "+ pyOpenSSL (Python 2.7, Python 3.7) and + recv_into (today)"."""
    names = map(words.split_stack, stacks)
    pythons = words.grouped((words.stack_label(s), words.python_label(p)) for s, p in names)
    return words.join(f"{stage} ({', '.join(labels)})" for stage, labels in pythons.items())


def _by_python(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs in delays, with the stage of each (`stage`) and its Python (`on`)."""
    names = [words.split_stack(stack) for stack in frame["stack"]]
    return frame.assign(
        wall_s=frame["wall_s"] / frame["delay_s"],
        stage=[stage for stage, _ in names],
        on=[python for _, python in names],
    )


def _lines(frame: pd.DataFrame, python: str) -> list[Series]:
    rows = frame[frame["on"] == python].sort_values("stage", kind="stable")
    return gather(rows) if len(rows) else []


def _drawing(panels: dict[str, list[Series]], ours: pd.DataFrame, log: bool):
    panel_width = (WIDTH - _LEFT - _RIGHT - _GAP * (len(panels) - 1)) / len(panels)
    https = ours[ours["scheme"] == "https"]
    with drawing(WIDTH, _HEIGHT) as figure:
        figure.text(0, 1, "wall time, in delays", fontsize=TEXT, va="top")
        figure.text(0.5, 2 / _HEIGHT, "requests (n)", fontsize=TEXT, ha="center", va="bottom")
        for i, (python, panel) in enumerate(panels.items()):
            axes = figure.add_subplot()
            set_axes(axes, [line for lines in panels.values() for line in lines], _LAWS, log, log)
            left_edge = _LEFT + i * (panel_width + _GAP)
            place(axes, left_edge, _FOOT, WIDTH - left_edge - panel_width, _HEADING)
            axes.tick_params(labelleft=not i)
            heading = words.capital(words.python_label(python))
            write(axes, heading, (0, 1), (0, 3), fontweight="bold", va="bottom")
            by_stack = verdicts(https[https["on"] == python])
            _panel(axes, panel, {words.stack_label(s) for s in by_stack.index[by_stack == SERIAL]})
    return figure


def _panel(axes: Axes, panel: Sequence[Series], serial: set[str]) -> None:
    """Draw the lines of one Python; serial: the names of those that are."""
    for law in _LAWS:
        draw_law(axes, law, all_xs(panel), 1)
    ours = [series for series in panel if series.source != words.PUBLISHED]
    https = [series for series in ours if series.colour != "control"]
    serial_lines = [series for series in https if series.name in serial]
    for series in sorted(panel, key=lambda s: s.colour != "control"):
        # If lines lie on each other, the lower ones show at the edges.
        same_slope = [s for s in https if (s in serial_lines) == (series in serial_lines)]
        lines_above = len(same_slope) - 1 - same_slope.index(series) if series in https else 0
        draw(axes, series, 1.8 + 1.4 * lines_above)
    theirs = [s for s in panel if s not in ours and s.medians[-1] > s.xs[-1] / 2]
    up = {_line_label(s): s.colour for s in reversed(panel) if s in serial_lines or s in theirs}
    down = {_line_label(s): s.colour for s in reversed(panel) if s not in serial_lines + theirs}
    for i, (text, colour) in enumerate(reversed(up.items())):
        write(axes, text, (0, 1), (_EDGE, -_EDGE - i * _LINE), colour, va="top")
    lowest = max((s.medians[-1] for s in ours if s not in serial_lines), default=1)
    # The longest label is lowest: further up it would reach the rising lines.
    order = sorted(down.items(), key=lambda it: -len(it[0]))
    for i, (text, colour) in enumerate(order):
        shift, alignment = (-_EDGE, 5 + i * _LINE), {"ha": "right", "va": "bottom"}
        write(axes, text, (1, lowest), shift, colour, ("axes fraction", "data"), **alignment)


def _line_label(series: Series) -> str:
    if series.source == words.PUBLISHED:
        return words.PUBLISHED
    return "plain HTTP" if series.colour == "control" else series.name.split(",")[0]


def _finding(ours: pd.DataFrame, theirs: pd.DataFrame, pythons: Sequence[str]) -> str:
    """Name the stages by verdict, and what they take at the largest n that all of them have."""
    https = ours[ours["scheme"] == "https"]
    by_stack = verdicts(https)
    shared = set.intersection(*(set(part["n"]) for _, part in https.groupby("stack")))
    sentences = []
    for verdict in sorted(set(by_stack), reverse=True):  # serial first
        stacks = by_stack.index[by_stack == verdict]
        text = f"{words.capital(verdict)}: {stages_named(sorted(stacks, key=words.split_stack))}"
        if shared:
            at_n = https[https["stack"].isin(stacks) & (https["n"] == max(shared))]["wall_s"]
            text += f": {span(at_n)} delays at n = {max(shared)}"
        sentences.append(text)
    control = ours[ours["scheme"] == "http"]
    if len(control):
        n = control["n"].max()
        slowest = control[control["n"] == n]["wall_s"].max()
        sentences.append(
            f"Over plain HTTP the slowest takes {words.number(slowest)} delays at n = {n}"
        )
    for python in pythons:
        rows = theirs[theirs["on"] == python]
        if len(rows):
            last = rows.sort_values("n").iloc[-1]
            delays = f"{words.number(last['wall_s'])} delays at n = {last['n']}"
            sentences.append(f"Published for a laptop, {words.python_label(python)}: {delays}")
    return ". ".join(sentences) + "."
