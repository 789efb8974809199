"""Direct labels at the ends of lines, moved apart so that no two overlap."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import IdentityTransform

from casebook.charts.figure import SMALL, size_of, width_of, wrapped
from casebook.colours import sentinel

#: From the axes to a label, in points: room for the leader line.
GAP = 16
_AIR = 2
#: The characters of a line of a label.
_WRAP = 17


@dataclass(frozen=True)
class EndLabel:
    """A label for a line that ends at (x, y) in the data's units."""

    text: str
    x: float
    y: float
    colour: str


def room(figure, labels: Sequence[EndLabel]) -> float:
    """How wide the margin must be that takes these labels, in points."""
    widths = [width_of(figure, wrapped(label.text, _WRAP)) for label in labels]
    return GAP + max(widths, default=0) + 2


def apart(centres: Sequence[float], heights: Sequence[float], low: float, high: float) -> list:
    """Centres moved as little as needed so that boxes of these heights do not overlap.

    All stay between low and high if they fit there at all; their order is kept.
    """
    clusters: list[tuple[list[int], float]] = []  # members from below, and the lower edge

    def lower_edge(members: list[int]) -> float:
        offset, wanted = 0.0, []
        for i in members:
            wanted.append(centres[i] - heights[i] / 2 - offset)
            offset += heights[i]
        return max(low, min(sum(wanted) / len(wanted), high - offset))

    for i in sorted(range(len(centres)), key=centres.__getitem__):
        members, edge = [i], lower_edge([i])
        while clusters and clusters[-1][1] + sum(heights[j] for j in clusters[-1][0]) > edge:
            members = clusters.pop()[0] + members
            edge = lower_edge(members)
        clusters.append((members, edge))
    placed = list(centres)
    for members, edge in clusters:
        for i in members:
            placed[i] = edge + heights[i] / 2
            edge += heights[i]
    return placed


def draw(axes: Axes, labels: Sequence[EndLabel]) -> None:
    """Write the labels right of the axes, each joined to the end of its line.

    The axes must have their final position and limits.
    """
    figure = axes.figure
    width, height = size_of(axes)
    right = axes.get_window_extent().x1
    texts = [
        figure.text(
            (right + GAP) / width,
            0,
            wrapped(label.text, _WRAP),
            color=sentinel(label.colour),
            fontsize=SMALL,
            va="center",
            linespacing=1.15,
            gid=f"label-{i}",
        )
        for i, label in enumerate(labels)
    ]
    ends = [axes.transData.transform((label.x, label.y)) for label in labels]
    heights = [text.get_window_extent().height + _AIR for text in texts]
    placed = apart([end[1] for end in ends], heights, 0, height)
    for text, end, y in zip(texts, ends, placed, strict=True):
        text.set_y(y / height)
        xs = [end[0] + 4, right + 4, right + GAP - 3]
        leader = Line2D(xs, [end[1], end[1], y], color=text.get_color(), linewidth=0.8, alpha=0.8)
        leader.set_transform(IdentityTransform())
        figure.add_artist(leader)
