"""Line charts: their axes, their marks, and one panel of lines with labels at their ends."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import IdentityTransform

from casebook import words
from casebook.charts import figure as page
from casebook.charts.figure import DOTTED
from casebook.charts.series import Series
from casebook.colours import sentinel

#: A level, or y as a function of x; drawn as a dotted line.
Limit = float | Callable[[float], float]

_DASHED = (0, (4, 2.5))
#: From the axes to a label, in points (room for the leader line), and its characters per line.
_GAP, _WRAP = 16, 17


@dataclass(frozen=True)
class _EndLabel:
    """A label for a line that ends at (x, y) in the data's units."""

    text: str
    x: float
    y: float
    colour: str


def panel(  # noqa: PLR0913 - what is drawn, and each keyword about how
    lines: Sequence[Series],
    limits: Mapping[str, Limit],
    *,
    titles: tuple[str, str],
    logs: tuple[bool, bool],
    width: float = page.WIDTH,
    heading: str = "",
    scaled_for: Sequence[Series] = (),
    widths: Mapping[Series, float] | None = None,
) -> Figure:
    """Draw one panel: lines, limits with their labels, and a label at each end.

    titles, logs: of the horizontal and the vertical axis, and whether they are logarithmic.
    heading: above it. scaled_for: the lines of all panels that share their scales. widths: of
    lines that show at the edges of others.
    """
    curves = {text: _curve(limit) for text, limit in limits.items()}
    pairs = continued(lines)
    border = _border(lines, pairs)
    labelled = _labelled(lines, pairs, bool(border))
    head = 16 if heading else 0
    height = 262 + head + 13 * max(0, len(set(labelled.values())) - 5)
    xs = all_xs(lines)
    labels = [_EndLabel(text, max(xs), curve(max(xs)), "faint") for text, curve in curves.items()]
    labels += _without_doubles(
        [_EndLabel(text, s.xs[-1], s.medians[-1], s.colour) for s, text in labelled.items()]
    )
    with page.drawing(width, height) as figure:
        axes = figure.add_subplot()
        set_axes(axes, scaled_for or lines, list(curves.values()), *logs)
        figure.text(0, 1, heading, fontsize=page.TEXT, fontweight="bold", va="top")
        figure.text(0, 1 - head / height, titles[1], fontsize=page.TEXT, va="top")
        axes.set_xlabel(titles[0], fontsize=page.TEXT)
        for curve in curves.values():
            draw_curve(axes, curve, xs)
        for series in lines:
            draw(axes, series, (widths or {}).get(series, 1.8))
        for live, recorded in pairs:
            x, y = (live.xs[-1], recorded.xs[0]), (live.medians[-1], recorded.medians[0])
            axes.plot(x, y, color=sentinel(recorded.colour), linewidth=1.2, linestyle=DOTTED)
        numbers = (label.get_window_extent().width for label in axes.get_yticklabels())
        top = head + (40 if border else 24)
        page.place(axes, 6 + max(numbers, default=0), 36, _room(figure, labels), top)
        _thin_ticks(axes)
        if border:
            _draw_border(axes, *border, logs[0])
        _draw_labels(axes, labels)
    return figure


def continued(lines: Sequence[Series]) -> list[tuple[Series, Series]]:
    """Return each live line together with the recorded one that continues from its end."""
    live = {line.name: line for line in lines if line.source == words.LIVE}
    recorded = [line for line in lines if line.source == words.REFERENCE and line.name in live]
    return [(live[line.name], line) for line in recorded if live[line.name].xs[-1] < line.xs[0]]


def _border(
    lines: Sequence[Series], pairs: Sequence[tuple[Series, Series]]
) -> tuple[float, float] | None:
    """Return the last x that was measured here and the first that was not.

    None if the reference machine continues no line that stops here, or overlaps it.
    """
    last_live = max(all_xs([line for line in lines if line.source == words.LIVE]), default=0)
    first_recorded = min(all_xs([recorded for _, recorded in pairs]), default=last_live)
    return (last_live, first_recorded) if last_live < first_recorded else None


def _labelled(
    lines: Sequence[Series], pairs: Sequence[tuple[Series, Series]], has_border: bool
) -> dict[Series, str]:
    """Return what to write at the end of each line, except where another continues it."""
    labels = {line: line.label for line in lines}
    for live, recorded in pairs:
        del labels[live]
        note = "" if has_border else f", reference from {words.tick(recorded.xs[0])}"
        labels[recorded] = recorded.name + note
    return labels


def _without_doubles(labels: Sequence[_EndLabel]) -> list[_EndLabel]:
    """Return the labels, of several lines with one name and colour only the uppermost."""
    labels_by_text = {}
    for label in sorted(labels, key=lambda label: label.y):
        labels_by_text[label.text, label.colour] = label
    return list(labels_by_text.values())


def set_axes(
    axes: Axes, lines: Sequence[Series], curves: Sequence[Callable], log_x: bool, log_y: bool
) -> None:
    """Set scales and ticks for some lines, and for curves, y as a function of x, along them."""
    xs = sorted(set(all_xs(lines)))
    ys = [y for series in lines for _, y in series.dots] + [
        curve(x) for curve in curves for x in xs
    ]
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    if log_x:
        axes.set_xscale("log")
        axes.set_xlim(xs[0] / 1.15, xs[-1] * 1.15)
    else:
        room = (xs[-1] - xs[0]) * 0.06 or 0.5
        axes.set_xlim(xs[0] - room, xs[-1] + room)
    if log_y:
        low, high = min(ys) / 1.3, max(ys) * 1.3
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        page.set_ticks(axes.yaxis, page.decades(low, high, 6))
    else:
        axes.set_ylim(0, max(ys) * 1.08 or 1)
        page.set_ticks(axes.yaxis, 6)
    page.set_ticks(axes.xaxis, xs)


def _thin_ticks(axes: Axes) -> None:
    """Leave out labels of the x axis that would touch the next one; the ends stay."""
    first, *rest = axes.get_xticks()
    halves = {tick: page.width_of(axes.figure, words.tick(tick)) / 2 for tick in (first, *rest)}
    centre = {tick: axes.transData.transform((tick, axes.get_ylim()[0]))[0] for tick in halves}
    ticks, edge = [first], float("inf")
    for tick in reversed(rest):
        is_last = len(ticks) == 1
        free = centre[tick] - halves[tick] - 4 > centre[first] + halves[first]
        if is_last or (free and centre[tick] + halves[tick] + 4 <= edge):
            ticks.append(tick)
            edge = centre[tick] - halves[tick]
    page.set_ticks(axes.xaxis, sorted(ticks))


def draw(axes: Axes, series: Series, width: float = 1.8) -> None:
    """Draw one series: band, line through the medians, every run a dot."""
    colour, published = sentinel(series.colour), series.source == words.PUBLISHED
    lows, highs = zip(*((point.low, point.high) for point in series.points.values()), strict=True)
    if lows != highs:
        axes.fill_between(series.xs, lows, highs, color=colour, alpha=0.22, lw=0)
    style = _DASHED if published else "-"
    axes.plot(series.xs, series.medians, color=colour, linewidth=width, linestyle=style)
    xs, ys = zip(*series.dots, strict=True)
    size = 8 if published else 5  # a ring around ours
    mark = {"marker": "o", "markersize": size, "markeredgewidth": 1.2, "source": series.source}
    page.marks(axes, xs, ys, series.colour, **mark)


def _curve(limit: Limit) -> Callable[[float], float]:
    return limit if callable(limit) else lambda _: limit


def draw_curve(axes: Axes, curve: Callable, xs: Sequence[float], width: float = 1.1) -> None:
    """Draw y as a function of x, dotted, as far as some xs go."""
    xs_fine = np.linspace(min(xs), max(xs), 61)
    ys = [curve(x) for x in xs_fine]
    axes.plot(xs_fine, ys, color=sentinel("faint"), linewidth=width, linestyle=DOTTED)


def _draw_border(axes: Axes, last_live: float, first_recorded: float, log: bool) -> None:
    """Draw a dotted vertical between what was measured here and on the reference machine."""
    middle = (last_live * first_recorded) ** 0.5 if log else (last_live + first_recorded) / 2
    axes.axvline(middle, color=sentinel("faint"), linewidth=0.9, linestyle=DOTTED)
    for text, side, shift in (("here", "right", -4), ("reference", "left", 4)):
        page.write(axes, text, (middle, 1), (shift, 4), "faint", ("data", "axes fraction"), ha=side)


def all_xs(lines: Sequence[Series]) -> list[float]:
    """Return every x of some lines."""
    return [x for series in lines for x in series.xs]


def _room(figure: Figure, labels: Sequence[_EndLabel]) -> float:
    """Return how wide the margin must be to hold these labels, in points."""
    widths = [page.width_of(figure, page.wrapped(label.text, _WRAP)) for label in labels]
    return _GAP + max(widths, default=0) + 2


def _draw_labels(axes: Axes, labels: Sequence[_EndLabel]) -> None:
    """Write the labels right of the axes, each joined to the end of its line.

    The axes must have their final position and limits.
    """
    figure, pixels = axes.figure, IdentityTransform()
    right = axes.get_window_extent().x1
    style: dict = {"fontsize": page.SMALL, "va": "center", "linespacing": 1.15, "transform": pixels}
    texts = [
        figure.text(right + _GAP, 0, page.wrapped(label.text, _WRAP), **style) for label in labels
    ]
    tips = [axes.transData.transform((label.x, label.y)) for label in labels]
    heights = [text.get_window_extent().height + 2 for text in texts]
    levels = separate([y for _, y in tips], heights, 0, page.size_of(axes)[1])
    for label, text, (x, y), to in zip(labels, texts, tips, levels, strict=True):
        text.set(y=to, color=sentinel(label.colour))
        xs, ys = [x + 4, right + 4, right + _GAP - 3], [y, y, to]
        leader = Line2D(xs, ys, color=text.get_color(), linewidth=0.8, alpha=0.8, transform=pixels)
        figure.add_artist(leader)


def separate(
    centres: Sequence[float], heights: Sequence[float], low: float, high: float
) -> list[float]:
    """Move centres as little as needed so that boxes of these heights do not overlap.

    All stay between low and high if they fit there at all, and keep their order. The lower edge of
    each box, less the heights of the boxes below it, must not be under that of the box before. The
    edges that come closest to the wished ones are their isotonic regression, here by its min-max
    formula (scipy.optimize has it, but takes half a second per chapter to import).
    """
    order = np.argsort(centres, kind="stable")
    sizes = np.asarray(heights, dtype=float)[order]
    below = np.cumsum(sizes) - sizes
    wished = np.asarray(centres, dtype=float)[order] - sizes / 2 - below
    count = len(order)
    fitted = [
        max(min(wished[i:j].mean() for j in range(k + 1, count + 1)) for i in range(k + 1))
        for k in range(count)
    ]
    edges = np.maximum(low, np.minimum(fitted, high - sizes.sum())) + below
    result = np.empty(count)
    result[order] = edges + sizes / 2
    return result.tolist()
