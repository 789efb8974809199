"""One level scale and a row for each thing: labels, runs as dots, limits, numbers at the end."""

from collections.abc import Collection, Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from casebook import words
from casebook.charts import figure as page
from casebook.charts.figure import marks, write
from casebook.charts.series import Part
from casebook.colours import sentinel

#: The height of a row in points, and of one more line of dots in it.
_ROW, _LINE = 30, 16
#: A row needs more room where so many runs lie together that they are fanned out.
_FANNED_ROW, _MANY = 44, 8
#: Multiples of it, modulo 1, fill an interval evenly.
_GOLDEN = 0.618034
#: Places are given as a share of the width, and as a row.
_ROWS = ("axes fraction", "data")
#: The marks of the first, the second and the third quantity in a row.
MARKERS = ("o", "D", "^")


def in_rows(
    parts: Sequence[Part],
    ends: Mapping[str, Sequence[str]],
    *,
    title: str,
    log: bool,
    limits: Mapping[str, float],
) -> Figure:
    """One drawing: a row for each part, over one level scale with its title.

    ends: the columns that each row has a line of dots for, and what is written behind it, row by
    row. limits: dotted uprights. A linear scale starts at 0, with lines from there to the medians;
    they are faint where dots lie on them.
    """
    values = [value for part in parts for column in ends for value in part.rows[column]]
    crowded = max(len(part.rows) for part in parts) > _MANY
    height = (_FANNED_ROW if crowded else _ROW) + _LINE * (len(ends) - 1)
    top = 22 + 12 * max(0, len(limits) - 1)
    with page.drawing(page.WIDTH, top + height * len(parts) + 34) as figure:
        axes = figure.add_subplot()
        _set_scale(axes, [*values, *limits.values()], log)
        widest = max(page.width_of(figure, end) for column in ends.values() for end in column)
        page.place(axes, 6, 34, 12 + widest, top)
        axes.set_ylim(len(parts) - 0.5, -0.72)
        axes.set_yticks([])
        for i, (text, at) in enumerate(limits.items()):
            axes.axvline(at, color=sentinel("faint"), linewidth=1.1, linestyle=page.DOTTED)
            shift = -1, 3 + 12 * (len(limits) - 1 - i)
            write(axes, text, (at, 1), shift, "faint", ("data", "axes fraction"), va="bottom")
        for i, part in enumerate(parts):
            _draw_label(axes, i - _LINE * (len(ends) - 1) / 2 / height, part.label)
            for j, (column, texts) in enumerate(ends.items()):
                at = i + _LINE * (j - (len(ends) - 1) / 2) / height
                faint = log or len(part.rows) > 2 * _MANY
                _draw_stem(axes, at, part.rows[column].median(), "grid" if faint else part.colour)
                _draw_dots(axes, at, part, part.rows[column], MARKERS[j])
                write(
                    axes, texts[i], (1, at), (8, 0), "ink", ("axes fraction", "data"), va="center"
                )
        axes.set_xlabel(title, fontsize=page.TEXT)
    return figure


def _set_scale(axes: Axes, values: Sequence[float], log: bool) -> None:
    """A level axis for these values; a linear one starts at 0."""
    low, high = min(values), max(values)
    page.level_axis(axes, 6)
    if log:
        say = axes.xaxis.get_major_formatter()
        axes.set_xscale("log")
        axes.set_xlim(low / 1.25, high * 1.25)
        axes.xaxis.set_major_locator(FixedLocator(page.decades(low / 1.25, high * 1.25, 9)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(say)
    else:
        axes.set_xlim(0, high + ((high - low) * 0.06 or 0.5))


def _draw_label(axes: Axes, row: float, text: str) -> None:
    """What a row is, above its dots."""
    how = {"facecolor": sentinel("ground"), "edgecolor": "none", "pad": 0.5}
    write(axes, text, (0, row), (0, 6), "ink", _ROWS, va="bottom", bbox=how)


def _draw_stem(axes: Axes, row: float, median: float, colour: str) -> None:
    """A line from the start of the scale to the median."""
    width = 0.9 if colour == "grid" else 1.8
    axes.plot([axes.get_xlim()[0], median], [row, row], color=sentinel(colour), linewidth=width)


def _draw_dots(axes: Axes, row: float, part: Part, runs: pd.Series, marker: str) -> None:
    """Each run a dot; many are fanned out below the label, always in the same way."""
    many = len(runs) > _MANY
    marks(
        axes,
        runs,
        [row + (i * _GOLDEN % 1 * 0.42 - 0.08 if many else 0) for i in range(len(runs))],
        part.colour,
        source=part.source,
        marker=marker,
        markersize=(3.2 if many else 6) - (marker == "D"),
        markeredgewidth=0.3 if many else 1.2,
        alpha=0.6 if many else 1,
    )
    if len(runs) > 1:
        marks(axes, [runs.median()], [row], part.colour, marker="|", markersize=13, mew=1.8)


def reading(sources: Collection[str], log: bool) -> str:
    """How the dots of runs from some sources are read, in a sentence or two."""
    text = "Each dot is one run, the upright stroke their median"
    text += "; half-filled: reference machine" * (words.REFERENCE in sources)
    text += "; hollow: published" * (words.PUBLISHED in sources)
    return f"{text}.{' Logarithmic scale.' if log else ''}"
