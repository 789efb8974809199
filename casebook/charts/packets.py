"""Packets around one that is lost: when each was sent, and how far its receiver could read."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from casebook import words
from casebook.charts import figure as page
from casebook.charts.captions import Caption
from casebook.charts.dots import MARKERS
from casebook.charts.figure import WIDTH, Chart, key_mark
from casebook.charts.origins import origin
from casebook.charts.series import Part, chart_data, in_rows, require_columns, usable
from casebook.colours import sentinel
from casebook.errors import UsageError
from casebook.laboratory.rounds import as_list
from casebook.mistakes import for_readers

#: The height of a visit's row, and of the drawing in it, in points.
_ROW, _FIELD = 118, 92

_NEEDED = ("t_s", "direction", "connection", "seq", "bytes", "is_again", "dropped")


@dataclass(frozen=True)
class _Loss:
    """Packets with data of the connection that lost one, in the order of sending.

    lost_packet, repair: the rows of the lost packet, and of the one that brought its data.
    """

    part: Part
    packets: pd.DataFrame
    lost_packet: pd.Series
    repair: pd.Series

    @property
    def repaired_ms(self) -> float:
        return float(self.repair["ms"])

    @property
    def behind(self) -> int:
        """Count the packets with new data that were sent between the two."""
        rows = self.packets[(self.packets["ms"] > 0) & (self.packets["ms"] < self.repaired_ms)]
        return int((~rows["is_again"].astype(bool)).sum())

    def readable(self) -> tuple[list[float], list[float]]:
        """Return how many bytes the receiver has without a gap, over the time of sending."""
        end_of: dict[int, int] = {}
        readable = int(self.packets["seq"].min())
        times, levels = [float(self.packets["ms"].iloc[0])], [readable]
        for packet in self.packets[~self.packets["dropped"].astype(bool)].itertuples():
            end_of[int(packet.seq)] = int(packet.seq + packet.bytes)
            while candidates := [end for start, end in end_of.items() if start <= readable < end]:
                readable = max(candidates)
            times.append(packet.ms)
            levels.append(readable)
        return times, [level / 1000 for level in levels]


@for_readers
def packets(
    frame: pd.DataFrame,
    by: str | Sequence[str] = "client",
    *,
    title: str = "One lost packet",
    name: str = "",
) -> Chart:
    """Draw a row for each visit: the packets of the connection that lost one, and what can be read.

    frame: one row per packet, as bookstore.line.packets returns it: t_s (seconds, when it was
    sent), direction ("back": from the server), connection, seq (of its first byte), bytes (of
    data), is_again, dropped; the columns of `by`; and, if they are known, source, measured_at,
    colour. Only packets with data from the server are drawn, and only the first loss. Raises
    UsageError for a visit that lost none, or in which the loss was not repaired.
    """
    require_columns(frame, *_NEEDED)
    sent = frame[(frame["direction"] == "back") & (frame["bytes"] > 0)]
    losses = [_loss(part) for part in in_rows(usable(sent, "seq"), by)]
    finding = " ".join(_describe(loss) for loss in losses)
    return page.chart(
        name,
        _drawing(losses),
        Caption(
            title,
            finding=finding,
            clause="Each dot is a packet as its server sends it, higher the later its bytes "
            "belong; below the line is what the client can read.",
            source=origin(sent),
        ),
        data=chart_data(sent, *as_list(by), *_NEEDED),
        key=[
            (key_mark(MARKERS["D"], "stall"), "lost"),
            (key_mark(MARKERS["^"], "ink"), "the same data once more"),
        ],
    )


def _loss(part: Part) -> _Loss:
    rows = part.rows.sort_values("t_s", kind="stable")
    dropped = rows[rows["dropped"].astype(bool)]
    if dropped.empty:
        raise UsageError(f"{part.name} lost no packet: choose a visit that did")
    loss = dropped.iloc[0]
    rows = rows[rows["connection"] == loss["connection"]]
    rows = rows.assign(ms=1000 * (rows["t_s"] - loss["t_s"]))
    covers = (rows["seq"] <= loss["seq"]) & (loss["seq"] < rows["seq"] + rows["bytes"])
    repairs = rows[covers & (rows["ms"] > 0) & ~rows["dropped"].astype(bool)]
    if repairs.empty:
        raise UsageError(f"{part.name} never got what was lost: there is no repair to draw")
    return _Loss(part, rows, rows.loc[loss.name], repairs.iloc[0])


def _drawing(losses: Sequence[_Loss]) -> Figure:
    height = _ROW * len(losses) + 44
    longest_ms = max(loss.repaired_ms for loss in losses)
    limits = -0.25 * longest_ms, 1.3 * longest_ms
    with page.drawing(WIDTH, height) as figure:
        for i, loss in enumerate(losses):
            axes = figure.add_subplot()
            bottom = height - _ROW * (i + 1)
            page.place(axes, 6, bottom, 10, height - bottom - _FIELD)
            _field(axes, loss, limits)
            page.write(axes, loss.part.label, (0, 1), (0, 5))
            if i < len(losses) - 1:
                axes.tick_params(labelbottom=False, length=0)
        axes.set_xlabel("time since the lost packet was sent, ms", fontsize=page.TEXT)
    return figure


def _field(axes: Axes, loss: _Loss, limits: tuple[float, float]) -> None:
    colour = sentinel(loss.part.colour)
    xs, ys = loss.readable()
    xs, ys = [*xs, limits[1]], [*ys, ys[-1]]
    visible = loss.packets[loss.packets["ms"].between(*limits)]
    low = [y for x, y in zip(xs, ys, strict=True) if x <= limits[0]][-1:] or [min(ys)]
    high = max((visible["seq"] + visible["bytes"]).max() / 1000, *ys[-1:])
    room = 0.12 * (high - low[0]) or 1.0
    axes.fill_between(xs, ys, low[0] - room, step="post", color=colour, alpha=0.22, lw=0)
    axes.step(xs, ys, where="post", color=colour, linewidth=1.8)
    rest = visible.drop([loss.lost_packet.name, loss.repair.name])
    for rows, mark_colour, style in (
        (rest, loss.part.colour, {"marker": "o", "markersize": 3.5}),
        (loss.lost_packet.to_frame().T, "stall", {"marker": "D", "markersize": 6, "zorder": 5}),
        (loss.repair.to_frame().T, "ink", {"marker": "^", "markersize": 6.5, "zorder": 5}),
    ):
        tops = (rows["seq"] + rows["bytes"]) / 1000
        page.marks(
            axes, list(rows["ms"]), list(tops), mark_colour, source=loss.part.source, **style
        )
    axes.set_xlim(*limits)
    axes.set_ylim(low[0] - room, high + room)
    axes.yaxis.set_major_locator(NullLocator())
    page.level_axis(axes)


def _describe(loss: _Loss) -> str:
    wait = words.seconds(loss.repaired_ms / 1000)
    behind = f"{loss.behind} packet{'' if loss.behind == 1 else 's'}"
    text = f"{words.capital(loss.part.label)}: the lost packet was sent again after {wait}; "
    return text + f"meanwhile {behind if loss.behind else 'nothing'} followed on its connection."
