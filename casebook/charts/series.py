"""Runs gathered into the lines of a chart: what each is called, its colour, its numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import pandas as pd

from casebook import words
from casebook.charts import tables
from casebook.colours import COLOURS, colour_name, colour_of_value, is_spare
from casebook.errors import UsageError

#: Columns that tell runs apart whatever a chart groups by, and what is taken where one is not
#: there or not known.
_ALWAYS_APART = {
    "client": "grequests",
    "scheme": "https",
    "trust": "",
    "source": words.LIVE,
}

#: Lines that would share a colour get these, in this order.
_SPARE = ("stage-2", "indigo", "stage-4", "magenta", "olive", "stage-3", "steel", "brown", "plum")


@dataclass(frozen=True)
class Series:
    """One line: some quantity by another, say wall time by number of requests.

    xs, medians, lows, highs: one entry per x, ascending. dots: every run as (x, y). name: the
    same for all lines that differ only in their source; label says the source too.
    """

    name: str
    label: str
    colour: str
    source: str
    xs: tuple[float, ...]
    medians: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    dots: tuple[tuple[float, float], ...]


def columns(frame: pd.DataFrame, *needed: str) -> None:
    """Refuse a frame without some columns, or without rows."""
    missing = [name for name in needed if name not in frame]
    if missing:
        raise UsageError(f"the chart needs a column {' and '.join(missing)} in the frame")
    if frame.empty:
        raise UsageError("the chart got no runs; measure some, or look at the filter before it")


def completed(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the columns that always tell runs apart, and with peak memory in MB."""
    filled = {
        name: frame[name].fillna(usual) if name in frame else usual
        for name, usual in _ALWAYS_APART.items()
    }
    frame = frame.assign(**filled)
    if "peak_rss_kib" in frame and "peak_mb" not in frame:
        frame = frame.assign(peak_mb=frame["peak_rss_kib"] * 1024 / 1e6)
    return frame


def groups(
    frame: pd.DataFrame,
    by: str | Sequence[str],
    labels: Mapping | None = None,
    colours: Mapping | None = None,
) -> list[tuple[str, str, pd.DataFrame]]:
    """A completed frame in parts, in order of appearance: (name, colour, rows).

    by: the column or columns that name a part; client, scheme, trust and source always tell
    parts apart as well, and are named where they differ. labels, colours: in place of what
    the part would get, by its name, its value in `by` (a tuple where those are several), its
    (stack, client), its stack or its client. Parts that differ only in source share a name.
    """
    by = [by] if isinstance(by, str) else list(by)
    columns(frame, *by)
    keys = list(dict.fromkeys([*by, *_ALWAYS_APART]))
    parts = [rows for _, rows in frame.groupby(keys, sort=False, dropna=False)]
    firsts = [rows.iloc[0] for rows in parts]
    names = _names(firsts, by)
    unknown = [name for name in (colours or {}).values() if name not in COLOURS]
    if unknown:
        raise UsageError(f"there is no colour {unknown[0]!r}; choose of: {', '.join(COLOURS)}")
    asked = [_given(colours, *each) for each in zip(firsts, repeat(by), names)]
    own = [given or _colour(first, by) for given, first in zip(asked, firsts, strict=True)]
    free = [not a and _is_spare(f, c) for a, f, c in zip(asked, firsts, own, strict=True)]
    own = _made_room(names, own, free)
    called = [_given(labels, *each) or each[2] for each in zip(firsts, repeat(by), names)]
    return list(zip(called, own, parts, strict=True))


def _made_room(names: Sequence[str], own: Sequence[str], free: Sequence[bool]) -> list[str]:
    """The colours, where those that nobody chose make room for the others."""
    given = {name: c for name, c, spare in zip(names, own, free, strict=True) if not spare}
    for name, colour in zip(names, own, strict=True):
        ways = [colour, *_SPARE, *COLOURS]
        given.setdefault(name, next((c for c in ways if c not in given.values()), colour))
    return [given[name] for name in names]


def gather(
    frame: pd.DataFrame,
    by: str | Sequence[str] = "stack",
    y: str = "wall_s",
    x: str = "n",
    labels: Mapping | None = None,
    colours: Mapping | None = None,
) -> list[Series]:
    """The series in a frame of runs, in the order in which they first appear.

    Rows without a number in `y` are left out. by, labels, colours: as in `groups`.
    """
    frame = completed(frame)
    columns(frame, x, y)
    frame = frame.dropna(subset=[x, y])
    columns(frame)
    found = []
    for name, colour, rows in groups(frame, by, labels, colours):
        source = rows["source"].iloc[0]
        at = rows.groupby(x)[y]
        found.append(
            Series(
                name=name,
                label=name if source == words.LIVE else f"{name}, {source}",
                colour=colour,
                source=source,
                xs=tuple(_whole(value) for value in at.median().index),
                medians=tuple(map(float, at.median())),
                lows=tuple(map(float, at.min())),
                highs=tuple(map(float, at.max())),
                dots=tuple((_whole(a), float(b)) for a, b in rows[[x, y]].itertuples(index=False)),
            )
        )
    return found


def told_apart(lines: Sequence[Series]) -> list[Series]:
    """The same lines with a colour of its own for each name; the first keeps a shared one."""
    given: dict[str, str] = {}
    for line in lines:
        if line.name not in given:
            free = [line.colour, *_SPARE, *COLOURS]
            given[line.name] = next((c for c in free if c not in given.values()), line.colour)
    return [replace(line, colour=given[line.name]) for line in lines]


def quantity(column: str, label: str | None = None, unit: str | None = None) -> tuple[str, str]:
    """What a column holds and its unit: `wall_s` -> ("wall time", "s").

    label: what to call it instead, as "certificate loads" or "wall time, s". unit: its unit.
    """
    known, _, its_unit = tables.header(column).rpartition(", ")
    if not known:
        known, its_unit = its_unit, ""
    if label is not None:
        known, _, last = label.rpartition(", ")
        known, its_unit = (known, last) if known else (last, its_unit)
    return known, its_unit if unit is None else unit


def spread(series: Series, i: int, unit: str = "s") -> str:
    """The median at one x and, where runs differ visibly, the smallest and the largest."""
    values = series.medians[i], series.lows[i], series.highs[i]
    middle, low, high = (words.amount(value) for value in values)
    if unit:
        middle, low, high = (words.number(value) for value in values)
    said = f"{middle} {unit}".rstrip()
    return said if low == high else f"{said} ({low}–{high})"


def _whole(value) -> float:
    return int(value) if float(value).is_integer() else float(value)


def _names(firsts: Sequence[pd.Series], by: Sequence[str]) -> list[str]:
    """A name for each part, different wherever the parts differ in more than their source."""
    ways = {first["client"] for first in firsts} & {"grequests", "threads"}
    trusts = {first["trust"] for first in firsts} - {""}
    kinds = [(*map(str, (first[c] for c in by)), first["client"]) for first in firsts]
    names = [", ".join(_words(first, by, ways, trusts)) for first in firsts]
    for name in {name for name in names if names.count(name) > 1}:
        same = [i for i, other in enumerate(names) if other == name]
        clients = {firsts[i]["client"] for i in same}
        if len({kinds[i] for i in same}) > 1:
            for i in same:
                more = firsts[i]["client"] if len(clients) > 1 else firsts[i].get("stack", "")
                told = words.client_label(more) if len(clients) > 1 else str(more)
                names[i] = f"{name}, {told}".removesuffix(", ")
    return names


def _words(first: pd.Series, by: Sequence[str], ways: set, trusts: set) -> list[str]:
    said = []
    for column in by:
        if column == "stack":
            said.append(_stack_words(first["stack"], first["client"], ways, "client" in by))
        else:
            said.append(words.value_label(column, first[column]))
    if first["scheme"] == "http" and "scheme" not in by:
        said.append("plain HTTP")
    if len(trusts) > 1 and first["trust"] and "trust" not in by:
        said.append(words.value_label("trust", first["trust"]))
    return said


def _stack_words(stack: str, client: str, ways: set, client_is_named: bool) -> str:
    """A stack as a chart calls it: with grequests or threads only where both are shown."""
    if client_is_named or (client == "threads" and len(ways) < 2):
        return words.stack_label(stack)
    label = words.stack_label(stack, client)
    return f"{label}, grequests" if client == "grequests" and len(ways) > 1 else label


def _given(asked: Mapping | None, first: pd.Series, by: Sequence[str], name: str) -> str:
    if not asked:
        return ""
    values = tuple(first[column] for column in by)
    stack, client = first.get("stack", ""), first["client"]
    ways = [name, values, *values, (stack, client), stack, client]
    return next((asked[way] for way in ways if way in asked), "")


def _is_spare(first: pd.Series, colour: str) -> bool:
    of_stack = first.get("stack", ""), first["client"]
    return is_spare(*of_stack) and colour == colour_name(*of_stack)


def _colour(first: pd.Series, by: Sequence[str]) -> str:
    if first["scheme"] == "http":
        return "control"
    if "stack" in by or "client" in by or not (set(by) & set(words.VALUES)):
        return colour_name(first.get("stack", ""), first["client"])
    column = next(column for column in by if column in words.VALUES)
    return colour_of_value(column, first[column])
