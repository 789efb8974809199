"""When each request connected, shook hands, sent, waited and received, and when nothing moved.

The chart is a picture; on a page, book/_static/explorer.js draws it anew from the data beside it,
so that a request can be asked for its parts and the time axis can be stretched.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from casebook import words
from casebook.charts.figure import (
    HALF_WIDTH,
    SMALL,
    TEXT,
    WIDTH,
    Chart,
    chart,
    drawing,
    key_mark,
    place,
)
from casebook.charts.origins import origin
from casebook.charts.series import columns
from casebook.colours import OF_EVENT, sentinel
from casebook.runs import phases

#: A heartbeat this much later than the one before means that the event loop was blocked.
STALL_S = 0.05

_HEIGHTS = {"connect": 0.62, "handshake": 0.62, "wait": 0.14}


_HEARTBEATS = (
    " Below: a tick for each heartbeat of the event loop, a block where none came for "
    f"{words.seconds(STALL_S)} or more."
)


def timeline(
    observations: Any,
    title: str = "Where the time of each request goes",
    shared: bool = True,
    name: str = "",
) -> Chart:
    """Requests as rows, their parts as bars over time; below, the heartbeats of the event loop.

    observations: one Observation (kind `timeline`), several, or {label: Observation}; each has
    .frame (page, event, start_s, end_s), .heartbeats (seconds), .stack, .source and
    .measured_at. Several stand side by side, under each other on a phone. shared: the same
    time axis for all, so that lengths compare; else each fills its own.
    """
    shown = _labelled(observations)
    spans = {label: _span(one) for label, one in shown.items()}
    beating = any(len(one.heartbeats) for one in shown.values())
    drawings, alts = [], []
    for label, one in shown.items():
        end = max(spans.values()) if shared else spans[label]
        drawings.append(_drawing(label, one, end, WIDTH if len(shown) == 1 else HALF_WIDTH))
        alts.append(_alt(label, one))
    made = chart(
        name,
        drawings,
        title=title,
        finding=" ".join(alts),
        reading=f"One row per request.{_HEARTBEATS if beating else ''}",
        source=origin([_source(one) for one in shown.values()]),
        alts=alts,
        key=_key(beating),
    )
    last = max(spans.values())
    panels = [_panel(label, one, last if shared else spans[label]) for label, one in shown.items()]
    data = escape(json.dumps(panels, separators=(",", ":")))
    figure = '<figure class="cb cb-figure"'
    told = made.html.replace(figure, f'{figure} data-timelines="{data}"', 1)
    return dataclasses.replace(made, html=told)


def _panel(label: str, one, end_s: float) -> dict:
    """A timeline as explorer.js draws it: label, end (of the axis), stall (what counts as a gap),
    rows (as casebook.runs.phases.of_requests gives them), loop (whether there is an event loop)
    and beats, all times in ms."""
    return {
        "label": label,
        "end": round(1020 * end_s, 1),
        "stall": 1000 * STALL_S,
        "rows": phases.of_requests(one.frame),
        "loop": len(one.heartbeats) > 0,
        "beats": [round(1000 * float(beat), 1) for beat in one.heartbeats],
    }


def stalls(heartbeats: Sequence[float], end_s: float, stall_s: float = STALL_S) -> list:
    """The pauses (start_s, end_s) of at least stall_s without a heartbeat, from 0 to the end."""
    beats = [0.0, *sorted(beat for beat in heartbeats if 0 <= beat <= end_s), end_s]
    return [(one, other) for one, other in pairwise(beats) if other - one >= stall_s]


def _labelled(observations: Any) -> dict[str, Any]:
    if isinstance(observations, Mapping):
        return dict(observations)
    many = observations if isinstance(observations, list | tuple) else [observations]
    return {words.stack_label(one.stack): one for one in many}


def _span(one) -> float:
    columns(one.frame, "page", "event", "start_s", "end_s")
    return float(one.frame["end_s"].max())


def _drawing(label: str, one, end_s: float, width: float) -> Figure:
    frame = one.frame
    pages = sorted(frame["page"].unique())
    rows_height = max(70, min(12 * len(pages), 190))
    height = 20 + rows_height + 36 + 32
    with drawing(width, height) as figure:
        left, wide = 16, width - 16 - 8
        bars, strip = figure.add_axes((0, 0, 1, 1)), figure.add_axes((0, 0, 1, 1))
        place(bars, left, 32 + 36, width - left - wide, 20)
        place(strip, left, 32, width - left - wide, height - 32 - 14)
        figure.text(0, 1, label, fontsize=TEXT, fontweight="bold", va="top")
        for row, page in enumerate(pages):
            for part in frame[frame["page"] == page].itertuples():
                _part(bars, row, part, len(pages))
        bars.set_xlim(0, end_s * 1.02)
        bars.set_ylim(len(pages) - 0.4, -0.6)
        every = 1 if len(pages) <= 12 else max(1, len(pages) // 6)
        bars.set_yticks(range(0, len(pages), every), [str(page) for page in pages[::every]])
        bars.tick_params(labelbottom=False)
        bars.grid(axis="x")
        bars.spines["left"].set_visible(False)
        _strip(strip, one, end_s)
    return figure


def _part(axes: Axes, row: int, part, rows: int) -> None:
    colour = sentinel(OF_EVENT[part.event])
    if part.event in _HEIGHTS:
        high = _HEIGHTS[part.event]
        axes.barh(row, max(part.end_s - part.start_s, 0), high, part.start_s, color=colour, lw=0.5)
    else:
        mark, at = (">", part.start_s) if part.event == "send" else ("o", part.end_s)
        axes.plot(
            [at],
            [row],
            marker=mark,
            color=colour,
            markersize=5 if rows <= 15 else 3.5,
            markeredgewidth=0,
            clip_on=False,
            zorder=3,
        )


def _strip(axes: Axes, one, end_s: float) -> None:
    ended = _span(one)
    # The first heartbeat is that of the start: where there is none, nothing could beat.
    has_loop = len(one.heartbeats) > 0
    beats = [beat for beat in one.heartbeats if 0 <= beat <= ended]
    axes.vlines(beats, 0, 1, color=sentinel("faint"), linewidth=0.6)
    late = stalls(beats, ended) if has_loop else []
    for start, stop in late:
        axes.axvspan(start, stop, color=sentinel("stall"), alpha=0.85, lw=0)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlim(0, end_s * 1.02)
    axes.set_xlabel("time, s", fontsize=SMALL)
    text = "event loop" if has_loop else "no event loop"
    axes.annotate(
        text, (0, 1), (0, 3), xycoords="axes fraction", textcoords="offset points", fontsize=SMALL
    )
    if late:
        axes.annotate(
            f"blocked for {words.seconds(max(stop - start for start, stop in late))} at longest",
            (1, 1),
            (0, 3),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            fontsize=SMALL,
            color=sentinel("stall"),
        )


def _alt(label: str, one) -> str:
    """What a timeline shows, counted: how many waited at once, how long the loop was blocked."""
    frame, ended = one.frame, _span(one)
    pages = frame["page"].nunique()
    sent = frame[frame["event"] == "send"]["start_s"]
    received = frame[frame["event"] == "receive"]["end_s"]
    text = f"{words.capital(label)}: {pages} requests in {words.seconds(ended)}, "
    text += f"{phases.most_waiting(frame)} waiting at once at most."
    if len(sent) and len(received):
        before = int((sent <= received.min()).sum())
        text += f" {before} of {pages} had been sent before the first response was in."
    beats = list(one.heartbeats)
    if beats:
        longest = max((stop - start for start, stop in stalls(beats, ended, 0)), default=0.0)
        text += f" The event loop was blocked for {words.seconds(longest)} at longest."
    return text


def _source(one) -> pd.DataFrame:
    return pd.DataFrame(
        [{"stack": one.stack, "source": one.source, "measured_at": one.measured_at}]
    )


def _key(beating: bool) -> list[tuple[str, str]]:
    """The marks and what they mean, as small drawings of their own."""
    bar = '<rect x="1" y="3" width="24" height="10"/>'
    shapes = {
        "connect": bar,
        "handshake": bar,
        "send": '<path d="M8 2L20 8L8 14Z"/>',
        "wait": '<rect x="1" y="6.5" width="24" height="3"/>',
        "receive": '<circle cx="13" cy="8" r="5.5"/>',
    }
    items = [(key_mark(shape, OF_EVENT[event]), event) for event, shape in shapes.items()]
    if beating:
        block = key_mark('<rect x="1" y="1" width="24" height="14"/>', "stall")
        items.append((block, "the event loop is blocked"))
    return items
