"""The emblem of the book: n against wall time, a panel for each Python, a line for each stage."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from casebook import words
from casebook.charts.figure import SMALL, TEXT, WIDTH, Chart, chart, drawing
from casebook.charts.lines import all_xs, draw, set_axes, spans_a_decade
from casebook.charts.origins import origin
from casebook.charts.series import Series, columns, gather
from casebook.colours import sentinel
from casebook.errors import UsageError
from casebook.runs.analysis import SERIAL, verdict_of

#: In points: the whole drawing, a heading above the panels, what stands below them.
_HEIGHT, _HEADING, _FOOT = 252, 32, 34
_LEFT, _RIGHT, _GAP = 24, 4, 14
#: From one label to the next, and from a panel's edge to the first one.
_LINE, _EDGE = 12.5, 4
#: What published lines are called.
_PUBLISHED = "published"


def stages(
    frame: pd.DataFrame,
    published: pd.DataFrame | None = None,
    title: str = "The stages, Python by Python",
    name: str = "",
) -> Chart:
    """A panel for each Python: the wall time of n requests in delays, one line per stage.

    frame: runs of stacks named <stage>-<py27|py37|today>; those over plain HTTP (scheme
    `http`) are the control, drawn in grey. published: rows of published.series(), drawn
    hollow in the panel of their Python. All panels share their axes. Stages are named at the
    upper left where they are serial, at the lower right where they are not. Raises UsageError
    for runs without a delay.
    """
    columns(frame, "stack", "n", "wall_s", "delay_s", "scheme", "verdict")
    if not (frame["delay_s"] > 0).all():
        raise UsageError("the stages are drawn in delays: leave out the runs without a delay")
    ours = _by_python(frame)
    theirs = _by_python(published) if published is not None else ours.iloc[:0]
    pythons = [python for python in words.PYTHONS.values() if python in set(ours["on"])]
    panels = [_lines(ours, python) + _lines(theirs, python) for python in pythons]
    every = [series for panel in panels for series in panel]
    log = spans_a_decade(all_xs(every))
    guides = [lambda n: 1.0, float]
    with drawing(WIDTH, _HEIGHT) as figure:
        wide = (WIDTH - _LEFT - _RIGHT - _GAP * (len(pythons) - 1)) / len(pythons)
        high = _HEIGHT - _HEADING - _FOOT
        figure.text(0, 1, "wall time, in delays", fontsize=TEXT, va="top")
        figure.text(0.5, 2 / _HEIGHT, "requests (n)", fontsize=TEXT, ha="center", va="bottom")
        for i, (python, panel) in enumerate(zip(pythons, panels, strict=True)):
            axes = figure.add_subplot()
            set_axes(axes, every, guides, log, log)
            left = _LEFT + i * (wide + _GAP)
            axes.set_position((left / WIDTH, _FOOT / _HEIGHT, wide / WIDTH, high / _HEIGHT))
            if i:
                axes.tick_params(labelleft=False)
            heading = words.capital(_python_label(python))
            _write(axes, (0, 1), (0, 3), heading, "ink", fontweight="bold", va="bottom")
            _panel(axes, panel, _verdicts(ours, python), guides)
    return chart(
        name,
        figure,
        title=title,
        finding=_finding(ours, theirs, pythons),
        reading="A line for each stage through the medians, a dot for each run"
        + "; half-filled: the reference machine" * _has(every, words.REFERENCE)
        + "; hollow dots and dashes: published" * _has(every, words.PUBLISHED)
        + "; grey: plain HTTP" * any(series.colour == "control" for series in every)
        + f"; dotted: one delay ({_delays([frame, published])}), and one delay for each request"
        + ("; both axes logarithmic." if log else "."),
        source=origin([frame] if published is None else [frame, published]),
    )


def _by_python(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs in delays, with what each is (`stage`) and its Python (`on`)."""
    split = [words.split_stack(stack) for stack in frame["stack"]]
    return frame.assign(
        wall_s=frame["wall_s"] / frame["delay_s"],
        stage=[what for what, _ in split],
        on=[python for _, python in split],
    )


def _lines(frame: pd.DataFrame, python: str) -> list[Series]:
    rows = frame[frame["on"] == python].sort_values("stage", kind="stable")
    return gather(rows) if len(rows) else []


def _verdicts(frame: pd.DataFrame, python: str) -> dict[str, str]:
    """The verdict of each stage over HTTPS, by the name of its line."""
    rows = frame[(frame["on"] == python) & (frame["scheme"] == "https")]
    return {
        words.stack_label(stack): verdict_of(part)
        for stack, part in rows.groupby("stack", sort=False)
    }


def _panel(axes: Axes, panel: Sequence[Series], verdicts: dict[str, str], guides: Sequence) -> None:
    low, high = min(all_xs(panel)), max(all_xs(panel))
    for law in guides:
        xs = [low + (high - low) * i / 60 for i in range(61)]
        faint = sentinel("faint")
        axes.plot(xs, [law(x) for x in xs], color=faint, linewidth=1, linestyle=(0, (1, 2)))
    ours = [series for series in panel if series.source != words.PUBLISHED]
    https = [series for series in ours if series.colour != "control"]
    rising = [series for series in https if verdicts.get(series.name) == SERIAL]
    for series in sorted(panel, key=lambda s: s.colour != "control"):
        before = len(axes.lines)
        draw(axes, series)
        if series in https:  # where lines lie on each other, the lower ones show at the edges
            bundle = [s for s in https if (s in rising) == (series in rising)]
            over = len(bundle) - 1 - bundle.index(series)
            axes.lines[before].set_linewidth(1.8 + 1.4 * over)
    up: dict[str, str] = {}
    down: dict[str, str] = {}
    for series in reversed(panel):
        slow = series in rising or (series not in ours and series.medians[-1] > series.xs[-1] / 2)
        (up if slow else down)[_line_label(series)] = series.colour
    for i, (text, colour) in enumerate(reversed(up.items())):
        _write(axes, (0, 1), (_EDGE, -_EDGE - i * _LINE), text, colour, va="top")
    lowest = max((s.medians[-1] for s in panel if s in ours and s not in rising), default=1)
    order = sorted(down.items(), key=lambda label: (label[0] == _PUBLISHED, label[1] == "control"))
    for i, (text, colour) in enumerate(order):
        at, shift = (1, _height_of(axes, lowest)), (-_EDGE, 8 + i * _LINE)
        _write(axes, at, shift, text, colour, ha="right", va="bottom")


def _height_of(axes: Axes, value: float) -> float:
    """Where a value of the upright axis lies, as a share of the panel's height."""
    return axes.transAxes.inverted().transform(axes.transData.transform((1, value)))[1]


def _line_label(series: Series) -> str:
    if series.source == words.PUBLISHED:
        return _PUBLISHED
    if series.colour == "control":
        return "plain HTTP"
    return series.name.split(",")[0]


def _write(axes: Axes, at, shift, text: str, colour: str, **how) -> None:
    axes.annotate(
        text,
        at,
        shift,
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=SMALL,
        color=sentinel(colour),
        **how,
    )


def _python_label(python: str) -> str:
    return python if python == "today" else f"Python {python}"


def _has(lines: Sequence[Series], source: str) -> bool:
    return any(series.source == source for series in lines)


def _delays(frames: Sequence[pd.DataFrame | None]) -> str:
    known = sorted({float(d) for f in frames if f is not None for d in f["delay_s"]})
    return words.join(map(words.delay, known))


def _finding(ours: pd.DataFrame, theirs: pd.DataFrame, pythons: Sequence[str]) -> str:
    """The stages by verdict, and what they take at the largest n that all of them have."""
    https = ours[ours["scheme"] == "https"]
    verdicts = {stack: verdict_of(part) for stack, part in https.groupby("stack", sort=False)}
    shared = set.intersection(*(set(part["n"]) for _, part in https.groupby("stack")))
    said = []
    for verdict in sorted(set(verdicts.values()), reverse=True):  # what is serial first
        stacks = [stack for stack, its in verdicts.items() if its == verdict]
        pythons_of: dict[str, list[str]] = {}
        for stage, python in sorted(map(words.split_stack, stacks)):
            pythons_of.setdefault(words.stack_label(stage), []).append(_python_label(python))
        where = [f"{stage} ({', '.join(those)})" for stage, those in pythons_of.items()]
        text = f"{words.capital(verdict)}: {words.join(where)}"
        if shared:
            at_n = https[https["stack"].isin(stacks) & (https["n"] == max(shared))]["wall_s"]
            text += f": {_range(at_n)} at n = {max(shared)}"
        said.append(text)
    control = ours[ours["scheme"] == "http"]
    if len(control):
        n = control["n"].max()
        slowest = control[control["n"] == n]["wall_s"].max()
        said.append(f"Over plain HTTP the slowest takes {words.number(slowest)} delays at n = {n}")
    for python in pythons:
        rows = theirs[theirs["on"] == python]
        if len(rows):
            last = rows.sort_values("n").iloc[-1]
            delays = f"{words.number(last['wall_s'])} delays at n = {last['n']}"
            said.append(f"Published for a laptop, {_python_label(python)}: {delays}")
    return ". ".join(said) + "."


def _range(delays: pd.Series) -> str:
    low, high = words.number(delays.min(), 2), words.number(delays.max(), 2)
    return f"{low} delays" if low == high else f"{low} to {high} delays"
