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
from matplotlib.ticker import NullLocator

from casebook import words
from casebook.cases.fetching import phases
from casebook.charts import figure as page
from casebook.charts.captions import Caption
from casebook.charts.figure import Chart, key_mark, level_axis, place, write
from casebook.charts.origins import origin_of
from casebook.charts.series import require_columns, require_observation
from casebook.colours import ROLES, sentinel
from casebook.errors import UsageError
from casebook.mistakes import for_readers

#: A heartbeat this much later than the one before means that the event loop was blocked. It is less
#: than the delay of any timeline in the book, and more than ten handshakes at once take as a rule:
#: those are work, and no wait.
STALL_S = 0.09

#: The parts of a request, and their colours; none is that of a role (casebook/colours.py).
COLOURS = {
    "connect": "brown",
    "handshake": "stage-3",
    "send": "ink",
    "wait": "control",
    "receive": "ink",
}

#: The heights of the parts that are bars; the others are marks.
_HEIGHTS = {"connect": 0.62, "handshake": 0.62, "wait": 0.14}

#: The marks in the key.
_BAR = '<rect x="1" y="3" width="24" height="10"/>'
_SHAPES = {
    "connect": _BAR,
    "handshake": _BAR,
    "send": '<path d="M8 2L20 8L8 14Z"/>',
    "wait": '<rect x="1" y="6.5" width="24" height="3"/>',
    "receive": '<circle cx="13" cy="8" r="5.5"/>',
}
_BLOCK = '<rect x="1" y="1" width="24" height="14"/>'
_PALE = _BAR.replace("/>", ' fill-opacity="0.3"/>')
#: The key of a connection that has begun while the event loop is blocked: it can only wait.
HELD = "kept waiting"


@for_readers
def timeline(
    observations: Any, *, title: str = "Where the time of each request goes", name: str = ""
) -> Chart:
    """Draw requests as rows, their parts as bars over time; below, the event loop's heartbeats.

    observations: one Observation (kind `timeline`), several, or {label: Observation}; each has
    .frame (page, event, start_s, end_s), .heartbeats (seconds), .delay_s, .stack, .source and
    .measured_at. Several stand side by side, or one below the other on a phone, with the same time
    axis, so that lengths compare.
    """
    if not isinstance(observations, Mapping):
        several = observations if isinstance(observations, list | tuple) else [observations]
        observations = {
            words.stack_label(require_observation(observation).stack): observation
            for observation in several
        }
    if not observations:
        raise UsageError("observations is empty: give one at least")
    timelines = [_Timeline(label, observation) for label, observation in observations.items()]
    end_s = max(timeline.end_s for timeline in timelines)
    has_beats = any(timeline.beats for timeline in timelines)
    width = page.WIDTH if len(timelines) == 1 else page.HALF_WIDTH
    key = [(key_mark(shape, COLOURS[event]), event) for event, shape in _SHAPES.items()]
    if any(timeline.pauses for timeline in timelines):
        key.insert(1, (key_mark(_PALE, COLOURS["connect"]), HELD))
    clause = "One row per request."
    if has_beats:
        key.append((key_mark(_BLOCK, "stall"), "the event loop is blocked"))
        clause += " Below: a tick whenever the event loop runs, a block where it did not for "
        clause += f"{words.seconds(STALL_S)} or more."
    alts = [timeline.alt() for timeline in timelines]
    chart = page.chart(
        name,
        [_drawing(timeline, end_s, width) for timeline in timelines],
        Caption(
            title,
            finding=" ".join(alts),
            clause=clause,
            source=origin_of(*observations.values()),
        ),
        data=pd.concat([timeline.frame.assign(shown=timeline.label) for timeline in timelines]),
        alts=alts,
        key=key,
    )
    data = escape(
        json.dumps([timeline.panel(end_s) for timeline in timelines], separators=(",", ":"))
    )
    figure = '<figure class="cb cb-figure"'
    html = chart.html.replace(figure, f'{figure} data-timelines="{data}"', 1)
    return dataclasses.replace(chart, html=html)


class _Timeline:
    """A timeline: its label, the parts of its requests, its heartbeats and its end, in seconds."""

    def __init__(self, label: str, observation: Any) -> None:
        require_columns(require_observation(observation).frame, "page", "event", "start_s", "end_s")
        self.label, self.frame, self.beats = (
            label,
            observation.frame,
            list(map(float, observation.heartbeats)),
        )
        self.delay_s = float(observation.delay_s)
        self.end_s = float(observation.frame["end_s"].max())
        self.pauses = stalls(self.beats, self.end_s)

    def panel(self, end_s: float) -> dict:
        """Return the input of explorer.js for one timeline, all times in ms.

        Keys: label, delay (of the server), end (of the axis), stall (the least gap that counts),
        rows (as fetching.phases.of_requests returns them), loop (whether there is an event loop)
        and beats.
        """
        return {
            "label": self.label,
            "delay": round(1000 * self.delay_s, 1),
            "end": round(1020 * end_s, 1),
            "stall": 1000 * STALL_S,
            "rows": phases.of_requests(self.frame),
            "loop": bool(self.beats),
            "beats": [round(1000 * beat, 1) for beat in self.beats],
        }

    def alt(self) -> str:
        """Describe it, counted: how many waited at once, how long the loop was blocked."""
        pages = self.frame["page"].nunique()
        sent = self.frame[self.frame["event"] == "send"]["start_s"]
        received = self.frame[self.frame["event"] == "receive"]["end_s"]
        text = f"{words.capital(self.label)}: {pages} requests in {words.seconds(self.end_s)}, "
        text += f"{phases.most_waiting(self.frame)} waiting at once at most."
        if len(sent) and len(received):
            early = int((sent <= received.min()).sum())
            text += f" {early} of {pages} had been sent before the first response was in."
        if self.beats:
            pauses = stalls(self.beats, self.end_s, 0)
            longest = max(stop - start for start, stop in pauses)
            text += f" The event loop was blocked for {words.seconds(longest)} at longest."
        return text


def stalls(heartbeats: Sequence[float], end_s: float, stall_s: float = STALL_S) -> list:
    """Return the pauses (start_s, end_s) without a heartbeat of at least stall_s, up to the end.

    The first heartbeat is that of the start: without any, there is no loop to be blocked.
    """
    if not len(heartbeats):
        return []
    beats = [0.0, *sorted(beat for beat in heartbeats if 0 <= beat <= end_s), end_s]
    return [(start, end) for start, end in pairwise(beats) if end - start >= stall_s]


def _drawing(timeline: _Timeline, end_s: float, width: float) -> Figure:
    pages = sorted(timeline.frame["page"].unique())
    height = 20 + max(70, min(12 * len(pages), 190)) + 36 + 32
    with page.drawing(width, height) as figure:
        bars, strip = figure.add_axes((0, 0, 1, 1)), figure.add_axes((0, 0, 1, 1))
        place(bars, 16, 32 + 36, 8, 20)
        place(strip, 16, 32, 8, height - 32 - 14)
        figure.text(0, 1, timeline.label, fontsize=page.TEXT, fontweight="bold", va="top")
        for event, parts in timeline.frame.groupby("event"):
            rows = [pages.index(path) for path in parts["page"]]
            _parts(bars, str(event), rows, parts, 5 if len(pages) <= 15 else 3.5)
            if event == "connect":
                _keep_waiting(bars, rows, parts, timeline.pauses)
        bars.grid(axis="x")
        bars.spines["left"].set_visible(False)
        bars.set_xlim(0, end_s * 1.02)
        bars.set_ylim(len(pages) - 0.4, -0.6)
        step = 1 if len(pages) <= 12 else max(1, len(pages) // 6)
        bars.set_yticks(range(0, len(pages), step), list(map(str, pages[::step])))
        bars.tick_params(labelbottom=False)
        _strip(strip, timeline, end_s)
    return figure


def _parts(axes: Axes, event: str, rows: list[int], parts: pd.DataFrame, size: float) -> None:
    """Draw the parts of one kind, in the rows of their requests."""
    colour, start_s, end_s = sentinel(COLOURS[event]), parts["start_s"], parts["end_s"]
    if event in _HEIGHTS:
        lengths = (end_s - start_s).clip(lower=0)
        axes.barh(rows, lengths, _HEIGHTS[event], start_s, color=colour, lw=0.5)
    else:
        mark, times = (">", start_s) if event == "send" else ("o", end_s)
        style: dict = {"markersize": size, "markeredgewidth": 0, "clip_on": False, "zorder": 3}
        axes.plot(times, rows, marker=mark, color=colour, linestyle="none", **style)


def _keep_waiting(axes: Axes, rows: list[int], parts: pd.DataFrame, pauses: list) -> None:
    """Make pale what lies in a pause of the event loop: a connection that is kept waiting."""
    ground, high = sentinel("ground"), _HEIGHTS["connect"]
    for row, start, end in zip(rows, parts["start_s"], parts["end_s"], strict=True):
        for pause, resume in pauses:
            length = min(end, resume) - max(start, pause)
            if length >= STALL_S:
                axes.barh(row, length, high, max(start, pause), color=ground, alpha=0.72, lw=0.5)


def _strip(axes: Axes, timeline: _Timeline, end_s: float) -> None:
    """Draw the heartbeats, and where they stopped."""
    beats = [beat for beat in timeline.beats if 0 <= beat <= timeline.end_s]
    axes.vlines(beats, 0, 1, color=sentinel(ROLES["loop"]), linewidth=0.8)
    pauses = timeline.pauses
    for start, stop in pauses:
        axes.axvspan(start, stop, color=sentinel("stall"), alpha=0.85, lw=0)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_locator(NullLocator())
    level_axis(axes)
    axes.grid(visible=False)
    axes.set_xlim(0, end_s * 1.02)
    axes.set_xlabel("time, s", fontsize=page.SMALL)
    if timeline.beats:
        write(axes, "event loop", (0, 1), (0, 3))
    if pauses:
        longest = words.seconds(max(stop - start for start, stop in pauses))
        write(axes, f"blocked for {longest} at longest", (1, 1), (0, 3), "stall", ha="right")
