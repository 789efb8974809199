"""Any quantity against any other: lines through medians, one panel or several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from casebook import words
from casebook.charts import series
from casebook.charts.captions import Caption
from casebook.charts.curves import Limit, continued, panel
from casebook.charts.figure import HALF_WIDTH, WIDTH, Chart, chart
from casebook.charts.origins import origin
from casebook.charts.series import Point, Quantity, Series
from casebook.laboratory.rounds import as_list
from casebook.mistakes import for_readers


@for_readers
def against(  # noqa: PLR0913 - a chapter's call, each keyword about the picture
    frame: pd.DataFrame,
    x: str | Mapping[str, str],
    y: str | Sequence[str] | Mapping[str, str],
    by: str | Sequence[str] = "stack",
    *,
    title: str,
    name: str = "",
    limits: Mapping[str, Limit] | None = None,
    log: Mapping[str, bool] | None = None,
    roles: Mapping[str, str] | None = None,
) -> Chart:
    """Draw one quantity against another, a line for each value of `by`, with a label at its end.

    frame: runs (x, y, the columns of `by`; and, if they are known, stack, client, source,
    measured_at, colour). x, y: numeric columns, or {column: its name}; `peak_mb` is computed from
    peak_rss_kib. Several y make one panel each, side by side, or one below the other on a phone.
    limits: {label: a level, or y as a function of x}, drawn in the first panel. log: {column:
    whether its axis is logarithmic}; by default an axis is, if nothing on it is 0 and x spans a
    decade; y also if lines end a decade apart. roles: {a line's name or its value of `by`: its
    role}, of colours.ROLES; by default that of the verdict in its runs, if that tells the lines
    apart. Reference rows are half-filled, published ones
    hollow. If the reference machine only continues from where this one stopped, both make one line
    with a mark between them.
    """
    [across] = series.quantities({"n": "requests (n)"} if x == "n" else x)
    fields: list[_Field] = []
    colours: dict[str, str] = {}
    for quantity in series.quantities(y):
        lines = series.gather(frame, by, quantity.column, across.column, roles)
        fields.append(_Field(series.assign_colours(lines, colours), across, quantity, log or {}))
    several = len(fields) > 1
    return chart(
        name,
        [f.draw((limits or {}) if f is fields[0] else {}, several) for f in fields],
        Caption(
            title,
            finding=" ".join(field.finding(brief=several) for field in fields),
            clause=_clause(fields),
            reading=_reading(fields),
            source=origin(frame),
        ),
        data=series.chart_data(
            frame, *as_list(by), across.column, *(field.y.column for field in fields)
        ),
        alts=[f"{title}. {field.alt()}" for field in fields],
    )


def _clause(fields: Sequence["_Field"]) -> str:
    """Return what a reader has to know of the scales: which are logarithmic."""
    logs = [field.x.name for field in fields[:1] if field.logs[0]]
    logs += [field.y.name for field in fields if field.logs[1]]
    return f"Logarithmic: {words.join(logs)}." if logs else ""


def _reading(fields: Sequence["_Field"]) -> str:
    """Return how to read the marks."""
    lines = [line for field in fields for line in field.lines]
    runs = any(line.source in (words.LIVE, words.REFERENCE) for line in lines)
    return series.reading(
        "Each run a dot, the line through the medians, the band from the smallest to the largest"
        * runs,
        lines,
        "dotted: from one machine to the other" * bool(continued(lines)),
    )


@dataclass(frozen=True)
class _Field:
    """The lines of one panel, and their description."""

    lines: list[Series]
    x: Quantity
    y: Quantity
    log: Mapping[str, bool]

    def draw(self, limits: Mapping[str, Limit], is_narrow: bool) -> Figure:
        """Draw the panel; is_narrow: others stand beside it."""
        titles = self.x.title, self.y.title
        width = HALF_WIDTH if is_narrow else WIDTH
        return panel(self.lines, limits, titles=titles, logs=self.logs, width=width)

    @property
    def logs(self) -> tuple[bool, bool]:
        """Return which of the two axes are logarithmic."""
        xs, ys = zip(*(dot for line in self.lines for dot in line.dots), strict=True)
        x, y = self.x.column, self.y.column
        log_x = series.is_log(self.log.get(x), series.spans_a_decade(xs), xs, x)
        default = min(ys) > 0 and (log_x or self._far_apart())
        return log_x, series.is_log(self.log.get(y), default, ys, y)

    def alt(self) -> str:
        """Describe every line at the largest x that all have, and the extremes at the smallest."""
        first, last = self._common()
        return (
            f"{self._describe_all(last)} {self._describe_range(first)}"
            if first != last
            else self._describe_all(last)
        )

    def finding(self, brief: bool) -> str:
        first, last = self._common()
        if len(self._xs()) == 1 and first != last:
            return f"{self._describe_range(first)} {self._describe_range(last)}"
        many = brief or len(self._points(last)) > series.SPELLED
        text = self._describe_range(last) if many else self._describe_all(last)
        lowest = {series.ranked(self._points(x))[0].label for x in (first, last)}
        return f"{text} {self._describe_range(first)}" if len(lowest) > 1 else text

    def _far_apart(self) -> bool:
        """Return whether the lines end a decade apart."""
        order = series.ranked(self._points(self._common()[1]))
        return series.spans_a_decade([point.middle for point in order])

    def _common(self) -> tuple[float, float]:
        """Return the smallest and the largest x that every line has."""
        shared = set.intersection(*self._xs())
        return (min(shared), max(shared)) if shared else (min(map(max, self._xs())),) * 2

    def _xs(self) -> list[set[float]]:
        """Return the x of each line; a line that the reference machine continues is one line."""
        xs_by_line: dict[tuple[str, bool], set[float]] = {}
        for line in self.lines:
            xs_by_line.setdefault((line.name, line.source == words.PUBLISHED), set()).update(
                line.xs
            )
        return list(xs_by_line.values())

    def _points(self, x: float) -> list[Point]:
        return [line.points[x] for line in self.lines if x in line.points]

    def _describe_all(self, x: float) -> str:
        return self.y.describe_all(self._points(x), self._prefix(x))

    def _describe_range(self, x: float) -> str:
        return self.y.describe_range(self._points(x), self._prefix(x))

    def _prefix(self, x: float) -> str:
        """Return the beginning of a sentence: "At n = 10, ", "At latency = 5 ms, "."""
        name = "n" if self.x.column == "n" else self.x.name
        return f"At {name} = {words.tick(x)} {self.x.unit}".rstrip() + ", "
