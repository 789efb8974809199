"""A figure as a page shows it: one themed drawing or several, a caption, an alternative text."""

import base64
import hashlib
import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib
import matplotlib.style
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from casebook import colours, words
from casebook.charts.captions import Caption
from casebook.errors import UsageError
from casebook.findings.media import FIGURE, QUOTES

#: Drawings are laid out in points, which become the units of their viewBox. The page of a phone is
#: as wide as this, so that a text of SMALL points is read at 11 pixels there, and 16 on a desk.
WIDTH = 350
#: The width of one of two drawings side by side.
HALF_WIDTH = 300
TEXT = 11.5
SMALL = 11
#: How a line is dotted.
DOTTED = (0, (1, 2))
#: How much of a mark is filled, by the source of its run.
_FILL = {words.LIVE: "full", words.REFERENCE: "left", words.PUBLISHED: "none"}


@dataclass(frozen=True)
class Chart:
    """A finished figure. Jupyter shows it; the book includes it by its name.

    name: letters, digits and dashes; unique in the book. html: one <figure>, complete with its
    style. alt: the finding, in words computed from the data. caption: all of it as plain text.
    page_html: what the book includes in place of html, if that is more than a notebook can show.
    quotes: lines of other people's packages in it (charts/quotes.py).
    """

    name: str
    html: str
    alt: str
    caption: str
    page_html: str = ""
    quotes: tuple[dict[str, Any], ...] = ()

    def _repr_mimebundle_(self, **_: object) -> dict:
        record = {"name": self.name, "html": self.page_html or self.html, "alt": self.alt}
        bundle = {"text/html": self.html, "text/plain": self.alt, FIGURE: record}
        return bundle | ({QUOTES: {"quotes": [*self.quotes]}} if self.quotes else {})


def chart(
    name: str,
    drawings: Sequence[Figure] | Figure,
    caption: Caption,
    *,
    data: pd.DataFrame,
    alts: Sequence[str] = (),
    key: Sequence[tuple[str, str]] = (),
) -> Chart:
    """Put drawings, caption and alternative texts together.

    data: what is drawn, row by row; the caption ends with a link to it, as CSV, that works wherever
    the figure is. alts: one alternative text per drawing; by default title and finding. key: pairs
    (svg of the mark, what it means) shown above the drawings, which need it.
    """
    drawings = [drawings] if isinstance(drawings, Figure) else drawings
    alts = alts or [caption.alt] * len(drawings)
    name = slug(name or caption.title)
    body = "".join(
        _svg(drawing, alt, f"{name}-{i}" if len(drawings) > 1 else name)
        for i, (drawing, alt) in enumerate(zip(drawings, alts, strict=True))
    )
    if len(drawings) > 1:
        body = f'<div class="cb-panels">{body}</div>'
    if key:
        items = "".join(f"<li>{mark}<span>{escape(text)}</span></li>" for mark, text in key)
        body = f'<ul class="cb-key" aria-label="Key">{items}</ul>{body}'
    parts = {
        "title": caption.title.rstrip(".") + ".",
        "clause": caption.clause,
        "finding": caption.finding,
        "source": caption.source,
        "reading": caption.reading,
    }
    paragraphs = {css: text.strip() for css, text in parts.items() if text.strip()}
    texts = "".join(f'<p class="cb-{css}">{escape(text)}</p>' for css, text in paragraphs.items())
    html = (
        f'<figure class="cb cb-figure" id="figure-{name}">{colours.style("figure")}{body}'
        f"<figcaption>{texts}{_download(name, data)}</figcaption></figure>"
    )
    return Chart(name, html, " ".join(alts), " ".join(paragraphs.values()))


def _download(name: str, data: pd.DataFrame) -> str:
    """Return a link to a frame as a CSV file that the page itself holds."""
    file = base64.b64encode(data.to_csv(index=False).encode()).decode()
    rows = f"{len(data):,} row{'s' * (len(data) != 1)}"
    return (
        f'<p class="cb-data"><a download="{name}.csv" href="data:text/csv;charset=utf-8;base64,'
        f'{file}">The data of this chart ({rows}, CSV)</a></p>'
    )


def slug(text: str) -> str:
    """Turn a text into an id: lower-case letters, digits and dashes."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not name:
        raise UsageError(f"a figure needs a name with letters in it, not {text!r}")
    return name[:60].strip("-")


def key_mark(shape: str, colour: str) -> str:
    """Return a mark for a key: SVG shapes in a box of 26 by 16, in a colour of colours.COLOURS."""
    fill = escape(colours.variable(colour))
    return (
        '<svg viewBox="0 0 26 16" aria-hidden="true">'
        f'<g style="fill:{fill};stroke:none">{shape}</g></svg>'
    )


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """Yield a transparent figure of a size in points, under the settings of the house."""
    with matplotlib.style.context("default"), matplotlib.rc_context(_settings()):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        FigureCanvasAgg(figure)
        figure.patch.set_alpha(0)
        yield figure


def _settings() -> dict:
    faint, grid, ink = (colours.sentinel(name) for name in ("faint", "grid", "ink"))
    inked = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
    return {
        **dict.fromkeys(inked, ink),
        **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), faint),
        **dict.fromkeys(("axes.spines.top", "axes.spines.right", "axes.unicode_minus"), False),
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), SMALL),
        "font.family": "DejaVu Sans",
        "font.size": TEXT,
        "axes.labelsize": TEXT,
        "axes.facecolor": "none",
        "axes.linewidth": 0.8,
        "axes.axisbelow": True,
        "grid.color": grid,
        "grid.linewidth": 0.7,
        "xtick.major.size": 3,
        "ytick.major.size": 0,
        "lines.solid_capstyle": "round",
    }


def width_of(figure: FigureBase, text: str, size: float = SMALL) -> float:
    """Measure the width of a text of one or several lines, in points."""
    probe = figure.text(0, 0, text, fontsize=size)
    width = probe.get_window_extent().width
    probe.remove()
    return width


def size_of(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of the figure around some axes, in points."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches() * 72
    return width, height


def place(axes: Axes, left: float, bottom: float, right: float, top: float) -> None:
    """Put axes at margins in points from the figure's edges."""
    width, height = size_of(axes)
    axes_width, axes_height = (width - left - right) / width, (height - top - bottom) / height
    axes.set_position((left / width, bottom / height, axes_width, axes_height))


def write(
    axes: Axes,
    text: str,
    place: tuple[float, float],
    shift: tuple[float, float],
    colour: str = "ink",
    coords: str | tuple[str, str] = "axes fraction",
    **options: Any,
) -> None:
    """Write a small text beside a place of the axes, shifted by some points.

    options: as Axes.annotate.
    """
    options |= {"xycoords": coords, "textcoords": "offset points", "fontsize": SMALL}
    axes.annotate(text, place, shift, color=colours.sentinel(colour), **options)


def marks(
    axes: Axes, xs: Sequence[float], ys: Sequence[float], colour: str, **options: Any
) -> None:
    """Draw a mark at each place, in a colour of colours.COLOURS.

    options: as Axes.plot, and `source`.

    source: of what is marked; a reference mark is half-filled, a published one hollow, all others
    are full.
    """
    fill = _FILL.get(options.pop("source", words.LIVE), _FILL[words.LIVE])
    options |= {"fillstyle": fill, "linestyle": "none"}
    ground = colours.sentinel("ground")
    axes.plot(xs, ys, color=colours.sentinel(colour), markerfacecoloralt=ground, **options)


def level_axis(axes: Axes, ticks: int = 5) -> None:
    """Draw a horizontal scale in round steps with its grid, and nothing vertical."""
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    set_ticks(axes.xaxis, ticks)


def set_ticks(axis: Axis, ticks: int | Sequence[float]) -> None:
    """Set ticks at some places, or about that many at round places, with their numbers."""
    if isinstance(ticks, int):
        axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
    else:
        axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: words.tick(round(value, 9))))


def decades(low: float, high: float, limit: int) -> list[float]:
    """Return the labels of a logarithmic scale: 1, 2, 5, 10; powers of ten if there are many."""
    steps = [m * 10.0**e for e in range(-4, 7) for m in (1, 2, 5)]
    ticks = [step for step in steps if low <= step <= high]
    if len(ticks) > limit:
        ticks = [step for step in ticks if f"{step:e}"[0] == "1"]
    if len(ticks) < 2:
        finer = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
        ticks = [step for step in finer if low <= step <= high]
    return ticks


def wrapped(text: str, width: int) -> str:
    """Wrap a label; a line breaks after a comma if it can."""
    if len(text) <= width:
        return text
    head, comma, tail = text.partition(", ")
    if comma and len(head) <= width:
        return f"{head},\n{wrapped(tail, width)}"
    return "\n".join(textwrap.wrap(text, width, break_long_words=False))


def _svg(figure: Figure, alt: str, name: str) -> str:
    """Return the drawing as one inline SVG: themed, with ids of its own, the same at each build."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    # Its style sheet would apply to the whole page; its two rules are on the <svg> instead.
    body = re.sub(r"<(metadata|style).*?</\1>|<!--.*?-->\s*", "", body, flags=re.S).strip()
    body = re.sub(r"font: (?:(\d+|bold|normal) )?([\d.]+)px [^;\"]+", _font, body)
    body = re.sub(r"font-family: [^;\"]+;? ?", "", body)
    body = colours.themed(re.sub(r"\n\s*", "\n", body))
    unique = f"{name}-{hashlib.sha256((alt + body).encode()).hexdigest()[:6]}"
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{unique}-", body)
    width, height = figure.get_size_inches() * 72
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'role="img" aria-label="{escape(alt)}" viewBox="0 0 {width:g} {height:g}" '
        f'style="stroke-linejoin:round;stroke-linecap:butt">{body}'
    )


def _font(match: re.Match) -> str:
    weight = f"font-weight: {match[1]}; " if match[1] else ""
    return f"{weight}font-size: {match[2]}px"
