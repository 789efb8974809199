"""A frame in the parts that a chart shows: the name, the colour and the numbers of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from casebook import words
from casebook.charts import tables
from casebook.colours import (
    COLOURS,
    ROLES,
    are_roles,
    choice_for,
    colour_of,
    name_or_spare,
    of_role,
    require_colour,
)
from casebook.errors import UsageError
from casebook.laboratory.rounds import as_list

#: Columns that tell runs apart whatever a chart groups by, with the default for a missing one.
_ALWAYS_APART = {"client": "grequests", "scheme": "https", "trust": "", "source": words.LIVE}

#: Columns that say what a row belongs to, and where it comes from.
_IDENTIFYING = (
    "stack", "client", "scheme", "trust", "n", "delay_s", "repeat", "verdict", "source", "instead",
    "measured_at", "published_in",
)  # fmt: skip

#: Lines that would share a colour get these, in this order: no colour of a role is among them.
SPARE = ("indigo", "magenta", "olive", "stage-3", "steel", "brown", "plum")

#: Up to this many parts are spelled out in a caption; of more, it names the extremes.
SPELLED = 4


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a frame that belong together; parts that differ in source only have the same name."""

    name: str
    colour: str
    rows: pd.DataFrame

    @property
    def source(self) -> str:
        """Return where its runs came from: "live", "reference" or "published"."""
        return self.rows["source"].iloc[0]

    @property
    def label(self) -> str:
        """Return its name, with its source if that is not the usual one."""
        return self.name if self.source == words.LIVE else f"{self.name}, {self.source}"


@dataclass(frozen=True)
class Point:
    """The median of some runs of a part, with their smallest and largest."""

    label: str
    published: bool
    middle: float
    low: float
    high: float

    @classmethod
    def from_runs(cls, part: Part, runs: pd.Series) -> "Point":
        """Return the point of some runs of a part."""
        numbers = map(float, (runs.median(), runs.min(), runs.max()))
        return cls(part.label, part.source == words.PUBLISHED, *numbers)

    def spread(self, unit: str) -> str:
        """Return the smallest and the largest if they differ visibly: " (1.05–1.27)", else ""."""
        write = words.number if unit else words.amount
        low, high = write(self.low), write(self.high)
        return "" if low == high else f" ({low}–{high})"


@dataclass(frozen=True)
class Quantity:
    """A numeric column, its name, and its unit, "" for a count."""

    column: str
    name: str
    unit: str

    @property
    def title(self) -> str:
        """Return its name and its unit, for an axis."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    def amount(self, point: Point) -> str:
        """Return a median in its unit."""
        return words.amount(point.middle, self.unit)

    def describe_all(self, points: Sequence[Point], prefix: str = "") -> str:
        """Return every median in words, and how many times as long the most is as the least.

        The latter if it is half as much again or more: "At n = 10, wall time: A 1.05 s (1.02–1.20);
        B 10.7 s. The most, B: 10 times as long as A."

        prefix: the beginning of the sentence, "At n = 10, ".
        """
        medians = (f"{p.label} {self.amount(p)}{p.spread(self.unit)}" for p in points)
        text, order = self._sentence(prefix, "; ".join(medians)), ranked(points)
        times = self._times(order)
        if not times or order[-1].middle < 1.5 * order[0].middle:
            return text
        return f"{text} The most, {order[-1].label}: {times} as {order[0].label}."

    def describe_range(self, points: Sequence[Point], prefix: str = "") -> str:
        """Return the least and the most in words; a single point is described as in `describe_all`.

        Such as "At n = 10, wall time: 1.05 s (A) to 10.7 s (B), 10 times as long."
        """
        order = ranked(points)
        if len(order) < 2:
            return self.describe_all(points, prefix)
        extremes = " to ".join(f"{self.amount(p)} ({p.label})" for p in (order[0], order[-1]))
        return self._sentence(prefix, ", ".join(filter(None, (extremes, self._times(order)))))

    def _sentence(self, prefix: str, statement: str) -> str:
        return f"{words.capital(prefix + self.name)}: {statement}."

    def _times(self, order: Sequence[Point]) -> str:
        """Return how often the last contains the first: "10 times as long"; "" if it does not."""
        least, greatest = order[0].middle, order[-1].middle
        if not 0 < least < greatest:
            return ""
        return f"{words.times(greatest / least)} as {'long' if 'time' in self.name else 'much'}"


def ranked(points: Sequence[Point]) -> list[Point]:
    """Return the points that were not published, from the least to the most; if all were, all."""
    ours = [point for point in points if not point.published] or points
    return sorted(ours, key=lambda point: (point.middle, point.label))


@dataclass(frozen=True, eq=False)
class Series(Part):
    """One line. points: the medians at each x, ascending; dots: every run as (x, y)."""

    points: dict[float, Point]
    dots: list[tuple[float, float]]

    @property
    def xs(self) -> list[float]:
        """Return where it has points."""
        return list(self.points)

    @property
    def medians(self) -> list[float]:
        """Return the medians at `xs`."""
        return [point.middle for point in self.points.values()]


def require_observation(value: Any) -> Any:
    """Return an Observation as it is; refuse anything else."""
    if not (hasattr(value, "frame") and hasattr(value, "stack")):
        raise UsageError(
            f"the observation is of type {type(value).__name__}; give what observe() returned"
        )
    return value


def require_columns(frame: pd.DataFrame, *names: str) -> None:
    """Refuse a frame without some columns, or without rows."""
    missing = [name for name in names if name not in frame]
    if missing:
        nouns = "a column" if len(missing) == 1 else "columns"
        raise UsageError(f"the chart needs {nouns} {words.join(missing)} in the frame")
    if frame.empty:
        raise UsageError("the chart got no runs; measure some, or look at the filter before it")


def quantities(selection: str | Sequence[str] | Mapping[str, str]) -> list[Quantity]:
    """Return the quantities that a chart is to show, by their columns: `wall_s`: wall time in s.

    A mapping renames them: {"cpu_ms": "processor time"}, {"locks": "locks taken, thousand"}. A unit
    that it does not state is the one at the end of the column's name.
    """
    texts = selection if isinstance(selection, Mapping) else {}
    parsed = []
    for column in [selection] if isinstance(selection, str) else selection:
        default_name, unit = _without_unit(tables.header(column))
        name, its_unit = _without_unit(texts.get(column, default_name))
        parsed.append(Quantity(column, name, its_unit or unit))
    return parsed


def _without_unit(text: str) -> tuple[str, str]:
    name, _, unit = text.rpartition(", ")
    return (name, unit) if name else (unit, "")


def usable(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Return the rows with a number in all of these columns, and the columns that tell runs apart.

    `peak_mb` is computed from `peak_rss_kib`. Raises UsageError if there are no such rows.
    """
    missing = {name: default for name, default in _ALWAYS_APART.items() if name not in frame}
    frame = _in_megabytes(frame.assign(**missing).fillna(_ALWAYS_APART))
    require_columns(frame, *names)
    frame = frame.dropna(subset=list(names))
    require_columns(frame)
    return frame


def chart_data(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Return the columns of a frame that a chart draws, and those that name rows and sources."""
    frame = _in_megabytes(frame)
    order = dict.fromkeys([*names, *_IDENTIFYING])
    return frame[[column for column in order if column in frame]]


def _in_megabytes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with `peak_mb` in millions of bytes, if it has `peak_rss_kib`.

    A KiB has 1,024 of them.
    """
    if "peak_rss_kib" in frame and "peak_mb" not in frame:
        return frame.assign(peak_mb=frame["peak_rss_kib"] * 1024 / 1e6)
    return frame


def groups(
    frame: pd.DataFrame, by: str | Sequence[str], roles: Mapping[str, str] | None = None
) -> list[Part]:
    """Divide a usable frame into parts, in order of appearance.

    by: the column or columns that name a part; client, scheme, trust and source always tell
    parts apart as well, and are named if they differ. roles: the name of a part, or its value of a
    column of `by` -> its role, of colours.ROLES. Without any, the verdicts in the rows decide if
    each name gets a role of its own; else each part has the colour of what it is. A column
    `colour` (names of colours.COLOURS) decides before all of them.
    """
    by = as_list(by)
    require_columns(frame, *by)
    keys = list(dict.fromkeys([*by, *_ALWAYS_APART]))
    rows = [rows for _, rows in frame.groupby(keys, sort=False, dropna=False)]
    firsts = [part_rows.iloc[0] for part_rows in rows]
    wishes = [_colour_of(first, by) for first in firsts]
    parts = [Part(*fields) for fields in zip(_names(firsts, by), wishes, rows, strict=True)]
    if "colour" not in frame:
        parts = _in_roles(parts, by, roles or {})
    # A colour that nobody chose makes room for the others.
    return assign_colours(
        parts, {part.name: part.colour for part in parts if part.colour in COLOURS}
    )


def in_rows(
    frame: pd.DataFrame,
    by: str | Sequence[str],
    roles: Mapping[str, str] | None = None,
    is_of_time: bool = True,
) -> list[Part]:
    """Return the same parts for a chart in which each has a row of its own, with its name.

    So a colour need not tell them apart: it says the role, or is grey. A column `colour` decides
    here, too. is_of_time: whether the chart shows what a verdict is about; if not, one that all
    rows share says nothing, and is left out.
    """
    parts = groups(frame, by)
    if "colour" in frame:
        return parts
    by = as_list(by)
    if not is_of_time and frame.get("verdict", pd.Series(dtype=object)).nunique() == 1:
        parts = [replace(part, rows=part.rows.drop(columns="verdict")) for part in parts]
    return [replace(part, colour=_colour_of_role(part, by, roles or {})) for part in parts]


def _colour_of_role(part: Part, by: Sequence[str], roles: Mapping[str, str]) -> str:
    """Return the colour of a part's role; grey if it plays none."""
    first = part.rows.iloc[0]
    for key in (part.label, part.name, *(str(first[column]) for column in by)):
        if key in roles:
            return of_role(roles[key])
    if roles:
        return ROLES["other"]
    verdict = choice_for("verdict", unanimous_verdict(part.rows))
    choices = [verdict, *(choice_for(column, first[column]) for column in by if are_roles(column))]
    return next((choice for choice in choices if choice in ROLES.values()), ROLES["other"])


def _in_roles(parts: Sequence[Part], by: Sequence[str], roles: Mapping[str, str]) -> list[Part]:
    """Return parts that become lines in the colours of their roles, if these tell them apart.

    Plain HTTP stays grey, and what was published has the colour of the part with its name.
    """
    ours = [p for p in parts if p.source != words.PUBLISHED and p.colour != ROLES["other"]]
    colours = {part.name: _colour_of_role(part, by, roles) for part in ours}
    of_roles = {name: colour for name, colour in colours.items() if colour != ROLES["other"]}
    if not roles and len({*of_roles.values()}) < len(colours):
        return [*parts]
    return [replace(part, colour=of_roles.get(part.name, part.colour)) for part in parts]


def unanimous_verdict(rows: pd.DataFrame) -> str:
    """Return the one verdict of all rows at the largest n; "" if they have none, or several."""
    if "verdict" not in rows:
        return ""
    largest = rows[rows["n"] == rows["n"].max()] if "n" in rows else rows
    verdicts = {*largest["verdict"].dropna()}
    return str(verdicts.pop()) if len(verdicts) == 1 else ""


def gather(
    frame: pd.DataFrame,
    by: str | Sequence[str] = "stack",
    y: str = "wall_s",
    x: str = "n",
    roles: Mapping[str, str] | None = None,
) -> list[Series]:
    """Return the lines in a frame of runs, in order of appearance; by, roles: as in `groups`."""
    lines = []
    for part in groups(usable(frame, x, y), by, roles):
        points = {
            _as_number(level): Point.from_runs(part, ys) for level, ys in part.rows.groupby(x)[y]
        }
        dots = list(part.rows[[x, y]].itertuples(index=False, name=None))
        lines.append(Series(**vars(part), points=points, dots=dots))
    return lines


def assign_colours(parts: Sequence[Part], colours: dict[str, str]) -> list:
    """Return the same parts with a colour of its own for each name; the first keeps a shared one.

    Plain HTTP is always grey, and published lines, which are drawn differently, may share too.
    colours: those of names that have one; the new ones are added to it.
    """
    for part in parts:
        candidates = [name_or_spare(part.colour), *SPARE, *COLOURS]
        may_share = part.colour == "control" or part.source == words.PUBLISHED
        free = (colour for colour in candidates if may_share or colour not in colours.values())
        colours.setdefault(part.name, next(free, candidates[0]))
    return [replace(part, colour=colours[part.name]) for part in parts]


def reading(marks: str, parts: Sequence[Part], *further: str) -> str:
    """Say how to read a chart of these parts: its marks, those of each source, and more."""
    sources = {part.source for part in parts}
    grey = [part for part in parts if part.colour == ROLES["other"]]
    has_control = bool(grey) and all({*part.rows["scheme"]} == {"http"} for part in grey)
    phrases = [
        marks,
        "half-filled: recorded on another machine" * (words.REFERENCE in sources),
        "hollow: published" * (words.PUBLISHED in sources),
        "grey: plain HTTP" * has_control,
        *further,
    ]
    return f"{words.capital('; '.join(filter(None, phrases)))}."


def colour_key(parts: Sequence[Part]) -> str:
    """Say what the colours of roles mean, if some are drawn: "orange: slow; blue: fast"."""
    part_colours = {part.colour for part in parts}
    texts = {"slow": "orange: slow, or one after the other", "fast": "blue: fast, or all at once"}
    return "; ".join(text for role, text in texts.items() if ROLES[role] in part_colours)


def span(values: pd.Series) -> str:
    """Return the smallest and the largest if they differ visibly: "0.97" or "0.97 to 1.3"."""
    low, high = words.number(values.min(), 2), words.number(values.max(), 2)
    return low if low == high else f"{low} to {high}"


def is_log(choice: bool | None, default: bool, values: Sequence[float], name: str) -> bool:
    """Return whether a scale is logarithmic: the choice, or else the default.

    Raises UsageError if a logarithmic scale is chosen and a value is not above 0.
    """
    if choice and min(values) <= 0:
        raise UsageError(
            f"{name} has a {words.number(min(values))}, which a logarithmic scale cannot show: "
            "leave the scale to the chart, or those rows out"
        )
    return default if choice is None else choice


def spans_a_decade(values: Sequence[float]) -> bool:
    """Return whether all are positive, and the largest is at least ten times the smallest."""
    return min(values) > 0 and max(values) >= 10 * min(values)


def _as_number(value) -> float:
    return int(value) if float(value).is_integer() else float(value)


def _names(firsts: Sequence[pd.Series], by: Sequence[str]) -> list[str]:
    """Name each part; names differ wherever the parts differ in more than their source.

    A published part is told apart from other published ones only: each says that it is published.
    """
    clients_shown = {first["client"] for first in firsts} & {"grequests", "threads"}
    trusts = {first["trust"] for first in firsts} - {""}
    kinds = [(*map(str, (first[c] for c in by)), first["client"]) for first in firsts]
    names = [", ".join(_words(first, by, clients_shown, trusts)) for first in firsts]
    sourced_names = [
        (name, first["source"] == words.PUBLISHED)
        for name, first in zip(names, firsts, strict=True)
    ]
    for name_and_source in set(sourced_names):
        positions = [i for i, candidate in enumerate(sourced_names) if candidate == name_and_source]
        clients = {firsts[i]["client"] for i in positions}
        if len({kinds[i] for i in positions}) > 1:
            for i in positions:
                addition = firsts[i]["client"] if len(clients) > 1 else firsts[i].get("stack", "")
                addition_label = words.client_label(addition) if len(clients) > 1 else str(addition)
                names[i] = f"{names[i]}, {addition_label}".removesuffix(", ")
    return names


def _words(first: pd.Series, by: Sequence[str], clients_shown: set, trusts: set) -> list[str]:
    phrases = []
    for column in by:
        if column == "stack":
            phrases.append(
                _stack_words(first["stack"], first["client"], clients_shown, "client" in by)
            )
        else:
            phrases.append(words.value_label(column, first[column]))
    if first["scheme"] == "http" and "scheme" not in by:
        phrases.append("plain HTTP")
    if len(trusts) > 1 and first["trust"] and "trust" not in by:
        phrases.append(words.value_label("trust", first["trust"]))
    return phrases


def _stack_words(stack: str, client: str, clients_shown: set, client_is_named: bool) -> str:
    """Name a stack as a chart does: with grequests or threads only if both are shown."""
    if client_is_named or (client == "threads" and len(clients_shown) < 2):
        return words.stack_label(stack)
    label = words.stack_label(stack, client)
    return f"{label}, grequests" if client == "grequests" and len(clients_shown) > 1 else label


def _colour_of(first: pd.Series, by: Sequence[str]) -> str:
    """Return the colour of a part, or the name that a spare one is derived from.

    See colours.colour_of.
    """
    choice = first.get("colour")
    if isinstance(choice, str) and choice:
        return require_colour(choice)
    if first["scheme"] == "http":
        return "control"
    if {"stack", "client"}.isdisjoint(by):
        choices = [choice_for(column, first[column]) for column in by]
        spare = [name_or_spare(str(first[column])) for column in by if column in words.VALUES]
        if colour := next(filter(None, choices + spare), ""):
            return colour
    return colour_of(first.get("stack", ""), first["client"])
