"""One level scale and a row for each thing: labels, runs as dots, limits, numbers at the end."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from casebook import words
from casebook.charts.figure import SMALL, TEXT, WIDTH, drawing, place, width_of
from casebook.colours import sentinel

#: The height of a row in points, and of one more line of dots in it.
_ROW, _LINE = 30, 16
#: A row needs more room where so many runs lie together that they are fanned out.
_FANNED_ROW, _MANY = 44, 8
#: Multiples of it, modulo 1, fill an interval evenly.
_GOLDEN = 0.618034
#: How much of a mark is filled, by the source of its run.
FILL = {words.LIVE: "full", words.REFERENCE: "left", words.PUBLISHED: "none"}
#: The marks of the first, the second and the third quantity in a row.
MARKERS = ("o", "D", "^")


@dataclass(frozen=True)
class Dots:
    """One line of dots: the column `value` of some runs (with source), in a colour.

    end: what is written behind it, "" for nothing.
    """

    part: pd.DataFrame
    value: str
    colour: str
    end: str = ""


@dataclass(frozen=True)
class Row:
    """A label and below it a line of dots for each quantity."""

    label: str
    lines: tuple[Dots, ...]


def in_rows(
    rows: Sequence[Row],
    *,
    x_title: str,
    log: bool,
    zero: bool,
    limits: Sequence[tuple[float, str]] = (),
    stems: bool = False,
    medians: bool = False,
) -> Figure:
    """One drawing: rows over one level scale, limits (at, text) as dotted uprights.

    zero: a linear scale starts there. stems: lines from the start of the scale to the medians.
    medians: a mark at each.
    """
    lines = [line for row in rows for line in row.lines]
    values = [value for line in lines for value in line.part[line.value]]
    most = max(len(row.lines) for row in rows)
    crowded = max(len(line.part) for line in lines) > _MANY
    height = (_FANNED_ROW if crowded else _ROW) + _LINE * (most - 1)
    top = 22 + 12 * max(0, len(limits) - 1)
    with drawing(WIDTH, top + height * len(rows) + 34) as figure:
        axes = figure.add_subplot()
        _set_scale(axes, [*values, *(at for at, _ in limits)], log, zero)
        ends = [width_of(figure, line.end) for line in lines if line.end]
        place(axes, 6, 34, 12 + max(ends) if ends else 10, top)
        axes.set_ylim(len(rows) - 0.5, -0.72)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        for i, (at, text) in enumerate(limits):
            _draw_limit(axes, at, text, 3 + 12 * (len(limits) - 1 - i))
        for i, row in enumerate(rows):
            _draw_label(axes, i - _LINE * (most - 1) / 2 / height, row.label)
            for j, line in enumerate(row.lines):
                at = i + _LINE * (j - (most - 1) / 2) / height
                if stems:
                    _draw_stem(axes, at, line, line.colour, 1.8)
                elif line.end:
                    _draw_stem(axes, at, line, "grid", 0.9)
                _draw_dots(axes, at, line, MARKERS[j])
                if medians and len(line.part) > 1:
                    _draw_median(axes, at, line)
                if line.end:
                    _draw_end(axes, at, line.end)
        axes.set_xlabel(x_title, fontsize=TEXT)
    return figure


def _set_scale(axes: Axes, values: Sequence[float], log: bool, zero: bool) -> None:
    """A level axis for these values; zero: a linear one starts there."""
    low, high = min(values), max(values)
    axes.grid(axis="x")
    if log:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.25, high * 1.25)
        steps = [m * 10.0**e for e in range(-4, 7) for m in (1, 2, 5)]
        shown = [step for step in steps if low / 1.25 <= step <= high * 1.25]
        if len(shown) > 9:
            shown = [step for step in shown if f"{step:e}"[0] == "1"]
        axes.xaxis.set_major_locator(FixedLocator(shown))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        room = (high - low) * 0.06 or 0.5
        axes.set_xlim(0 if zero else max(0, low - room), high + room)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words.tick(value)))


def _draw_label(axes: Axes, row: float, text: str) -> None:
    """What a row is, above its dots."""
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


def _draw_limit(axes: Axes, at: float, text: str, up: float) -> None:
    """A dotted upright through all rows with its name above it, `up` points high."""
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


def _draw_end(axes: Axes, row: float, text: str) -> None:
    axes.annotate(
        text,
        (1, row),
        (8, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=SMALL,
    )


def _draw_stem(axes: Axes, row: float, line: Dots, colour: str, width: float) -> None:
    """A line from the start of the scale to the median."""
    ends = [axes.get_xlim()[0], line.part[line.value].median()]
    axes.plot(ends, [row, row], color=sentinel(colour), linewidth=width)


def _draw_median(axes: Axes, row: float, line: Dots) -> None:
    axes.plot(
        [line.part[line.value].median()],
        [row],
        marker="|",
        markersize=13,
        markeredgewidth=1.8,
        color=sentinel(line.colour),
    )


def _draw_dots(axes: Axes, row: float, line: Dots, marker: str) -> None:
    """Each run a dot; many are fanned out below the label, always in the same way."""
    many = len(line.part) > _MANY
    sources = line.part.get("source", pd.Series(words.LIVE, line.part.index))
    for source, runs in line.part.groupby(sources, sort=False):
        fan = [i * _GOLDEN % 1 * 0.42 - 0.08 if many else 0.0 for i in range(len(runs))]
        axes.plot(
            runs[line.value],
            [row + off for off in fan],
            linestyle="none",
            marker=marker,
            color=sentinel(line.colour),
            markersize=(3.2 if many else 6) - (marker == "D"),
            fillstyle=FILL[source],
            markerfacecoloralt=sentinel("ground"),
            markeredgewidth=0.3 if many else 1.2,
            alpha=0.6 if many else 1,
        )


def reading(frame: pd.DataFrame, log: bool, medians: bool = False) -> str:
    """How the dots are read, in a sentence or two. medians: they are marked."""
    sources = set(frame["source"]) if "source" in frame else set()
    text = "Each dot is one run"
    text += ", the upright stroke their median" * medians
    text += "; half-filled: reference machine" * (words.REFERENCE in sources)
    text += "; hollow: published" * (words.PUBLISHED in sources)
    return f"{text}.{' Logarithmic scale.' if log else ''}"
