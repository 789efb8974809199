"""Any quantity against any other: lines through medians, one panel or several."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from casebook import words
from casebook.charts.figure import HALF_WIDTH, WIDTH, Chart, chart
from casebook.charts.lines import all_xs, panel, reading, refuse_log, spans_a_decade
from casebook.charts.origins import origin
from casebook.charts.series import Series, gather, quantity, spread, told_apart

#: So many lines are spelled out in a caption; of more, it names the ends.
_SPELLED = 4


def against(
    frame: pd.DataFrame,
    x: str,
    y: str | Sequence[str],
    by: str | Sequence[str] = "stack",
    *,
    title: str,
    name: str = "",
    x_label: str | None = None,
    y_label: str | Mapping[str, str] | None = None,
    unit: str | Mapping[str, str] | None = None,
    log_x: bool | None = None,
    log_y: bool | None = None,
    limit: float | Mapping[str, float] | None = None,
    limit_label: str = "limit",
    expected: Callable[[float], float] | None = None,
    expected_label: str = "expected",
    labels: Mapping | None = None,
    colours: Mapping | None = None,
) -> Chart:
    """One quantity against another, one line for each value of `by`, a label at its end.

    frame: runs (x, y, the columns of `by`; and, where they are known, stack, client, source,
    measured_at). x, y: numeric columns; `peak_mb` is made of peak_rss_kib. Several y make one
    panel each, side by side, under each other on a phone. Reference rows are half-filled,
    published ones hollow; where the reference machine only goes on from where this one
    stopped, both make one line with a mark between.

    x_label, y_label: what the columns are called ("certificate loads"); unit: of y ("ms").
    limit: a level to be drawn, limit_label its name. expected: y as a function of x. Those of
    y belong to the first y, or are given as {column: …}. log_x, log_y: by themselves
    logarithmic where nothing is 0 and x spans a decade, y also where lines end a decade apart.
    labels, colours: for some lines, by their value in `by`, their stack, their client,
    (stack, client) or the name they have; colours are names of colours.COLOURS.
    """
    ys = [y] if isinstance(y, str) else list(y)
    x_name, x_unit = quantity(x, x_label or ("requests (n)" if x == "n" else None))
    x_title = f"{x_name}, {x_unit}" if x_unit else x_name
    panels = _panels(frame, x, ys, by, labels, colours)
    drawings, alts, findings, logs = [], [], [], {}
    for column, lines in panels.items():
        called, its_unit = quantity(column, _of(y_label, column, ys), _of(unit, column, ys))
        level = _of(limit, column, ys)
        law = _of(expected, column, ys)
        guides: dict[str, Callable] = {expected_label: law} if law else {}
        if level is not None:
            guides[limit_label] = lambda _, level=level: level
        refuse_log(log_x, all_xs(lines), x)
        refuse_log(log_y, [low for series in lines for low in series.lows], column)
        wide = spans_a_decade(all_xs(lines)) if log_x is None else log_x
        high = _positive(lines) and (wide or _far_apart(lines)) if log_y is None else log_y
        drawings.append(
            panel(
                lines,
                guides,
                x_title=x_title,
                y_title=f"{called}, {its_unit}" if its_unit else called,
                log_x=wide,
                log_y=high,
                width=WIDTH if len(ys) == 1 else HALF_WIDTH,
            )
        )
        logs[called] = high

        def at(value: float) -> str:
            return _at(x, x_name, x_unit, value)

        alts.append(f"{title}. {_alt(lines, called, its_unit, at)}")
        findings.append(_finding(lines, called, its_unit, at, brief=len(ys) > 1))
    every = [series for lines in panels.values() for series in lines]
    ends = "fastest to slowest" if ys == ["wall_s"] else "smallest to largest"
    return chart(
        name,
        drawings,
        title=title,
        finding=" ".join(findings),
        reading=reading(every, wide, all(logs.values()), ends) + _some(logs) + ".",
        source=origin(frame),
        alts=alts,
    )


def _panels(frame, x, ys, by, labels, colours) -> dict[str, list[Series]]:
    """The lines of each panel; a line has the same colour in all of them."""
    gathered = {column: gather(frame, by, column, x, labels, colours) for column in ys}
    every = iter(told_apart([series for lines in gathered.values() for series in lines]))
    return {column: [next(every) for _ in lines] for column, lines in gathered.items()}


def _some(logs: Mapping[str, bool]) -> str:
    """Which panels are logarithmic upwards, where not all are."""
    named = [called for called, log in logs.items() if log]
    return f"; {words.join(named)} logarithmic" if 0 < len(named) < len(logs) else ""


def _of(asked, column: str, ys: Sequence[str]):
    if isinstance(asked, Mapping):
        return asked.get(column)
    return asked if column == ys[0] else None


def _positive(lines: Sequence[Series]) -> bool:
    return all(low > 0 for series in lines for low in series.lows)


def _far_apart(lines: Sequence[Series]) -> bool:
    """Whether the lines end a decade apart."""
    ranked = _ranked(lines, _common(lines)[1])
    return len(ranked) > 1 and spans_a_decade([middle for middle, *_ in ranked])


def _at(x: str, name: str, unit: str, value: float) -> str:
    if x == "n":
        return f"At n = {words.tick(value)}"
    return f"At {name} {words.tick(value)} {unit}" if unit else f"At {words.tick(value)} {name}"


def _alt(lines: Sequence[Series], called: str, unit: str, at: Callable) -> str:
    """Every line at the largest x that all have, and the ends of the field at the smallest."""
    first, last = _common(lines)
    spelled = "; ".join(f"{s.label} {spread(s, i, unit)}" for s, i in _having(lines, last))
    text = f"{at(last)}, {called}: {spelled}."
    comparison = _comparison(lines, last, called)
    if comparison:
        text += f" {comparison}"
    if first != last:
        text += f" {_ends(lines, first, called, unit, at)}"
    return text


def _finding(lines: Sequence[Series], called: str, unit: str, at: Callable, brief: bool) -> str:
    first, last = _common(lines)
    if len({series.name for series in lines}) == 1 and first != last:
        return _ends(lines, first, called, unit, at) + " " + _ends(lines, last, called, unit, at)
    there = _having(lines, last)
    if brief or len(there) > _SPELLED:
        text = _ends(lines, last, called, unit, at)
    else:
        spelled = "; ".join(f"{s.label} {spread(s, i, unit)}" for s, i in there)
        text = f"{at(last)}, {called}: {spelled}. {_comparison(lines, last, called)}".rstrip()
    least = [_ranked(lines, x)[0][1] for x in (first, last) if _ranked(lines, x)]
    if len(set(least)) > 1:
        text += f" {_ends(lines, first, called, unit, at)}"
    return text


def _common(lines: Sequence[Series]) -> tuple[float, float]:
    """The smallest and the largest x that every line has, published ones aside."""
    found: dict[str, set[float]] = {}
    for series in lines:
        if series.source != words.PUBLISHED:
            found.setdefault(series.name, set()).update(series.xs)
    sets = list(found.values()) or [set(series.xs) for series in lines]
    shared = set.intersection(*sets)
    return (min(shared), max(shared)) if shared else (min(map(max, sets)),) * 2


def _having(lines: Sequence[Series], x: float) -> list[tuple[Series, int]]:
    return [(series, series.xs.index(x)) for series in lines if x in series.xs]


def _ranked(lines: Sequence[Series], x: float) -> list[tuple[float, str, Series, int]]:
    return sorted(
        (
            (s.medians[i], s.label, s, i)
            for s, i in _having(lines, x)
            if s.source != words.PUBLISHED
        ),
        key=lambda entry: entry[:2],
    )


def _ends(lines: Sequence[Series], x: float, called: str, unit: str, at: Callable) -> str:
    """The least and the most at one x: "At n = 10, wall time: 1.05 s (a) to 3.2 s (b)."."""
    ranked = _ranked(lines, x)
    if len(ranked) < 2:
        return "".join(f"{at(x)}, {called}: {spread(s, i, unit)}." for *_, s, i in ranked)
    (low, least, *_), (high, most, *_) = ranked[0], ranked[-1]
    text = f"{at(x)}, {called}: {words.amount(low, unit)} ({least}) to "
    text += f"{words.amount(high, unit)} ({most})"
    if not 0 < low < high:
        return f"{text}."
    return f"{text}, {words.times(high / low)} {_as(called)}."


def _as(called: str) -> str:
    return "as long" if "time" in called else "as much"


def _comparison(lines: Sequence[Series], x: float, called: str) -> str:
    ranked = [entry for entry in _ranked(lines, x) if entry[2].colour != "control"]
    if len(ranked) < 2 or ranked[0][0] <= 0 or ranked[-1][0] < 1.5 * ranked[0][0]:
        return ""
    (low, least, *_), (high, most, *_) = ranked[0], ranked[-1]
    return f"{words.capital(most)}: {words.times(high / low)} {_as(called)} as {least}."
