"""HTTP/2 frames between a client and a server, one arrow each, from above."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from casebook import words
from casebook.charts.captions import Caption
from casebook.charts.figure import SMALL, WIDTH, Chart, chart, drawing, place, width_of
from casebook.charts.origins import origin
from casebook.charts.series import chart_data, require_columns
from casebook.colours import sentinel
from casebook.errors import UsageError
from casebook.mistakes import for_readers

SENDERS = ("client", "server")

#: The colours of frames by type; all others belong to the connection itself.
COLOURS = {
    "HEADERS": "stage-3",
    "CONTINUATION": "stage-3",
    "PUSH_PROMISE": "stage-3",
    "DATA": "pycurl",
    "RST_STREAM": "stall",
    "GOAWAY": "stall",
}

#: The most arrows that are drawn.
_MOST = 40

#: The two ends in points from the left, and the height of a line of text and of an arrow.
_CLIENT, _SERVER = 42, WIDTH - 8
_LINE, _ARROW = 13.5, 15


@dataclass(frozen=True)
class _Arrow:
    """Consecutive frames of one kind. moment: of the first, since the beginning, in ms, as text."""

    moment: str
    sender: str
    type: str
    count: int
    details: list[str]

    @property
    def label(self) -> str:
        return f"{self.type} × {self.count}" if self.count > 1 else self.type


@for_readers
def frames(
    frame: pd.DataFrame, *, title: str = "The frames of one request", name: str = ""
) -> Chart:
    """Draw the frames of a connection in the order in which they were sent, an arrow for each.

    frame: one row per frame: t_s (seconds), sender (client or server), type (SETTINGS, HEADERS,
    DATA …), stream (0: the connection), flags (separated by |), length (bytes of its payload); and,
    if they are known, source and measured_at. Consecutive frames of one kind are one arrow. Only
    the first arrows are drawn; a line says how many more there were.
    """
    require_columns(frame, "t_s", "sender", "type", "stream", "flags", "length")
    unknown = set(frame["sender"]) - set(SENDERS)
    if unknown:
        raise UsageError(f"a frame's sender is client or server, not {unknown.pop()!r}")
    frame = frame.sort_values("t_s", kind="stable")
    arrows = _arrows(frame)
    finding = _finding(frame)
    sentences = (f"{a.moment} ms, {a.sender}: {a.label}, {', '.join(a.details)}." for a in arrows)
    return chart(
        name,
        _drawing(arrows[:_MOST], sum(arrow.count for arrow in arrows[_MOST:])),
        Caption(
            title,
            finding=finding,
            clause="From above in the order of sending, not to scale; grey: about the connection "
            "itself.",
            source=origin(frame),
        ),
        data=chart_data(frame, "t_s", "sender", "type", "stream", "flags", "length"),
        alts=[f"{title}. {finding} {' '.join(sentences)}"],
    )


def _arrows(frame: pd.DataFrame) -> list[_Arrow]:
    """Merge consecutive frames of one kind, with their number and their bytes together."""
    start_s = frame["t_s"].iloc[0]

    def kind(row) -> tuple:
        return row.sender, row.type, row.stream, row.flags.replace("|", ", ")

    arrows = []
    for (sender, type_, stream, flags), rows in groupby(frame.itertuples(), kind):
        run = list(rows)
        length = sum(row.length for row in run)
        size = f"{length:,} byte{'s' * (length != 1)}" if length else "empty"
        details = [f"stream {stream}" if stream else "connection", size, *[flags] * bool(flags)]
        t_s = run[0].t_s - start_s
        moment = f"{t_s * 1000:.1f}" if t_s < 0.1 else f"{t_s * 1000:,.0f}"
        arrows.append(_Arrow(moment, sender, type_, len(run), details))
    return arrows


def _drawing(arrows: Sequence[_Arrow], rest: int) -> Figure:
    with drawing(WIDTH, 10) as probe:
        texts = [_lines(probe, arrow) for arrow in arrows]
    heights = [_LINE * len(lines) + _ARROW for _, lines in texts]
    height = 22 + sum(heights) + (16 if rest else 4)
    with drawing(WIDTH, height) as figure:
        axes = figure.add_subplot()
        place(axes, 0, 0, 0, 0)
        axes.set(xlim=(0, WIDTH), ylim=(height, 0))
        axes.axis("off")
        axes.text(2, 3, "ms", fontsize=SMALL, va="top", color=sentinel("faint"))
        axes.text(_CLIENT, 3, "client", fontsize=SMALL, va="top", fontweight="bold")
        axes.text(_SERVER, 3, "server", fontsize=SMALL, va="top", ha="right", fontweight="bold")
        axes.vlines([_CLIENT, _SERVER], 20, height, color=sentinel("faint"), linewidth=0.9)
        y = 22.0
        for arrow, (indent, lines), tall in zip(arrows, texts, heights, strict=True):
            _draw(axes, arrow, indent, lines, y)
            y += tall
        if rest:
            text = f"and {rest:,} more frame{'s' if rest != 1 else ''}"
            axes.text(_CLIENT + 8, y + 2, text, fontsize=SMALL, va="top")
    return figure


def _lines(figure: Figure, arrow: _Arrow) -> tuple[float, list[str]]:
    """Return where the details of a frame begin, behind its type, and the lines that they need."""
    indent = width_of(figure, arrow.label) * 1.12 + 6
    room = _SERVER - _CLIENT - 16 - indent
    lines = arrow.details[:1]
    for detail in arrow.details[1:]:
        longer = f"{lines[-1]} · {detail}"
        if width_of(figure, longer) > room:
            lines.append(detail)
        else:
            lines[-1] = longer
    return indent, lines


def _draw(axes: Axes, arrow: _Arrow, indent: float, lines: Sequence[str], y: float) -> None:
    colour = sentinel(COLOURS.get(arrow.type, "control"))
    indent_left = _CLIENT + 8
    type_text = axes.text(indent_left, y + 2, arrow.label, fontsize=SMALL, va="top", color=colour)
    type_text.set_fontweight("bold")
    for i, line in enumerate(lines):
        axes.text(indent_left + indent, y + 2 + _LINE * i, line, fontsize=SMALL, va="top")
    level = y + _LINE * len(lines) + 7
    tips = (_CLIENT, _SERVER) if arrow.sender == "client" else (_SERVER, _CLIENT)
    style = {"arrowstyle": "-|>,head_length=0.5,head_width=0.25", "shrinkA": 0, "shrinkB": 0}
    style |= {"color": colour, "linewidth": 1.6}
    axes.annotate("", (tips[1], level), (tips[0], level), arrowprops=style)
    axes.text(2, level, arrow.moment, fontsize=SMALL, va="center")


def _finding(frame: pd.DataFrame) -> str:
    """Count the frames of each kind and direction, and say how long each stream was open."""
    phrases = []
    for sender in SENDERS:
        kinds = Counter(frame[frame["sender"] == sender]["type"])
        counts = words.join(f"{count:,} {kind}" for kind, count in kinds.items())
        phrases.append(f"the {sender} sent {counts or 'nothing'}")
    text = f"{len(frame):,} frames: {'; '.join(phrases)}."
    of_streams = frame[frame["stream"] != 0]
    streams = of_streams["stream"].unique()
    if len(streams) != 1:
        return text + f" They belong to {len(streams):,} streams." * (len(streams) > 0)
    took_s = of_streams["t_s"].iloc[-1] - of_streams["t_s"].iloc[0]
    duration = words.seconds(took_s) if took_s > 0 else "0 ms"
    data = of_streams[(of_streams["type"] == "DATA") & (of_streams["sender"] == "server")]
    size = data["length"].sum()
    return f"{text} Stream {streams[0]} took {duration} and brought {size:,} bytes of data."
