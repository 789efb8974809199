"""Lines of wall time against the number of requests: their axes and their marks."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from casebook import words
from casebook.charts.labels import EndLabel
from casebook.charts.series import Series
from casebook.colours import sentinel

_MARKERS = {
    words.LIVE: {"fillstyle": "full", "linestyle": "-"},
    words.REFERENCE: {"fillstyle": "left", "linestyle": "-"},
    words.PUBLISHED: {"fillstyle": "none", "linestyle": (0, (4, 2.5))},
}


def set_axes(
    axes: Axes, lines: Sequence[Series], laws: Sequence, log: bool, ticks: int = 6
) -> None:
    ns = sorted({n for series in lines for n in series.ns})
    walls = [wall for series in lines for wall in (*series.lows, *series.highs)]
    walls += [law(n) for law in laws for n in ns]
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
        low, high = min(walls) / 1.3, max(walls) * 1.3
        axes.set_ylim(low, high)
        steps = [m * 10.0**e for e in range(-3, 5) for m in (1, 2, 5)]
        shown = [step for step in steps if low <= step <= high]
        if len(shown) > ticks:
            shown = [step for step in shown if f"{step:e}"[0] == "1"]
        axes.yaxis.set_major_locator(FixedLocator(shown))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xlim(ns[0] / 1.15, ns[-1] * 1.15)
    else:
        room = (ns[-1] - ns[0]) * 0.06 or 0.5
        axes.set_xlim(ns[0] - room, ns[-1] + room)
        axes.set_ylim(0, max(walls) * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_major_locator(FixedLocator(ns))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def draw(axes: Axes, series: Series) -> EndLabel:
    """Draw one series: band, line through the medians, every run a dot; returns its label."""
    colour, marks = sentinel(series.colour), _MARKERS[series.source]
    if series.lows != series.highs:
        axes.fill_between(series.ns, series.lows, series.highs, color=colour, alpha=0.22, lw=0)
    axes.plot(series.ns, series.medians, color=colour, linewidth=1.8, linestyle=marks["linestyle"])
    axes.plot(
        *zip(*series.dots, strict=True),
        color=colour,
        linestyle="none",
        marker="o",
        markersize=5,
        fillstyle=marks["fillstyle"],
        markerfacecoloralt=sentinel("ground"),
        markeredgewidth=1.2,
    )
    return EndLabel(series.label, series.ns[-1], series.medians[-1], colour)


def draw_guide(axes: Axes, text: str, law: Callable, lines: Sequence[Series]) -> EndLabel:
    """Draw a dotted guide, seconds as a function of n, along all lines; returns its label."""
    first, last = min(s.ns[0] for s in lines), max(s.ns[-1] for s in lines)
    ns = [first + (last - first) * i / 60 for i in range(61)]
    colour = sentinel("faint")
    axes.plot(ns, [law(n) for n in ns], color=colour, linewidth=1.1, linestyle=(0, (1, 2)))
    return EndLabel(text, last, law(last), colour)


def spans_a_decade(lines: Sequence[Series]) -> bool:
    """Whether the largest n is at least ten times the smallest."""
    ns = [n for series in lines for n in series.ns]
    return max(ns) >= 10 * min(ns)
