"""A frame in the parts that a chart shows: what each is called, its colour, its numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from casebook import words
from casebook.charts import tables
from casebook.colours import COLOURS, chosen, known, taken, wished
from casebook.errors import UsageError

#: Columns that tell runs apart whatever a chart groups by, and what is taken where one is not
#: there or not known.
_ALWAYS_APART = {"client": "grequests", "scheme": "https", "trust": "", "source": words.LIVE}

#: Columns that say what a row is of, and where it comes from.
_TELLING = (
    "stack", "client", "scheme", "trust", "n", "delay_s", "repeat", "verdict", "source", "instead",
    "measured_at", "published_in",
)  # fmt: skip

#: Lines that would share a colour get these, in this order.
SPARE = ("stage-2", "indigo", "stage-4", "magenta", "olive", "stage-3", "steel", "brown", "plum")

#: So many parts are spelled out in a caption; of more, it names the ends.
SPELLED = 4


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a frame that belong together; name: the same for those that differ in source only."""

    name: str
    colour: str
    rows: pd.DataFrame

    @property
    def source(self) -> str:
        return self.rows["source"].iloc[0]

    @property
    def label(self) -> str:
        return self.name if self.source == words.LIVE else f"{self.name}, {self.source}"


@dataclass(frozen=True)
class Point:
    """The median of some runs of a part, and the smallest and the largest of them."""

    label: str
    published: bool
    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, part: Part, runs: pd.Series) -> "Point":
        numbers = map(float, (runs.median(), runs.min(), runs.max()))
        return cls(part.label, part.source == words.PUBLISHED, *numbers)

    def spread(self, unit: str) -> str:
        """The smallest and the largest where they differ visibly: " (1.05–1.27)", else ""."""
        say = words.number if unit else words.amount
        low, high = say(self.low), say(self.high)
        return "" if low == high else f" ({low}–{high})"


@dataclass(frozen=True)
class Quantity:
    """A numeric column, what it is called, and its unit, "" for a count."""

    column: str
    called: str
    unit: str

    @property
    def title(self) -> str:
        return f"{self.called}, {self.unit}" if self.unit else self.called

    def amount(self, point: Point) -> str:
        """A median in its unit."""
        return words.amount(point.middle, self.unit)

    def each(self, points: Sequence[Point], at: str = "") -> str:
        """Every median, and how far they lie apart where it is half as much again or more:
        "At n = 10, wall time: A 1.05 s (1.02–1.20); B 10.7 s. The most, B: 10 times as long as A."

        at: what the sentence begins with, "At n = 10, ".
        """
        told = (f"{p.label} {self.amount(p)}{p.spread(self.unit)}" for p in points)
        text, order = self._sentence(at, "; ".join(told)), ranked(points)
        times = self._times(order)
        if not times or order[-1].middle < 1.5 * order[0].middle:
            return text
        return f"{text} The most, {order[-1].label}: {times} as {order[0].label}."

    def ends(self, points: Sequence[Point], at: str = "") -> str:
        """The least and the most: "At n = 10, wall time: 1.05 s (A) to 10.7 s (B), 10 times as
        long." Of one alone, as `each`."""
        order = ranked(points)
        if len(order) < 2:
            return self.each(points, at)
        told = " to ".join(f"{self.amount(p)} ({p.label})" for p in (order[0], order[-1]))
        return self._sentence(at, ", ".join(filter(None, (told, self._times(order)))))

    def _sentence(self, at: str, told: str) -> str:
        return f"{words.capital(at + self.called)}: {told}."

    def _times(self, order: Sequence[Point]) -> str:
        """How often the first is in the last: "10 times as long"; "" where it is not."""
        least, most = order[0].middle, order[-1].middle
        if not 0 < least < most:
            return ""
        return f"{words.times(most / least)} as {'long' if 'time' in self.called else 'much'}"


def ranked(points: Sequence[Point]) -> list[Point]:
    """Those that were not published, from the least to the most; where all were, all of them."""
    ours = [point for point in points if not point.published] or points
    return sorted(ours, key=lambda point: (point.middle, point.label))


@dataclass(frozen=True, eq=False)
class Series(Part):
    """One line. points: of the runs at each x, ascending; dots: every run as (x, y)."""

    points: dict[float, Point]
    dots: list[tuple[float, float]]

    @property
    def xs(self) -> list[float]:
        return list(self.points)

    @property
    def medians(self) -> list[float]:
        return [point.middle for point in self.points.values()]


def columns(frame: pd.DataFrame, *needed: str) -> None:
    """Refuse a frame without some columns, or without rows."""
    missing = [name for name in needed if name not in frame]
    if missing:
        raise UsageError(f"the chart needs a column {' and '.join(missing)} in the frame")
    if frame.empty:
        raise UsageError("the chart got no runs; measure some, or look at the filter before it")


def quantities(asked: str | Sequence[str] | Mapping[str, str]) -> list[Quantity]:
    """The quantities that a chart is asked for, by their columns: `wall_s`: wall time in s.

    A mapping says what they are called instead: {"cpu_ms": "processor time"}, {"locks": "locks
    taken, thousand"}. A unit that it does not say is the one that the column's name ends in.
    """
    texts = asked if isinstance(asked, Mapping) else {}
    found = []
    for column in [asked] if isinstance(asked, str) else asked:
        own, unit = _without_unit(tables.header(column))
        called, its_unit = _without_unit(texts.get(column, own))
        found.append(Quantity(column, called, its_unit or unit))
    return found


def _without_unit(text: str) -> tuple[str, str]:
    called, _, unit = text.rpartition(", ")
    return (called, unit) if called else (unit, "")


def usable(frame: pd.DataFrame, *asked: str) -> pd.DataFrame:
    """The rows with a number in all columns asked for, and the columns that tell runs apart.

    `peak_mb` is made of `peak_rss_kib`. Raises UsageError where there are none.
    """
    missing = {name: usual for name, usual in _ALWAYS_APART.items() if name not in frame}
    frame = _in_megabytes(frame.assign(**missing).fillna(_ALWAYS_APART))
    columns(frame, *asked)
    frame = frame.dropna(subset=list(asked))
    columns(frame)
    return frame


def drawn(frame: pd.DataFrame, *asked: str) -> pd.DataFrame:
    """The columns of a frame that a chart draws, and those that say of what and whence a row is."""
    frame = _in_megabytes(frame)
    wanted = dict.fromkeys([*asked, *_TELLING])
    return frame[[column for column in wanted if column in frame]]


def _in_megabytes(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with `peak_mb` in millions of bytes, if it has `peak_rss_kib`, of 1,024 each."""
    if "peak_rss_kib" in frame and "peak_mb" not in frame:
        return frame.assign(peak_mb=frame["peak_rss_kib"] * 1024 / 1e6)
    return frame


def listed(by: str | Sequence[str]) -> list[str]:
    """One column or several, as a list."""
    return [by] if isinstance(by, str) else list(by)


def groups(frame: pd.DataFrame, by: str | Sequence[str]) -> list[Part]:
    """A usable frame in parts, in order of appearance.

    by: the column or columns that name a part; client, scheme, trust and source always tell
    parts apart as well, and are named where they differ. A column `colour` (names of
    colours.COLOURS) is taken where it is there, else the colour of what the part is.
    """
    by = listed(by)
    columns(frame, *by)
    keys = list(dict.fromkeys([*by, *_ALWAYS_APART]))
    rows = [rows for _, rows in frame.groupby(keys, sort=False, dropna=False)]
    firsts = [each.iloc[0] for each in rows]
    wishes = [_wished(first, by) for first in firsts]
    parts = [Part(*own) for own in zip(_names(firsts, by), wishes, rows, strict=True)]
    # A colour that nobody chose makes room for the others.
    return told_apart(parts, {part.name: part.colour for part in parts if part.colour in COLOURS})


def gather(
    frame: pd.DataFrame,
    by: str | Sequence[str] = "stack",
    y: str = "wall_s",
    x: str = "n",
) -> list[Series]:
    """The lines in a frame of runs, in the order in which they first appear; by: as in `groups`."""
    found = []
    for part in groups(usable(frame, x, y), by):
        points = {_whole(at): Point.of(part, ys) for at, ys in part.rows.groupby(x)[y]}
        dots = list(part.rows[[x, y]].itertuples(index=False, name=None))
        found.append(Series(**vars(part), points=points, dots=dots))
    return found


def told_apart(parts: Sequence[Part], given: dict[str, str]) -> list:
    """The same parts with a colour of its own for each name; the first keeps a shared one.

    Plain HTTP is always grey, and what was published, which is drawn otherwise, may share too.
    given: the colours of names that have one, to which those of the others are added.
    """
    for part in parts:
        ways = [taken(part.colour), *SPARE, *COLOURS]
        may_share = part.colour == "control" or part.source == words.PUBLISHED
        free = (colour for colour in ways if may_share or colour not in given.values())
        given.setdefault(part.name, next(free, ways[0]))
    return [replace(part, colour=given[part.name]) for part in parts]


def reading(marks: str, parts: Sequence[Part], *further: str) -> str:
    """How a chart of these parts is read: its marks, those of each source, and what is further."""
    sources = {part.source for part in parts}
    said = [
        marks,
        "half-filled: the reference machine" * (words.REFERENCE in sources),
        "hollow: published" * (words.PUBLISHED in sources),
        "grey: plain HTTP" * any(part.colour == "control" for part in parts),
        *further,
    ]
    return f"{words.capital('; '.join(filter(None, said)))}."


def span(values: pd.Series) -> str:
    """The smallest and the largest where they differ visibly: "0.97" or "0.97 to 1.3"."""
    low, high = words.number(values.min(), 2), words.number(values.max(), 2)
    return low if low == high else f"{low} to {high}"


def is_log(asked: bool | None, usual: bool, values: Sequence[float], what: str) -> bool:
    """Whether a scale is logarithmic: as asked, else as usual.

    Raises UsageError when it is asked to be and something is not above 0.
    """
    if asked and min(values) <= 0:
        raise UsageError(
            f"{what} has a {words.number(min(values))}, which a logarithmic scale cannot show: "
            "leave the scale to the chart, or those rows out"
        )
    return usual if asked is None else asked


def spans_a_decade(values: Sequence[float]) -> bool:
    """Whether all are positive, and the largest is at least ten times the smallest."""
    return min(values) > 0 and max(values) >= 10 * min(values)


def _whole(value) -> float:
    return int(value) if float(value).is_integer() else float(value)


def _names(firsts: Sequence[pd.Series], by: Sequence[str]) -> list[str]:
    """A name for each part, different wherever the parts differ in more than their source.

    A published one is told apart from published ones only: each says that it is.
    """
    ways = {first["client"] for first in firsts} & {"grequests", "threads"}
    trusts = {first["trust"] for first in firsts} - {""}
    kinds = [(*map(str, (first[c] for c in by)), first["client"]) for first in firsts]
    names = [", ".join(_words(first, by, ways, trusts)) for first in firsts]
    own = [(name, it["source"] == words.PUBLISHED) for name, it in zip(names, firsts, strict=True)]
    for each in set(own):
        same = [i for i, other in enumerate(own) if other == each]
        clients = {firsts[i]["client"] for i in same}
        if len({kinds[i] for i in same}) > 1:
            for i in same:
                more = firsts[i]["client"] if len(clients) > 1 else firsts[i].get("stack", "")
                told = words.client_label(more) if len(clients) > 1 else str(more)
                names[i] = f"{names[i]}, {told}".removesuffix(", ")
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


def _wished(first: pd.Series, by: Sequence[str]) -> str:
    """The colour of a part, or what a spare one is taken by (colours.wished)."""
    asked = first.get("colour")
    if isinstance(asked, str) and asked:
        return known(asked)
    if first["scheme"] == "http":
        return "control"
    if {"stack", "client"}.isdisjoint(by):
        its = [chosen(column, first[column]) for column in by]
        spare = [taken(str(first[column])) for column in by if column in words.VALUES]
        if found := next(filter(None, its + spare), ""):
            return found
    return wished(first.get("stack", ""), first["client"])
