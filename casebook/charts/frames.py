"""HTTP/2 frames between a client and a server, one arrow each, from above."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from casebook import words
from casebook.charts.figure import SMALL, WIDTH, Chart, chart, drawing, place, width_of
from casebook.charts.origins import origin
from casebook.charts.series import columns
from casebook.colours import OF_FRAME, sentinel
from casebook.errors import UsageError

SENDERS = ("client", "server")

#: The two ends in points from the left, and the height of a line of text and of an arrow.
_CLIENT, _SERVER = 42, WIDTH - 8
_LINE, _ARROW = 12, 15


@dataclass(frozen=True)
class _Frame:
    """One frame, or several of a kind in a row; t_s: of the first, length: of all, in bytes."""

    t_s: float
    sender: str
    type: str
    stream: int
    flags: tuple[str, ...]
    length: int
    count: int = 1

    @property
    def called(self) -> str:
        return f"{self.type} × {self.count}" if self.count > 1 else self.type

    @property
    def details(self) -> list[str]:
        """What else there is to say, shortest first: stream, length, flags."""
        where = f"stream {self.stream}" if self.stream else "connection"
        size = f"{self.length:,} byte{'s' if self.length != 1 else ''}" if self.length else "empty"
        return [where, size, *([", ".join(self.flags)] if self.flags else [])]


def frames(
    frame: pd.DataFrame,
    *,
    title: str = "The frames of one request",
    name: str = "",
    most: int = 40,
) -> Chart:
    """The frames of a connection in the order in which they were sent, an arrow for each.

    frame: one row a frame: t_s (seconds), sender (client or server), type (SETTINGS, HEADERS,
    DATA …), stream (0: the connection), flags (text with | or commas, or a list), length
    (bytes of its payload); where they are known source and measured_at. Frames of one kind in
    a row are one arrow. most: arrows that are drawn; how many more there were is said.
    """
    columns(frame, "t_s", "sender", "type", "stream", "flags", "length")
    strange = set(frame["sender"]) - set(SENDERS)
    if strange:
        raise UsageError(f"a frame's sender is client or server, not {strange.pop()!r}")
    sent = [_frame(row) for row in frame.sort_values("t_s", kind="stable").itertuples()]
    together = _together(sent)
    return chart(
        name,
        _drawing(together[:most], sum(each.count for each in together[most:])),
        title=title,
        finding=_finding(sent),
        reading="From above in the order of sending, not to scale; at the left the time, in ms; "
        "grey: about the connection itself.",
        source=origin(frame),
        alts=[f"{title}. {_finding(sent)} {_told(together)}"],
    )


def _frame(row) -> _Frame:
    flags = re.split(r"[|,\s]+", row.flags) if isinstance(row.flags, str) else row.flags
    known = flags if isinstance(flags, Iterable) else ()
    return _Frame(
        t_s=float(row.t_s),
        sender=row.sender,
        type=str(row.type),
        stream=int(row.stream),
        flags=tuple(str(flag) for flag in known if flag),
        length=int(row.length),
    )


def _together(sent: Sequence[_Frame]) -> list[_Frame]:
    """Frames of one kind in a row as one, with their number and their bytes together."""
    found: list[_Frame] = []
    for one in sent:
        last = found[-1] if found else None
        kind = (one.sender, one.type, one.stream, one.flags)
        if last and (last.sender, last.type, last.stream, last.flags) == kind:
            found[-1] = replace(last, length=last.length + one.length, count=last.count + 1)
        else:
            found.append(one)
    return found


def _drawing(shown: Sequence[_Frame], more: int) -> Figure:
    with drawing(WIDTH, 10) as probe:
        texts = [_lines(probe, each) for each in shown]
    heights = [_LINE * len(lines) + _ARROW for _, lines in texts]
    height = 22 + sum(heights) + (16 if more else 4)
    with drawing(WIDTH, height) as figure:
        axes = figure.add_subplot()
        place(axes, 0, 0, 0, 0)
        axes.set(xlim=(0, WIDTH), ylim=(height, 0))
        axes.axis("off")
        axes.text(2, 3, "ms", fontsize=SMALL, va="top", color=sentinel("faint"))
        axes.text(_CLIENT, 3, "client", fontsize=SMALL, va="top", fontweight="bold")
        axes.text(_SERVER, 3, "server", fontsize=SMALL, va="top", ha="right", fontweight="bold")
        axes.vlines([_CLIENT, _SERVER], 20, height, color=sentinel("faint"), linewidth=0.9)
        y, start = 22.0, shown[0].t_s
        for each, (indent, lines), tall in zip(shown, texts, heights, strict=True):
            _draw(axes, each, indent, lines, y, start)
            y += tall
        if more:
            text = f"and {more:,} more frame{'s' if more != 1 else ''}"
            axes.text(_CLIENT + 8, y + 2, text, fontsize=SMALL, va="top")
    return figure


def _lines(figure: Figure, each: _Frame) -> tuple[float, list[str]]:
    """Where the details of a frame begin, behind its type, and the lines that they need."""
    indent = width_of(figure, each.called) * 1.12 + 6
    room = _SERVER - _CLIENT - 16 - indent
    lines = [""]
    for detail in each.details:
        longer = f"{lines[-1]} · {detail}" if lines[-1] else detail
        if lines[-1] and width_of(figure, longer) > room:
            lines.append(detail)
        else:
            lines[-1] = longer
    return indent, lines


def _draw(
    axes: Axes, each: _Frame, indent: float, lines: Sequence[str], y: float, start: float
) -> None:
    colour = sentinel(OF_FRAME.get(each.type, "control"))
    left = _CLIENT + 8
    axes.text(left, y + 2, each.called, fontsize=SMALL, va="top", color=colour, fontweight="bold")
    for i, line in enumerate(lines):
        axes.text(left + indent, y + 2 + _LINE * i, line, fontsize=SMALL, va="top")
    at = y + _LINE * len(lines) + 7
    ends = (_CLIENT, _SERVER) if each.sender == "client" else (_SERVER, _CLIENT)
    axes.annotate(
        "",
        (ends[1], at),
        (ends[0], at),
        arrowprops={
            "arrowstyle": "-|>,head_length=0.5,head_width=0.25",
            "color": colour,
            "linewidth": 1.6,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )
    axes.text(2, at, _milliseconds(each.t_s - start), fontsize=SMALL, va="center")


def _milliseconds(t_s: float) -> str:
    return f"{t_s * 1000:.1f}" if t_s < 0.1 else f"{t_s * 1000:,.0f}"


def _finding(sent: Sequence[_Frame]) -> str:
    """How many frames of which kind went which way, and how long each stream was open."""
    ways = []
    for sender in SENDERS:
        kinds = Counter(each.type for each in sent if each.sender == sender)
        counted = words.join(f"{count:,} {kind}" for kind, count in kinds.items())
        ways.append(f"the {sender} sent {counted or 'nothing'}")
    text = f"{len(sent):,} frames: {'; '.join(ways)}."
    streams = sorted({each.stream for each in sent if each.stream})
    if len(streams) != 1:
        return text + (f" They belong to {len(streams):,} streams." if streams else "")
    times = [each.t_s for each in sent if each.stream]
    took = words.seconds(times[-1] - times[0]) if times[-1] > times[0] else "0 ms"
    size = sum(each.length for each in sent if each.type == "DATA" and each.sender == "server")
    return f"{text} Stream {streams[0]} took {took} and brought {size:,} bytes of data."


def _told(together: Sequence[_Frame]) -> str:
    """Every frame in words, in order."""
    start = together[0].t_s
    return " ".join(
        f"{_milliseconds(each.t_s - start)} ms, {each.sender}: {each.called}, "
        f"{', '.join(each.details)}."
        for each in together
    )
