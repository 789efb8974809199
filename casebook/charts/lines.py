"""Line charts: their axes, their marks, and one panel of lines with labels at their ends."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from casebook import words
from casebook.charts import labels as end_labels
from casebook.charts.figure import SMALL, TEXT, WIDTH, drawing, place, tick_room, width_of
from casebook.charts.labels import EndLabel
from casebook.charts.series import Series
from casebook.colours import sentinel
from casebook.errors import UsageError

_MARKERS: dict[str, dict] = {
    words.LIVE: {"fillstyle": "full", "linestyle": "-"},
    words.REFERENCE: {"fillstyle": "left", "linestyle": "-"},
    words.PUBLISHED: {"fillstyle": "none", "linestyle": (0, (4, 2.5))},
}

_DOTTED = (0, (1, 2))


def panel(
    lines: Sequence[Series],
    guides: Mapping[str, Callable] | None = None,
    *,
    x_title: str,
    y_title: str,
    log_x: bool,
    log_y: bool,
    width: float = WIDTH,
) -> Figure:
    """One drawing: lines, guides (label -> y as a function of x), and a label at each end."""
    guides = dict(guides or {})
    named = labelled(lines)
    height = 262 + 12 * max(0, len({label for label in named if label}) - 5)
    with drawing(width, height) as figure:
        axes = figure.add_subplot()
        set_axes(axes, lines, list(guides.values()), log_x, log_y)
        figure.text(2 / width, 1, y_title, fontsize=TEXT, va="top")
        axes.set_xlabel(x_title, fontsize=TEXT)
        ends = [draw_guide(axes, text, law, lines) for text, law in guides.items()]
        for series, label in zip(lines, named, strict=True):
            end = draw(axes, series)
            if label:
                ends.append(replace(end, text=label))
        for before, after in _continued(lines):
            xs, ys = (before.xs[-1], after.xs[0]), (before.medians[-1], after.medians[0])
            axes.plot(xs, ys, color=sentinel(after.colour), linewidth=1.2, linestyle=_DOTTED)
        border = further_on(lines)
        margin = end_labels.room(figure, ends)
        place(axes, tick_room(axes), 36, margin, 40 if border else 24)
        _thin_ticks(axes)
        if border:
            _draw_border(axes, *border, log_x)
        end_labels.draw(axes, ends)
    return figure


def reading(
    lines: Sequence[Series], log_x: bool, log_y: bool, ends: str = "fastest to slowest"
) -> str:
    """How the marks of these lines are read, without a full stop. ends: of the bands."""
    text = f"Each run a dot, the line through the medians, the band from {ends}"
    sources = {series.source for series in lines}
    text += "; half-filled dots: the reference machine" * (words.REFERENCE in sources)
    text += "; dotted: from one machine to the other" * bool(list(_continued(lines)))
    text += "; hollow dots and dashes: published" * (words.PUBLISHED in sources)
    text += "; grey: plain HTTP" * any(series.colour == "control" for series in lines)
    if log_x or log_y:
        axes = "both axes" if log_x and log_y else ("upright axis" if log_y else "level axis")
        text += f"; {axes} logarithmic"
    return text


def further_on(lines: Sequence[Series]) -> tuple[float, float] | None:
    """The last x that was measured here and the first that was not, where the reference
    machine goes on with lines that stop here; None where there are none, or they overlap."""
    pairs = list(_continued(lines))
    live = [x for s in lines if s.source == words.LIVE for x in s.xs]
    recorded = [x for _, after in pairs for x in after.xs]
    return (max(live), min(recorded)) if pairs and max(live) < min(recorded) else None


def _continued(lines: Sequence[Series]) -> Iterator[tuple[Series, Series]]:
    """Each live line with the recorded one that goes on from its end."""
    for one in lines:
        for other in lines:
            same = one.name == other.name and one.source == words.LIVE
            if same and other.source == words.REFERENCE and one.xs[-1] < other.xs[0]:
                yield one, other


def labelled(lines: Sequence[Series]) -> list[str]:
    """What to write at the end of each line; "" for one that another goes on from."""
    border = further_on(lines)
    written = {id(line): line.label for line in lines}
    for before, after in _continued(lines):
        written[id(before)] = ""
        since = "" if border else f", reference from {words.tick(after.xs[0])}"
        written[id(after)] = after.name + since
    return [written[id(line)] for line in lines]


def set_axes(
    axes: Axes,
    lines: Sequence[Series],
    laws: Sequence[Callable],
    log_x: bool,
    log_y: bool,
    ticks: int = 6,
) -> None:
    xs = sorted({x for series in lines for x in series.xs})
    ys = [y for series in lines for y in (*series.lows, *series.highs)]
    ys += [law(x) for law in laws for x in xs]
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    if log_x:
        axes.set_xscale("log")
        axes.set_xlim(xs[0] / 1.15, xs[-1] * 1.15)
    else:
        room = (xs[-1] - xs[0]) * 0.06 or 0.5
        axes.set_xlim(xs[0] - room, xs[-1] + room)
    if log_y:
        axes.set_yscale("log")
        low, high = min(ys) / 1.3, max(ys) * 1.3
        axes.set_ylim(low, high)
        axes.yaxis.set_major_locator(FixedLocator(_steps(low, high, ticks)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, max(ys) * 1.08 or 1)
        axes.yaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words.tick(value)))
    axes.xaxis.set_major_locator(FixedLocator(xs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words.tick(value)))


def _steps(low: float, high: float, ticks: int) -> list[float]:
    """The labels of a logarithmic axis: 1, 2, 5, 10 ..., powers of ten alone where many."""
    steps = [m * 10.0**e for e in range(-4, 7) for m in (1, 2, 5)]
    shown = [step for step in steps if low <= step <= high]
    if len(shown) > ticks:
        shown = [step for step in shown if f"{step:e}"[0] == "1"]
    if len(shown) < 2:
        finer = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
        shown = [step for step in finer if low <= step <= high]
    return shown


def _thin_ticks(axes: Axes) -> None:
    """Leave out labels of the x axis that would touch the next one; the last one stays."""
    kept: list[float] = []
    edge = float("inf")
    for tick in reversed(axes.get_xticks()):
        half = width_of(axes.figure, words.tick(tick)) / 2
        centre = axes.transData.transform((tick, axes.get_ylim()[0]))[0]
        if centre + half + 4 <= edge:
            kept.append(tick)
            edge = centre - half
    axes.xaxis.set_major_locator(FixedLocator(sorted(kept)))


def draw(axes: Axes, series: Series) -> EndLabel:
    """Draw one series: band, line through the medians, every run a dot; returns its label."""
    colour, marks = sentinel(series.colour), _MARKERS[series.source]
    if series.lows != series.highs:
        axes.fill_between(series.xs, series.lows, series.highs, color=colour, alpha=0.22, lw=0)
    axes.plot(series.xs, series.medians, color=colour, linewidth=1.8, linestyle=marks["linestyle"])
    axes.plot(
        *zip(*series.dots, strict=True),
        color=colour,
        linestyle="none",
        marker="o",
        markersize=8 if series.source == words.PUBLISHED else 5,  # a ring around ours
        fillstyle=marks["fillstyle"],
        markerfacecoloralt=sentinel("ground"),
        markeredgewidth=1.2,
    )
    return EndLabel(series.label, series.xs[-1], series.medians[-1], colour)


def draw_guide(axes: Axes, text: str, law: Callable, lines: Sequence[Series]) -> EndLabel:
    """Draw a dotted guide, y as a function of x, along all lines; returns its label."""
    first, last = min(s.xs[0] for s in lines), max(s.xs[-1] for s in lines)
    xs = [first + (last - first) * i / 60 for i in range(61)]
    colour = sentinel("faint")
    axes.plot(xs, [law(x) for x in xs], color=colour, linewidth=1.1, linestyle=_DOTTED)
    return EndLabel(text, last, law(last), colour)


def _draw_border(axes: Axes, here: float, there: float, log: bool) -> None:
    """A dotted upright between what was measured here and what the reference machine did."""
    at = (here * there) ** 0.5 if log else (here + there) / 2
    faint = sentinel("faint")
    axes.axvline(at, color=faint, linewidth=0.9, linestyle=_DOTTED)
    for text, side, shift in (("here", "right", -4), ("reference", "left", 4)):
        axes.annotate(
            text,
            (at, 1),
            (shift, 4),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha=side,
            fontsize=SMALL,
            color=faint,
        )


def spans_a_decade(values: Sequence[float]) -> bool:
    """Whether all are positive, and the largest is at least ten times the smallest."""
    return min(values) > 0 and max(values) >= 10 * min(values)


def refuse_log(asked: bool | None, values: Sequence[float], what: str) -> None:
    """Raise UsageError when a logarithmic scale is asked for and something is not above 0."""
    if asked and min(values) <= 0:
        raise UsageError(
            f"{what} has a {words.number(min(values))}, which a logarithmic scale cannot show: "
            "leave the scale to the chart, or those rows out"
        )


def all_xs(lines: Sequence[Series]) -> list[float]:
    """Every x of some lines."""
    return [x for series in lines for x in series.xs]
