"""Any quantity, run by run: a row for each thing, every run a dot, the median in numbers."""

from collections.abc import Mapping, Sequence

import pandas as pd

from casebook import words
from casebook.charts.figure import Chart, chart, key_mark
from casebook.charts.lines import refuse_log, spans_a_decade
from casebook.charts.origins import origin
from casebook.charts.rows import MARKERS, Dots, Row, in_rows, reading
from casebook.charts.series import columns, completed, groups, quantity
from casebook.errors import UsageError

#: So many rows are spelled out in a caption; of more, it names the ends.
_SPELLED = 4

_MARKS = {
    "o": '<circle cx="13" cy="8" r="5"/>',
    "D": '<path d="M13 2L19 8L13 14L7 8Z"/>',
    "^": '<path d="M13 2L19 13L7 13Z"/>',
}


def dots(
    frame: pd.DataFrame,
    value: str | Sequence[str],
    by: str | Sequence[str] = "stack",
    *,
    title: str,
    name: str = "",
    value_label: str | Mapping[str, str] | None = None,
    unit: str | None = None,
    x_label: str | None = None,
    log: bool | None = None,
    zero: bool = True,
    limit: float | None = None,
    limit_label: str = "limit",
    order: str | Sequence | None = None,
    labels: Mapping | None = None,
    colours: Mapping | None = None,
) -> Chart:
    """A row for each value of `by`: every run a dot, the median marked and written behind it.

    frame: runs (value, the columns of `by`; and, where they are known, stack, client, source,
    measured_at). value: a numeric column, or up to three of the same unit, which share a row,
    say the client's CPU and the server's. Reference rows are half-filled, published ones
    hollow, each in a row of their own that says so.

    value_label, unit: what the column holds ("certificate loads", "ms"); for several values
    {column: label}. x_label: what to write at the axis instead. log: by itself where the
    values span a decade; zero: a linear scale starts there. limit: a dotted upright, and
    limit_label its name. order: "value" for the smallest median first, or the labels or
    values of `by` in their order; else as the rows come. labels, colours: as in `against`.
    """
    values = [value] if isinstance(value, str) else list(value)
    if not 1 <= len(values) <= len(MARKERS):
        raise UsageError(f"a row takes 1 to {len(MARKERS)} values, not {len(values)}")
    frame = completed(frame)
    columns(frame, *values)
    frame = frame.dropna(subset=values)
    columns(frame)
    known = {column: quantity(column, _of(value_label, column, values), unit) for column in values}
    its_unit = known[values[0]][1]
    parts = _ordered(groups(frame, by, labels, colours), by, values[0], order)
    rows = [_row(named, colour, part, values, its_unit) for named, colour, part in parts]
    every = [number for column in values for number in frame[column]]
    refuse_log(log, every, words.join(values))
    if log is None:
        log = spans_a_decade(every)
    drawn = in_rows(
        rows,
        x_title=x_label or _title(known),
        log=log,
        zero=zero,
        limits=[(limit, limit_label)] if limit is not None else [],
        stems=zero and not log,
        medians=True,
    )
    said = {column: _medians(rows, i) for i, column in enumerate(values)}
    alts = [_spelled(known[column][0], said[column], its_unit) for column in values]
    brief = [
        alt
        if len(rows) <= _SPELLED
        else _shared(known[column][0], said[column], its_unit)
        or _ends(known[column][0], said[column], its_unit)
        for column, alt in zip(values, alts, strict=True)
    ]
    several = len(values) > 1
    return chart(
        name,
        drawn,
        title=title,
        finding=" ".join(brief),
        reading=reading(frame, log, medians=True),
        source=origin(frame),
        alts=[f"{title}. {' '.join(alts)}"],
        key=[
            (key_mark(_MARKS[MARKERS[i]], "ink"), known[column][0])
            for i, column in enumerate(values)
        ]
        if several
        else (),
    )


def _of(asked, column: str, values: Sequence[str]) -> str | None:
    if isinstance(asked, Mapping):
        return asked.get(column)
    return asked if column == values[0] else None


def _ordered(parts: list, by, value: str, order) -> list:
    if order is None:
        return parts
    if order == "value":
        return sorted(parts, key=lambda part: part[2][value].median())
    wanted = [str(each) for each in order]
    column = by if isinstance(by, str) else next(iter(by))

    def place(part) -> int:
        ways = [part[0], str(part[2][column].iloc[0])]
        return next((wanted.index(way) for way in ways if way in wanted), len(wanted))

    return sorted(parts, key=place)


def _row(named: str, colour: str, part: pd.DataFrame, values: Sequence[str], unit: str) -> Row:
    source = part["source"].iloc[0]
    label = named if source == words.LIVE else f"{named}, {source}"
    ends = [words.amount(part[column].median(), unit) for column in values]
    lines = (Dots(part, c, colour, end) for c, end in zip(values, ends, strict=True))
    return Row(label, tuple(lines))


def _title(known: Mapping[str, tuple[str, str]]) -> str:
    """The axis: what the values hold, with their unit once."""
    unit = next(iter(known.values()))[1]
    names = words.join(name for name, _ in known.values())
    return f"{names}, {unit}" if unit else names


def _medians(rows: Sequence[Row], i: int) -> list[tuple[str, float, float, float]]:
    """Per row its label, the median, the smallest and the largest of its i-th value."""
    found = []
    for row in rows:
        line = row.lines[i]
        numbers = line.part[line.value]
        found.append((row.label, float(numbers.median()), numbers.min(), numbers.max()))
    return found


def _spelled(called: str, said: Sequence[tuple], unit: str) -> str:
    parts = []
    for label, middle, low, high in said:
        ends = words.amount(low), words.amount(high)
        if unit:
            ends = words.number(low), words.number(high)
        spread = "" if ends[0] == ends[1] else f" ({ends[0]}–{ends[1]})"
        parts.append(f"{label} {words.amount(middle, unit)}{spread}")
    return f"{words.capital(called)}: {'; '.join(parts)}.{_ratio(said)}"


def _shared(called: str, said: Sequence[tuple], unit: str) -> str:
    """Which rows have the same median, where there are few medians: "30 for a; b. 0 for c."."""
    having: dict[str, list[str]] = {}
    for label, middle, *_ in said:
        having.setdefault(words.amount(middle, unit), []).append(label)
    if len(having) > 3 or len(having) == len(said):
        return ""
    parts = (f"{middle} for {'; '.join(labels)}." for middle, labels in having.items())
    return f"{words.capital(called)}: {' '.join(parts)}"


def _ends(called: str, said: Sequence[tuple], unit: str) -> str:
    (least, low, *_), (most, high, *_) = (f(said, key=lambda each: each[1]) for f in (min, max))
    text = f"{words.capital(called)}: from {words.amount(low, unit)} ({least}) "
    text += f"to {words.amount(high, unit)} ({most})"
    return f"{text}, {words.times(high / low)} as much." if low > 0 and high > low else f"{text}."


def _ratio(said: Sequence[tuple]) -> str:
    (least, low, *_), (most, high, *_) = (f(said, key=lambda each: each[1]) for f in (min, max))
    if low <= 0 or high < 1.5 * low:
        return ""
    return f" {words.capital(most)}: {words.times(high / low)} as much as {least}."
