"""One level scale and a row for each thing: labels, runs as dots, limits, numbers at the end."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from casebook import words
from casebook.charts.figure import (
    DOTTED,
    TEXT,
    WIDTH,
    decades,
    drawing,
    level_axis,
    marks,
    place,
    width_of,
    write,
)
from casebook.colours import sentinel

#: The height of a row in points, and of one more line of dots in it.
_ROW, _LINE = 30, 16
#: A row needs more room where so many runs lie together that they are fanned out.
_FANNED_ROW, _MANY = 44, 8
#: Multiples of it, modulo 1, fill an interval evenly.
_GOLDEN = 0.618034
#: The marks of the first, the second and the third quantity in a row.
MARKERS = ("o", "D", "^")


@dataclass(frozen=True)
class Dots:
    """One line of dots: the column `value` of some runs (with source), in a colour.

    end: what is written behind it.
    """

    part: pd.DataFrame
    value: str
    colour: str
    end: str

    @property
    def median(self) -> float:
        return float(self.part[self.value].median())


@dataclass(frozen=True)
class Row:
    """A label and below it a line of dots for each quantity."""

    label: str
    lines: tuple[Dots, ...]


def in_rows(rows: Sequence[Row], *, title: str, log: bool, limits: Mapping[str, float]) -> Figure:
    """One drawing: rows over one level scale with its title, limits as dotted uprights.

    A linear scale starts at 0, with lines from there to the medians.
    """
    lines = [line for row in rows for line in row.lines]
    values = [value for line in lines for value in line.part[line.value]]
    most = max(len(row.lines) for row in rows)
    crowded = max(len(line.part) for line in lines) > _MANY
    height = (_FANNED_ROW if crowded else _ROW) + _LINE * (most - 1)
    top = 22 + 12 * max(0, len(limits) - 1)
    with drawing(WIDTH, top + height * len(rows) + 34) as figure:
        axes = figure.add_subplot()
        _set_scale(axes, [*values, *limits.values()], log)
        place(axes, 6, 34, 12 + max(width_of(figure, line.end) for line in lines), top)
        axes.set_ylim(len(rows) - 0.5, -0.72)
        axes.set_yticks([])
        for i, (text, at) in enumerate(limits.items()):
            _draw_limit(axes, at, text, 3 + 12 * (len(limits) - 1 - i))
        for i, row in enumerate(rows):
            _draw_label(axes, i - _LINE * (most - 1) / 2 / height, row.label)
            for j, line in enumerate(row.lines):
                at = i + _LINE * (j - (most - 1) / 2) / height
                _draw_line(axes, at, line, MARKERS[j], not log)
        axes.set_xlabel(title, fontsize=TEXT)
    return figure


def _set_scale(axes: Axes, values: Sequence[float], log: bool) -> None:
    """A level axis for these values; a linear one starts at 0."""
    low, high = min(values), max(values)
    level_axis(axes, 6)
    if log:
        say = axes.xaxis.get_major_formatter()
        axes.set_xscale("log")
        axes.set_xlim(low / 1.25, high * 1.25)
        axes.xaxis.set_major_locator(FixedLocator(decades(low / 1.25, high * 1.25, 9)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(say)
    else:
        axes.set_xlim(0, high + ((high - low) * 0.06 or 0.5))


def _draw_label(axes: Axes, row: float, text: str) -> None:
    """What a row is, above its dots."""
    plate = {"facecolor": sentinel("ground"), "edgecolor": "none", "pad": 0.5}
    coords = "axes fraction", "data"
    write(axes, text, (0, row), (0, 6), coords=coords, va="bottom", bbox=plate)


def _draw_limit(axes: Axes, at: float, text: str, up: float) -> None:
    """A dotted upright through all rows with its name above it, `up` points high."""
    axes.axvline(at, color=sentinel("faint"), linewidth=1.1, linestyle=DOTTED)
    write(axes, text, (at, 1), (-1, up), "faint", ("data", "axes fraction"), va="bottom")


def _draw_line(axes: Axes, row: float, line: Dots, marker: str, from_zero: bool) -> None:
    """A line of dots: its stem, its runs, their median, and what stands behind it."""
    stem = (line.colour, 1.8) if from_zero else ("grid", 0.9)
    start = axes.get_xlim()[0]
    axes.plot([start, line.median], [row, row], color=sentinel(stem[0]), linewidth=stem[1])
    _draw_dots(axes, row, line, marker)
    if len(line.part) > 1:
        marks(axes, [line.median], [row], line.colour, marker="|", markersize=13, mew=1.8)
    write(axes, line.end, (1, row), (8, 0), coords=("axes fraction", "data"), va="center")


def _draw_dots(axes: Axes, row: float, line: Dots, marker: str) -> None:
    """Each run a dot; many are fanned out below the label, always in the same way."""
    many = len(line.part) > _MANY
    fan = [i * _GOLDEN % 1 * 0.42 - 0.08 if many else 0.0 for i in range(len(line.part))]
    marks(
        axes,
        line.part[line.value],
        [row + off for off in fan],
        line.colour,
        source=line.part["source"].iloc[0],
        marker=marker,
        markersize=(3.2 if many else 6) - (marker == "D"),
        markeredgewidth=0.3 if many else 1.2,
        alpha=0.6 if many else 1,
    )


def reading(sources: Collection[str], log: bool) -> str:
    """How the dots of runs from some sources are read, in a sentence or two."""
    text = "Each dot is one run, the upright stroke their median"
    text += "; half-filled: reference machine" * (words.REFERENCE in sources)
    text += "; hollow: published" * (words.PUBLISHED in sources)
    return f"{text}.{' Logarithmic scale.' if log else ''}"
