"""When each of some books arrived: a curve for each reader, from none to all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from casebook import words
from casebook.charts.figure import (
    SMALL,
    TEXT,
    WIDTH,
    Chart,
    chart,
    drawing,
    extent,
    key_mark,
    place,
)
from casebook.charts.origins import origin
from casebook.charts.rows import FILL
from casebook.charts.series import columns, completed, groups
from casebook.colours import sentinel
from casebook.errors import UsageError

#: The height of a reader's row, and of the curve in it, in points.
_ROW, _CURVE = 56, 36

#: So many readers are spelled out in a caption; more are put together.
_SPELLED = 4


@dataclass(frozen=True)
class _Visit:
    """Times in seconds, ascending; slow: positions in them of the slow books."""

    label: str
    colour: str
    source: str
    times: tuple[float, ...]
    slow: tuple[int, ...]

    @property
    def others(self) -> list[float]:
        return [at for i, at in enumerate(self.times) if i not in self.slow]

    @property
    def before(self) -> int:
        """How many other books were in before the first slow one."""
        return self.slow[0] if self.slow else len(self.times)


def arrivals(
    frame: pd.DataFrame,
    by: str | Sequence[str] = "client",
    *,
    title: str = "When the books arrive",
    name: str = "",
    labels: Mapping | None = None,
    colours: Mapping | None = None,
) -> Chart:
    """A row for each reader: how many of its books are in, against time; the slow one marked.

    frame: one row a book (the columns of `by`, book, at_s, slow; and, where they are known,
    repeat, source, measured_at), as bookstore.visits.arrivals gives it. at_s: seconds since
    the visit began. slow: whether this book is one; or, in words, which one is ("7: 1 s").
    Of several repeats the first is drawn. labels, colours: as in `against`.
    """
    columns(frame, "book", "at_s", "slow")
    whole = frame
    if "repeat" in frame:
        frame = frame[frame["repeat"] == frame["repeat"].min()]
    visits = [_visit(*part) for part in groups(completed(frame), by, labels, colours)]
    told = " ".join(_said(visit) for visit in visits)
    return chart(
        name,
        _drawing(visits),
        title=title,
        finding=_brief(visits) if len(visits) > _SPELLED else told,
        reading=_reading(len(whole) > len(frame)),
        source=origin(frame),
        alts=[f"{title}. {told}"],
        key=_key(visits),
    )


def _visit(named: str, colour: str, rows: pd.DataFrame) -> _Visit:
    rows = rows.sort_values("at_s", kind="stable")
    if rows["book"].duplicated().any():
        twice = rows.loc[rows["book"].duplicated(), "book"].iloc[0]
        raise UsageError(
            f"{named} has book {twice} twice: say what tells its visits apart, "
            "as by=['client', 'order']"
        )
    source = rows["source"].iloc[0]
    slow = [_is_slow(*pair) for pair in zip(rows["book"], rows["slow"], strict=True)]
    return _Visit(
        label=named if source == words.LIVE else f"{named}, {source}",
        colour=colour,
        source=source,
        times=tuple(map(float, rows["at_s"])),
        slow=tuple(i for i, it in enumerate(slow) if it),
    )


def _is_slow(book, slow) -> bool:
    """Whether a book is slow, of which `slow` says yes or no, or which ones are."""
    if isinstance(slow, str):
        return str(book) in [each.partition(":")[0].strip() for each in slow.split(";")]
    return bool(slow)


def _drawing(visits: Sequence[_Visit]) -> Figure:
    height = _ROW * len(visits) + 44
    last = max(visit.times[-1] for visit in visits)
    with drawing(WIDTH, height) as figure:
        ends = [figure.text(0, 0, _end(visit), fontsize=SMALL) for visit in visits]
        right = max(extent(end).width for end in ends) + 14
        for i, (visit, end) in enumerate(zip(visits, ends, strict=True)):
            axes = figure.add_subplot(len(visits), 1, i + 1)
            bottom = height - _ROW * (i + 1)
            place(axes, 6, bottom, right, height - bottom - _CURVE)
            _curve(axes, visit, last)
            figure.text(6 / WIDTH, (bottom + _CURVE + 3) / height, visit.label, fontsize=SMALL)
            end.set(x=1 - (right - 10) / WIDTH, y=(bottom + _CURVE / 2) / height, va="center")
            end.set_linespacing(1.2)
            if i < len(visits) - 1:
                axes.tick_params(labelbottom=False, length=0)
        axes.set_xlabel("time, s", fontsize=TEXT)
    return figure


def _curve(axes: Axes, visit: _Visit, last: float) -> None:
    colour = sentinel(visit.colour)
    xs = [0.0, *visit.times, last * 1.03]
    ys = [0, *range(1, len(visit.times) + 1), len(visit.times)]
    axes.fill_between(xs, ys, step="post", color=colour, alpha=0.22, lw=0)
    axes.step(xs, ys, where="post", color=colour, linewidth=1.8)
    axes.plot(
        [visit.times[i] for i in visit.slow],
        [i + 1 for i in visit.slow],
        linestyle="none",
        marker="D",
        markersize=6,
        color=sentinel("stall"),
        fillstyle=FILL[visit.source],
        markerfacecoloralt=sentinel("ground"),
        clip_on=False,
        zorder=4,
    )
    axes.set_xlim(0, last * 1.03)
    axes.set_ylim(0, len(visit.times) * 1.02)
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    axes.yaxis.set_major_locator(NullLocator())
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words.tick(round(value, 9))))


def _end(visit: _Visit) -> str:
    """The number behind a curve: how many of the others were in before the slow book."""
    if not visit.slow:
        return f"all {len(visit.times):,} in\n{words.seconds(visit.times[-1])}"
    return f"{visit.before:,} of {len(visit.others):,}\nbefore it"


def _said(visit: _Visit) -> str:
    label, others = words.capital(visit.label), visit.others
    if not visit.slow:
        text = f"{label}: all {len(others):,} books in {words.seconds(visit.times[-1])}"
        return f"{text}, half of them by {words.seconds(others[(len(others) - 1) // 2])}."
    text = f"{label}: {visit.before:,} of {len(others):,} other books before the slow one, "
    text += f"which came at {words.seconds(visit.times[visit.slow[0]])}"
    if not others:
        return f"{text}."
    half, last = others[(len(others) - 1) // 2], others[-1]
    return f"{text}; half of them by {words.seconds(half)}, the last at {words.seconds(last)}."


def _brief(visits: Sequence[_Visit]) -> str:
    """The readers together that had as many books before the slow one."""
    having: dict[str, list[str]] = {}
    for visit in visits:
        end = _end(visit).replace("\n", " ") if visit.slow else "no slow book"
        having.setdefault(end.replace("before it", "before the slow book"), []).append(visit.label)
    return " ".join(f"{words.capital(end)}: {'; '.join(of)}." for end, of in having.items())


def _reading(repeated: bool) -> str:
    text = "Each curve rises from no book to all of them, a step for each as it is read."
    return f"{text} Drawn: the first visit of each." if repeated else text


def _key(visits: Sequence[_Visit]) -> list[tuple[str, str]]:
    if not any(visit.slow for visit in visits):
        return []
    return [(key_mark('<path d="M13 2L19 8L13 14L7 8Z"/>', "stall"), "the slow book")]
