"""Any quantity against any other: lines through medians, one panel or several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from casebook import words
from casebook.charts import series
from casebook.charts.figure import HALF_WIDTH, WIDTH, Chart, chart
from casebook.charts.lines import Limit, continued, panel
from casebook.charts.origins import origin
from casebook.charts.series import Point, Quantity, Series


def against(
    frame: pd.DataFrame,
    x: str | Mapping[str, str],
    y: str | Sequence[str] | Mapping[str, str],
    by: str | Sequence[str] = "stack",
    *,
    title: str,
    name: str = "",
    limits: Mapping[str, Limit] | None = None,
    log: Mapping[str, bool] | None = None,
) -> Chart:
    """One quantity against another, one line for each value of `by`, a label at its end.

    frame: runs (x, y, the columns of `by`; and, where they are known, stack, client, source,
    measured_at, colour). x, y: numeric columns, or {column: what it is called}; `peak_mb` is
    made of peak_rss_kib. Several y make one panel each, side by side, under each other on a
    phone. limits: {label: a level, or y as a function of x}, drawn in the first panel. log:
    {column: whether its axis is logarithmic}; by themselves they are where nothing is 0 and x
    spans a decade, y also where lines end a decade apart. Reference rows are half-filled,
    published ones hollow; where the reference machine only goes on from where this one stopped,
    both make one line with a mark between.
    """
    [across] = series.quantities({"n": "requests (n)"} if x == "n" else x)
    fields: list[_Field] = []
    colours: dict[str, str] = {}
    for each in series.quantities(y):
        lines = series.gather(frame, by, each.column, across.column)
        fields.append(_Field(series.told_apart(lines, colours), across, each, log or {}))
    several = len(fields) > 1
    return chart(
        name,
        [f.drawn((limits or {}) if f is fields[0] else {}, several) for f in fields],
        title=title,
        finding=" ".join(field.finding(brief=several) for field in fields),
        reading=_reading(fields),
        source=origin(frame),
        data=series.drawn(
            frame, *series.listed(by), across.column, *(each.y.column for each in fields)
        ),
        alts=[f"{title}. {field.alt()}" for field in fields],
    )


def _reading(fields: Sequence["_Field"]) -> str:
    """How the marks are read."""
    every = [line for field in fields for line in field.lines]
    logs = [field.x.called for field in fields[:1] if field.logs[0]]
    logs += [field.y.called for field in fields if field.logs[1]]
    runs = any(line.source in (words.LIVE, words.REFERENCE) for line in every)
    return series.reading(
        "Each run a dot, the line through the medians, the band from the smallest to the largest"
        * runs,
        every,
        "dotted: from one machine to the other" * bool(continued(every)),
        f"logarithmic: {words.join(logs)}" * bool(logs),
    )


@dataclass(frozen=True)
class _Field:
    """The lines of one panel, and what they say."""

    lines: list[Series]
    x: Quantity
    y: Quantity
    log: Mapping[str, bool]

    def drawn(self, limits: Mapping[str, Limit], beside: bool) -> Figure:
        """The drawing; beside: others stand beside it."""
        titles = self.x.title, self.y.title
        width = HALF_WIDTH if beside else WIDTH
        return panel(self.lines, limits, titles=titles, logs=self.logs, width=width)

    @property
    def logs(self) -> tuple[bool, bool]:
        """Which of its axes are logarithmic."""
        xs, ys = zip(*(dot for line in self.lines for dot in line.dots), strict=True)
        x, y = self.x.column, self.y.column
        wide = series.is_log(self.log.get(x), series.spans_a_decade(xs), xs, x)
        usual = min(ys) > 0 and (wide or self._far_apart())
        return wide, series.is_log(self.log.get(y), usual, ys, y)

    def alt(self) -> str:
        """Every line at the largest x that all have, and the ends of the field at the smallest."""
        first, last = self._common()
        return f"{self._each(last)} {self._ends(first)}" if first != last else self._each(last)

    def finding(self, brief: bool) -> str:
        first, last = self._common()
        if len(self._xs()) == 1 and first != last:
            return f"{self._ends(first)} {self._ends(last)}"
        many = brief or len(self._points(last)) > series.SPELLED
        text = self._ends(last) if many else self._each(last)
        least = {series.ranked(self._points(x))[0].label for x in (first, last)}
        return f"{text} {self._ends(first)}" if len(least) > 1 else text

    def _far_apart(self) -> bool:
        """Whether the lines end a decade apart."""
        ends = series.ranked(self._points(self._common()[1]))
        return series.spans_a_decade([point.middle for point in ends])

    def _common(self) -> tuple[float, float]:
        """The smallest and the largest x that every line has."""
        shared = set.intersection(*self._xs())
        return (min(shared), max(shared)) if shared else (min(map(max, self._xs())),) * 2

    def _xs(self) -> list[set[float]]:
        """Where each line has runs; it is one line too where the reference machine goes on."""
        found: dict[tuple[str, bool], set[float]] = {}
        for line in self.lines:
            found.setdefault((line.name, line.source == words.PUBLISHED), set()).update(line.xs)
        return list(found.values())

    def _points(self, x: float) -> list[Point]:
        return [line.points[x] for line in self.lines if x in line.points]

    def _each(self, x: float) -> str:
        return self.y.each(self._points(x), self._at(x))

    def _ends(self, x: float) -> str:
        return self.y.ends(self._points(x), self._at(x))

    def _at(self, x: float) -> str:
        """ "At n = 10, ", "At latency = 5 ms, " """
        called = "n" if self.x.column == "n" else self.x.called
        return f"At {called} = {words.tick(x)} {self.x.unit}".rstrip() + ", "
