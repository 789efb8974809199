"""Any quantity, run by run: a row for each thing, every run a dot, the median in numbers."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from casebook import words
from casebook.charts import series
from casebook.charts.figure import Chart, key_mark
from casebook.charts.origins import origin
from casebook.charts.rows import MARKERS, row_chart
from casebook.charts.series import Part, Point, Quantity
from casebook.errors import UsageError

#: So many rows are spelled out in a caption; of more, it names the ends.
_SPELLED = 4


def dots(
    frame: pd.DataFrame,
    value: str | Sequence[str] | Mapping[str, str],
    by: str | Sequence[str] = "stack",
    *,
    title: str,
    name: str = "",
    axis: str = "",
    order: str | Iterable | None = None,
    limits: Mapping[str, float] | None = None,
    log: bool | None = None,
) -> Chart:
    """A row for each value of `by`: every run a dot, the median marked and written behind it.

    frame: runs (value, the columns of `by`; and, where they are known, stack, client, source,
    measured_at, colour). value: a numeric column, or up to three of the same unit, which share a
    row, say the client's CPU and the server's; or {column: what it is called}. Reference rows are
    half-filled, published ones hollow, each in a row of their own that says so.

    axis: what to write at it instead. order: "value" for the smallest median first, or the values
    of `by` in their order; else as the rows come. limits: {label: value}, dotted uprights. log:
    by itself where the values span a decade; a linear scale starts at 0.
    """
    asked = series.quantities(value)
    if not 1 <= len(asked) <= len(MARKERS):
        raise UsageError(f"a row takes 1 to {len(MARKERS)} values, not {len(asked)}")
    frame = series.usable(frame, *(each.column for each in asked))
    parts = _ordered(series.groups(frame, by), by, asked[0].column, order)
    findings, alts = zip(*(_said(each, parts) for each in asked), strict=True)
    called, unit = words.join(each.called for each in asked), asked[0].unit
    marks = zip(MARKERS.values(), asked, strict=False)
    key = [(key_mark(mark, "ink"), each.called) for mark, each in marks]
    return row_chart(
        parts,
        [each.column for each in asked],
        lambda median, _: words.amount(median, unit),
        axis=axis or Quantity("", called, unit).title,
        log=log,
        limits=limits or {},
        name=name,
        title=title,
        finding=" ".join(findings),
        source=origin(frame),
        alts=[f"{title}. {' '.join(alts)}"],
        key=key if len(key) > 1 else (),
    )


def _ordered(parts: list[Part], by, value: str, order) -> list[Part]:
    if order is None:
        return parts
    if order == "value":
        return sorted(parts, key=lambda part: part.rows[value].median())
    wanted = [str(each) for each in order]
    column = by if isinstance(by, str) else next(iter(by))

    def place(part: Part) -> int:
        ways = [part.name, str(part.rows[column].iloc[0])]
        return next((wanted.index(way) for way in ways if way in wanted), len(wanted))

    return sorted(parts, key=place)


def _said(asked: Quantity, parts: Sequence[Part]) -> tuple[str, str]:
    """What the medians are: for the caption, and row by row."""
    numbers = [(part.label, part.rows[asked.column]) for part in parts]
    points = [Point(label, float(of.median()), of.min(), of.max()) for label, of in numbers]
    ranked = sorted(points, key=lambda point: point.middle)
    called, unit = words.capital(asked.called), asked.unit
    each = (f"{p.label} {words.amount(p.middle, unit)}{p.spread(unit)}" for p in points)
    alt = f"{called}: {'; '.join(each)}. {series.ratio(ranked, 'as much')}".rstrip()
    if len(points) <= _SPELLED:
        return alt, alt
    # Where there are few medians, which rows have the same one: "30 for a; b. 0 for c."
    having: dict[str, list[str]] = {}
    for point in points:
        having.setdefault(words.amount(point.middle, unit), []).append(point.label)
    if len(having) > 3 or len(having) == len(points):
        return f"{called}: from {series.ends(ranked, unit, 'as much')}", alt
    shared = (f"{middle} for {'; '.join(of)}." for middle, of in having.items())
    return f"{called}: {' '.join(shared)}", alt
