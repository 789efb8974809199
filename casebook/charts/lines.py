"""Line charts: their axes, their marks, and one panel of lines with labels at their ends."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from casebook import words
from casebook.charts import figure as page
from casebook.charts import labels as end_labels
from casebook.charts.figure import DOTTED
from casebook.charts.labels import EndLabel
from casebook.charts.series import Series
from casebook.colours import sentinel

#: A level, or y as a function of x; drawn as a dotted line.
Limit = float | Callable[[float], float]

_DASHED = (0, (4, 2.5))


def panel(
    lines: Sequence[Series],
    limits: Mapping[str, Limit],
    *,
    titles: tuple[str, str],
    logs: tuple[bool, bool],
    width: float = page.WIDTH,
) -> Figure:
    """One drawing: lines, limits by their labels, and a label at each end.

    titles, logs: of the level and the upright axis, and whether they are logarithmic.
    """
    laws = {text: _law(limit) for text, limit in limits.items()}
    named = _labelled(lines)
    height = 262 + 12 * max(0, len({label for label in named if label}) - 5)
    with page.drawing(width, height) as figure:
        axes = figure.add_subplot()
        set_axes(axes, lines, list(laws.values()), *logs)
        figure.text(2 / width, 1, titles[1], fontsize=page.TEXT, va="top")
        axes.set_xlabel(titles[0], fontsize=page.TEXT)
        xs, ends = all_xs(lines), []
        for text, law in laws.items():
            draw_law(axes, law, xs)
            ends.append(EndLabel(text, max(xs), law(max(xs)), "faint"))
        for series, label in zip(lines, named, strict=True):
            draw(axes, series)
            if label:
                ends.append(EndLabel(label, series.xs[-1], series.medians[-1], series.colour))
        for before, after in _continued(lines):
            x, y = (before.xs[-1], after.xs[0]), (before.medians[-1], after.medians[0])
            axes.plot(x, y, color=sentinel(after.colour), linewidth=1.2, linestyle=DOTTED)
        border = _further_on(lines)
        numbers = (label.get_window_extent().width for label in axes.get_yticklabels())
        left, right = 6 + max(numbers, default=0), end_labels.room(figure, ends)
        page.place(axes, left, 36, right, 40 if border else 24)
        _thin_ticks(axes)
        if border:
            _draw_border(axes, *border, logs[0])
        end_labels.draw(axes, ends)
    return figure


def reading(
    lines: Sequence[Series], logs: tuple[bool, bool], ends: str = "fastest to slowest"
) -> str:
    """How the marks of these lines are read, without a full stop. ends: of the bands."""
    text = f"Each run a dot, the line through the medians, the band from {ends}"
    sources = {series.source for series in lines}
    text += "; half-filled dots: the reference machine" * (words.REFERENCE in sources)
    text += "; dotted: from one machine to the other" * bool(list(_continued(lines)))
    text += "; hollow dots and dashes: published" * (words.PUBLISHED in sources)
    text += "; grey: plain HTTP" * any(series.colour == "control" for series in lines)
    if any(logs):
        axes = "both axes" if all(logs) else ("upright axis" if logs[1] else "level axis")
        text += f"; {axes} logarithmic"
    return text


def _further_on(lines: Sequence[Series]) -> tuple[float, float] | None:
    """The last x that was measured here and the first that was not, where the reference
    machine goes on with lines that stop here; None where there are none, or they overlap."""
    live = [x for s in lines if s.source == words.LIVE for x in s.xs]
    recorded = [x for _, after in _continued(lines) for x in after.xs]
    return (max(live), min(recorded)) if recorded and max(live) < min(recorded) else None


def _continued(lines: Sequence[Series]) -> Iterator[tuple[Series, Series]]:
    """Each live line with the recorded one that goes on from its end."""
    for one in lines:
        for other in lines:
            same = one.name == other.name and one.source == words.LIVE
            if same and other.source == words.REFERENCE and one.xs[-1] < other.xs[0]:
                yield one, other


def _labelled(lines: Sequence[Series]) -> list[str]:
    """What to write at the end of each line; "" for one that another goes on from."""
    border = _further_on(lines)
    written = {id(line): line.label for line in lines}
    for before, after in _continued(lines):
        written[id(before)] = ""
        since = "" if border else f", reference from {words.tick(after.xs[0])}"
        written[id(after)] = after.name + since
    return [written[id(line)] for line in lines]


def set_axes(
    axes: Axes, lines: Sequence[Series], laws: Sequence[Callable], log_x: bool, log_y: bool
) -> None:
    """Scales and ticks for some lines, and for laws, y as a function of x, along them."""
    xs = sorted(set(all_xs(lines)))
    ys = [y for series in lines for point in series.points for y in (point.low, point.high)]
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
        low, high = min(ys) / 1.3, max(ys) * 1.3
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        page.set_ticks(axes.yaxis, page.decades(low, high, 6))
    else:
        axes.set_ylim(0, max(ys) * 1.08 or 1)
        page.set_ticks(axes.yaxis, 6)
    page.set_ticks(axes.xaxis, xs)


def _thin_ticks(axes: Axes) -> None:
    """Leave out labels of the x axis that would touch the next one; the last one stays."""
    kept: list[float] = []
    edge = float("inf")
    for tick in reversed(axes.get_xticks()):
        half = page.width_of(axes.figure, words.tick(tick)) / 2
        centre = axes.transData.transform((tick, axes.get_ylim()[0]))[0]
        if centre + half + 4 <= edge:
            kept.append(tick)
            edge = centre - half
    page.set_ticks(axes.xaxis, sorted(kept))


def draw(axes: Axes, series: Series) -> None:
    """Draw one series: band, line through the medians, every run a dot."""
    colour, published = sentinel(series.colour), series.source == words.PUBLISHED
    lows, highs = zip(*((point.low, point.high) for point in series.points), strict=True)
    if lows != highs:
        axes.fill_between(series.xs, lows, highs, color=colour, alpha=0.22, lw=0)
    style = _DASHED if published else "-"
    axes.plot(series.xs, series.medians, color=colour, linewidth=1.8, linestyle=style)
    xs, ys = zip(*series.dots, strict=True)
    size = 8 if published else 5  # a ring around ours
    how = {"marker": "o", "markersize": size, "markeredgewidth": 1.2, "source": series.source}
    page.marks(axes, xs, ys, series.colour, **how)


def _law(limit: Limit) -> Callable[[float], float]:
    return limit if callable(limit) else lambda _: limit


def draw_law(axes: Axes, law: Callable, xs: Sequence[float], width: float = 1.1) -> None:
    """Draw y as a function of x, dotted, as far as some xs go."""
    first, last = min(xs), max(xs)
    along = [first + (last - first) * i / 60 for i in range(61)]
    colour = sentinel("faint")
    axes.plot(along, [law(x) for x in along], color=colour, linewidth=width, linestyle=DOTTED)


def _draw_border(axes: Axes, here: float, there: float, log: bool) -> None:
    """A dotted upright between what was measured here and what the reference machine did."""
    at = (here * there) ** 0.5 if log else (here + there) / 2
    axes.axvline(at, color=sentinel("faint"), linewidth=0.9, linestyle=DOTTED)
    for text, side, shift in (("here", "right", -4), ("reference", "left", 4)):
        page.write(axes, text, (at, 1), (shift, 4), "faint", ("data", "axes fraction"), ha=side)


def all_xs(lines: Sequence[Series]) -> list[float]:
    """Every x of some lines."""
    return [x for series in lines for x in series.xs]
