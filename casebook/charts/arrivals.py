"""When each of some books arrived: a curve for each reader, from none to all of them."""

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
from casebook.charts.series import SPELLED, Part, chart_data, in_rows, require_columns, usable
from casebook.colours import sentinel
from casebook.errors import UsageError
from casebook.laboratory.rounds import as_list
from casebook.mistakes import for_readers

#: The height of a reader's row, and of the curve in it, in points.
_ROW, _CURVE = 58, 36


@dataclass(frozen=True)
class _Visit:
    """Times in seconds, ascending; slow: positions in them of the slow books."""

    part: Part
    times: list[float]
    slow: list[int]

    @property
    def other_times(self) -> list[float]:
        return [time for i, time in enumerate(self.times) if i not in self.slow]

    @property
    def end(self) -> str:
        """Return the text behind a curve: how many books were in before the first slow one."""
        if not self.slow:
            return f"all {len(self.times):,} in\n{words.seconds(self.times[-1])}"
        return f"{self.share_before}\nbefore {'it' if len(self.slow) == 1 else 'the first'}"

    @property
    def share_before(self) -> str:
        """Return how many of the other books were in before the first slow one: "9 of 99"."""
        return f"{self.slow[0]:,} of {len(self.other_times):,}"

    @property
    def slow_one(self) -> str:
        return "slow one" if len(self.slow) == 1 else "first slow one"


@for_readers
def arrivals(
    frame: pd.DataFrame,
    by: str | Sequence[str] = "client",
    *,
    title: str = "When the books arrive",
    name: str = "",
) -> Chart:
    """Draw a row for each reader: how many of its books are in, against time, the slow one marked.

    frame: one row per book (the columns of `by`, book, at_s, slow; and, if they are known,
    repeat, source, measured_at, colour), as bookstore.arrivals returns it. at_s: seconds
    since the visit began. slow: whether this book is slow; or, in words, which ones are ("7: 1 s").
    Of several repeats the first is drawn.
    """
    require_columns(frame, "book", "at_s", "slow")
    first = frame[frame["repeat"] == frame["repeat"].min()] if "repeat" in frame else frame
    visits = [_visit(part) for part in in_rows(usable(first, "at_s"), by)]
    description = " ".join(_describe(visit) for visit in visits)
    clause = "Each curve rises from no book to all of them, a step for each as it is read."
    slow = key_mark(MARKERS["D"], "stall"), "the slow book"
    return page.chart(
        name,
        _drawing(visits),
        Caption(
            title,
            finding=_summarise(visits) if len(visits) > SPELLED else description,
            clause=clause,
            reading="Drawn: the first visit of each." * (len(frame) > len(first)),
            source=origin(first),
        ),
        data=chart_data(first, *as_list(by), "book", "at_s", "slow"),
        alts=[f"{title}. {description}"],
        key=[slow] if any(visit.slow for visit in visits) else (),
    )


def _visit(part: Part) -> _Visit:
    rows = part.rows.sort_values("at_s", kind="stable")
    if rows["book"].duplicated().any():
        book = rows.loc[rows["book"].duplicated(), "book"].iloc[0]
        raise UsageError(
            f"{part.name} has book {book} twice: say what tells its visits apart, "
            "as by=['client', 'order']"
        )
    slow = list(map(_is_slow, rows["book"], rows["slow"]))
    return _Visit(part, rows["at_s"].to_list(), [i for i, is_slow in enumerate(slow) if is_slow])


def _is_slow(book: object, slow: bool | str) -> bool:
    if isinstance(slow, str):
        return str(book) in [number.partition(":")[0].strip() for number in slow.split(";")]
    return bool(slow)


def _drawing(visits: Sequence[_Visit]) -> Figure:
    height = _ROW * len(visits) + 44
    last = max(visit.times[-1] for visit in visits)
    with page.drawing(WIDTH, height) as figure:
        right = max(page.width_of(figure, visit.end) for visit in visits) + 14
        for i, visit in enumerate(visits):
            axes = figure.add_subplot()
            bottom = height - _ROW * (i + 1)
            page.place(axes, 6, bottom, right, height - bottom - _CURVE)
            _curve(axes, visit, last * 1.03)
            # Above the mark of a slow book that came last.
            page.write(axes, visit.part.label, (0, 1), (0, 6))
            page.write(axes, visit.end, (1, 0.5), (10, 0), va="center", linespacing=1.2)
            if i < len(visits) - 1:
                axes.tick_params(labelbottom=False, length=0)
        axes.set_xlabel("time, s", fontsize=page.TEXT)
    return figure


def _curve(axes: Axes, visit: _Visit, until_s: float) -> None:
    colour, count = sentinel(visit.part.colour), len(visit.times)
    xs, ys = [0.0, *visit.times, until_s], [*range(count + 1), count]
    axes.fill_between(xs, ys, step="post", color=colour, alpha=0.22, lw=0)
    axes.step(xs, ys, where="post", color=colour, linewidth=1.8)
    page.marks(
        axes,
        [visit.times[i] for i in visit.slow],
        [i + 1 for i in visit.slow],
        "stall",
        source=visit.part.source,
        marker="D",
        markersize=6,
        clip_on=False,
        zorder=4,
    )
    axes.set_xlim(0, until_s)
    axes.set_ylim(0, count * 1.02)
    axes.yaxis.set_major_locator(NullLocator())
    page.level_axis(axes)


def _describe(visit: _Visit) -> str:
    label, other_times = words.capital(visit.part.label), visit.other_times
    half = words.seconds(other_times[(len(other_times) - 1) // 2]) if other_times else ""
    if not visit.slow:
        duration = words.seconds(visit.times[-1])
        return f"{label}: all {len(other_times):,} books in {duration}, half of them by {half}."
    text = f"{label}: {visit.share_before} other books before the {visit.slow_one}, "
    text += f"which came at {words.seconds(visit.times[visit.slow[0]])}"
    if not other_times:
        return f"{text}."
    return f"{text}; half of them by {half}, the last at {words.seconds(other_times[-1])}."


def _summarise(visits: Sequence[_Visit]) -> str:
    """Group the readers that had the same number of books before the slow one."""
    phrases = [
        f"{v.share_before} before the {v.slow_one}" if v.slow else "no slow book" for v in visits
    ]
    labels_by_phrase = words.grouped(zip(phrases, (v.part.label for v in visits), strict=True))
    return " ".join(
        f"{words.capital(end)}: {'; '.join(labels)}." for end, labels in labels_by_phrase.items()
    )
