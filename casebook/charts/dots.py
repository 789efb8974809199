"""Any quantity, run by run: a row for each part, every run a dot, the median in numbers.

A number stands beside what it is of: its row's dots, as long as these lie together. Where they are
apart, all numbers form a column, "median", so that none is taken for that of the dot beside it. A
row has its name, so that a colour says only what part it plays (colours.ROLES): slow, fast, or grey
for neither.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from casebook import words
from casebook.charts import figure as page
from casebook.charts import series
from casebook.charts.captions import Caption
from casebook.charts.figure import Chart, key_mark, marks, write
from casebook.charts.origins import origin
from casebook.charts.series import Part, Point, Quantity
from casebook.colours import sentinel
from casebook.errors import UsageError
from casebook.laboratory.rounds import as_list
from casebook.mistakes import for_readers

#: The height of a row in points, and of one more line of dots in it.
_ROW, _LINE = 37, 16
#: A row needs more room if it has more runs than _MANY, which are fanned out.
_FANNED_ROW, _MANY = 48, 8
#: Its multiples, modulo 1, fill an interval evenly.
_GOLDEN = 0.618034
#: Places are given as a share of the width, and as a row.
_ROWS = ("axes fraction", "data")
#: From this many points between a median and the last dot of its row, the two are apart.
_APART = 6
#: What stands above a column of numbers.
_MEDIAN = "median"
#: In points: from a line of dots up to the lower and to the upper end of the row's name, and from
#: the last dot to the number of its median.
_NAME, _BESIDE = (8, 21), 10
#: The marks of the first, the second and the third quantity in a row, and in a key.
MARKERS = {
    "o": '<circle cx="13" cy="8" r="5"/>',
    "D": '<path d="M13 2L19 8L13 14L7 8Z"/>',
    "^": '<path d="M13 2L19 13L7 13Z"/>',
}
#: The marks of the sources in a key, and what they mean; needed if any is not measured here.
_RING = '<circle cx="13" cy="8" r="4.6" style="fill:none;stroke:currentColor;stroke-width:1.2"/>'
_SOURCES = {
    words.LIVE: (MARKERS["o"], "measured"),
    words.REFERENCE: (
        f'{_RING}<path d="M13 3.4a4.6 4.6 0 0 0 0 9.2z"/>',
        "reference: recorded on another machine",
    ),
    words.PUBLISHED: (_RING, "published"),
}


@for_readers
def dots(  # noqa: PLR0913 - a chapter's call, each keyword about the picture
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
    end: Callable[[float, pd.DataFrame], str] | None = None,
    finding: str = "",
    roles: Mapping[str, str] | None = None,
) -> Chart:
    """Draw a row for each value of `by`: every run a dot, the median marked and written beside it.

    frame: runs (value, the columns of `by`; and, if they are known, stack, client, source,
    measured_at, colour). value: a numeric column, or up to three of the same unit that share a row,
    such as the client's CPU and the server's; or {column: its name}. Reference rows are
    half-filled, published ones hollow, each in a row of its own that says so, with a key.

    axis: the axis label, in place of the quantity's name. order: "value" for the smallest median
    first, or the values of `by` in their order; by default as the rows come. limits: {label:
    value}, dotted uprights. log: by default, if the values span a decade; a linear scale starts at
    0, with lines from there to the medians, faint where dots lie on them. end: takes a median and
    its row's runs, and returns the text beside them. finding: what the caption says in place of the
    medians. roles: {a row's label, its name or its value of `by`: its role}, of colours.ROLES; by
    default that of the verdict in its runs.
    """
    quantities = series.quantities(value)
    if not 1 <= len(quantities) <= len(MARKERS):
        raise UsageError(f"a row takes 1 to {len(MARKERS)} values, not {len(quantities)}")
    values = [quantity.column for quantity in quantities]
    data = series.chart_data(frame, *as_list(by), *values)
    is_of_clients = not {"stack", "client"}.isdisjoint(frame)
    frame = series.usable(frame, *values)
    is_of_time = not {"wall_s", "effective_concurrency"}.isdisjoint(values)
    parts = series.in_rows(frame, by, roles, is_of_time)
    parts = _sort_parts(parts, by, values[0], order)
    numbers = [number for part in parts for column in values for number in part.rows[column]]
    log = series.is_log(log, series.spans_a_decade(numbers), numbers, words.join(values))
    names, unit = words.join(quantity.name for quantity in quantities), quantities[0].unit
    end = end or (lambda median, _: words.amount(median, unit))
    labels = [{c: end(part.rows[c].median(), part.rows) for c in values} for part in parts]
    findings, alts = zip(
        *(_describe_medians(quantity, parts) for quantity in quantities), strict=True
    )
    shapes = zip(MARKERS.values(), quantities, strict=False)
    key = [(key_mark(shape, "ink"), quantity.name) for shape, quantity in shapes]
    key = (key if len(key) > 1 else []) + _key_of_sources({part.source for part in parts})
    marks_text = "Each dot is one run, the upright stroke their median"
    return page.chart(
        name,
        drawing(
            parts,
            labels,
            limits or {},
            axis or Quantity("", names, unit).title,
            log,
            [quantity.name for quantity in quantities],
        ),
        Caption(
            title,
            finding=finding or " ".join(findings),
            clause="The scale is logarithmic." * log,
            reading=series.reading(marks_text, parts, series.colour_key(parts)),
            source=origin(frame if is_of_clients else frame.drop(columns="client")),
        ),
        data=data,
        alts=[f"{title}. {finding or ' '.join(alts)}"],
        key=key,
    )


def _key_of_sources(sources: set[str]) -> list[tuple[str, str]]:
    """Return a key to the marks of sources; nothing if all was measured here."""
    if not sources & {words.REFERENCE, words.PUBLISHED}:
        return []
    return [
        (key_mark(shape, "ink"), meaning)
        for source, (shape, meaning) in _SOURCES.items()
        if source in sources
    ]


def _sort_parts(parts: list[Part], by, value: str, order) -> list[Part]:
    if order is None:
        return parts
    if order == "value":
        return sorted(parts, key=lambda part: part.rows[value].median())
    choices = [str(choice) for choice in order]
    column = by if isinstance(by, str) else next(iter(by))

    def place(part: Part) -> int:
        names = [part.name, str(part.rows[column].iloc[0])]
        return next((choices.index(name) for name in names if name in choices), len(choices))

    return sorted(parts, key=place)


def _describe_medians(quantity: Quantity, parts: Sequence[Part]) -> tuple[str, str]:
    """Return the medians in words: for the caption, and row by row."""
    points = [Point.from_runs(part, part.rows[quantity.column]) for part in parts]
    sentence = quantity.describe_all(points)
    if len(points) <= series.SPELLED:
        return sentence, sentence
    # If there are few different medians, group the rows by them: "30 for a; b. 0 for c."
    labels_by_median = words.grouped((quantity.amount(point), point.label) for point in points)
    if len(labels_by_median) > 3 or len(labels_by_median) == len(points):
        return quantity.describe_range(points), sentence
    shared = (f"{middle} for {'; '.join(labels)}." for middle, labels in labels_by_median.items())
    return f"{words.capital(quantity.name)}: {' '.join(shared)}", sentence


def drawing(
    parts: Sequence[Part],
    labels: Sequence[Mapping[str, str]],
    limits: Mapping[str, float],
    axis: str,
    log: bool,
    names: Sequence[str],
) -> Figure:
    """Draw a row for each part, and in it a line of dots for each column of its `labels`.

    names: of these columns; several are named beside their numbers in the first row.
    """
    numbers = [number for part in parts for column in labels[0] for number in part.rows[column]]
    crowded = max(len(part.rows) for part in parts) > _MANY
    height = (_FANNED_ROW if crowded else _ROW) + _LINE * (len(labels[0]) - 1)
    top = 9 + 13 * len(limits) if limits else 4
    with page.drawing(page.WIDTH, top + height * len(parts) + 34) as figure:
        axes = figure.add_subplot()
        _set_scale(axes, [*numbers, *limits.values()], log)
        widest = max(page.width_of(figure, text) for texts in labels for text in texts.values())
        page.place(axes, 6, 34, _BESIDE + 6 + widest, top)
        in_column = _are_apart(axes, parts, list(labels[0]))
        if in_column:
            widest = max(widest, page.width_of(figure, _MEDIAN))
            page.place(axes, 6, 34, _BESIDE + 6 + widest, top)
            level = _free_line(axes, limits)
            top = 9 + 13 * max(len(limits), level + 1)
            figure.set_figheight((top + height * len(parts) + 34) / 72)
            page.place(axes, 6, 34, _BESIDE + 6 + widest, top)
            shift = _BESIDE, 3 + 13 * level
            write(axes, _MEDIAN, (1, 1), shift, "faint", va="bottom")
        axes.set_ylim(len(parts) - 0.5, -0.72)
        axes.set_yticks([])
        line = _LINE / height
        firsts = [row - line * (len(labels[0]) - 1) / 2 for row in range(len(parts))]
        named = dict(zip(firsts, (part.label for part in parts), strict=True))
        _draw_limits(axes, limits, named)
        for i, (first, part, texts) in enumerate(zip(firsts, parts, labels, strict=True)):
            described = names if i == 0 and len(names) > 1 else [""] * len(names)
            numbered = {c: (texts[c], name) for c, name in zip(texts, described, strict=True)}
            _draw_row(axes, first, part, numbered, line, in_column)
        axes.set_xlabel(axis, fontsize=page.TEXT)
    return figure


def _are_apart(axes: Axes, parts: Sequence[Part], columns: Sequence[str]) -> bool:
    """Return whether the last dot of any row is apart from its median."""
    spans = [
        axes.transData.transform([(runs.median(), 0), (runs.max(), 0)])[:, 0]
        for part in parts
        for runs in (part.rows[column] for column in columns)
    ]
    return any(last - middle >= _APART for middle, last in spans)


def _free_line(axes: Axes, limits: Mapping[str, float]) -> int:
    """Return the lowest line above the axes on which no label of a limit reaches their end."""
    free = 0
    for line, (text, level) in enumerate(reversed([*limits.items()])):
        start = axes.transData.transform((level, 0))[0]
        if start + page.width_of(axes.figure, text) < axes.get_window_extent().x1 + _BESIDE / 2:
            return free
        free = line + 1
    return free


def _set_scale(axes: Axes, values: Sequence[float], log: bool) -> None:
    low, high = min(values), max(values)
    page.level_axis(axes, 6)
    if log:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.25, high * 1.25)
        page.set_ticks(axes.xaxis, page.decades(low / 1.25, high * 1.25, 9))
    else:
        axes.set_xlim(0, high + ((high - low) * 0.06 or 0.5))


def _draw_limits(axes: Axes, limits: Mapping[str, float], named: Mapping[float, str]) -> None:
    """Draw dotted uprights with their labels above; none goes through the name of a row.

    named: the place of a row's first line of dots -> its name.
    """
    bottom, top = axes.get_ylim()
    per_point = (bottom - top) / axes.get_window_extent().height
    lower, upper = (points * per_point for points in _NAME)
    style: dict = {"color": sentinel("faint"), "linewidth": 1.1, "linestyle": page.DOTTED}
    for i, (text, level) in enumerate(limits.items()):
        x = axes.transData.transform((level, 0))[0] - axes.get_window_extent().x0
        start = top
        for place, name in named.items():
            if page.width_of(axes.figure, name) + 3 < x:
                continue
            axes.plot([level] * 2, [start, place - upper], **style)
            start = place - lower
        axes.plot([level] * 2, [start, bottom], **style)
        shift = -1, 3 + 13 * (len(limits) - 1 - i)
        write(axes, text, (level, 1), shift, "faint", ("data", "axes fraction"), va="bottom")


def _draw_row(
    axes: Axes,
    first: float,
    part: Part,
    texts: Mapping[str, tuple[str, str]],
    line: float,
    in_column: bool,
) -> None:
    """Draw a row's name, and under it a line of dots for each column of `texts`.

    first: the place of the first line; the others follow `line` rows apart. texts: the number of
    a column, and its name, "" for none. in_column: whether the numbers stand at the right edge, and
    not behind the last dots.
    """
    ground = {"facecolor": sentinel("ground"), "edgecolor": "none", "pad": 0.5}
    write(axes, part.label, (0, first), (0, _NAME[0]), coords=_ROWS, va="bottom", bbox=ground)
    is_log = axes.get_xscale() == "log"
    faint = is_log or len(part.rows) > 2 * _MANY
    colour, width = ("grid", 0.9) if faint else (part.colour, 1.8)
    right = axes.get_window_extent().x1 if in_column else page.size_of(axes)[0] - 2
    names, fits = [], any(name for _, name in texts.values())
    for i, (marker, (column, (end, name))) in enumerate(zip(MARKERS, texts.items(), strict=False)):
        y, runs = first + line * i, part.rows[column]
        # A length from the edge of a logarithmic scale would say nothing: there the line is whole.
        stem = [axes.get_xlim()[0], axes.get_xlim()[1] if is_log else runs.median()]
        axes.plot(stem, [y, y], color=sentinel(colour), linewidth=width)
        _draw_dots(axes, y, part, runs, marker)
        style: dict = {"coords": "data", "va": "center", "bbox": ground}
        beyond: float = _BESIDE
        if in_column:
            write(axes, end, (1, y), (_BESIDE, 0), **style | {"coords": _ROWS})
        else:
            write(axes, end, (runs.max(), y), (_BESIDE, 0), **style)
            beyond += page.width_of(axes.figure, f"{end} ") + 2
        end_x = axes.transData.transform((runs.max(), y))[0] + beyond
        fits &= end_x + page.width_of(axes.figure, name) <= right
        names.append((name, (runs.max(), y), (beyond, 0)))
    for name, place, shift in names if fits else ():  # one alone would look left behind
        write(axes, name, place, shift, "faint", **style)


def _draw_dots(axes: Axes, row: float, part: Part, runs: pd.Series, marker: str) -> None:
    """Draw each run as a dot; many are fanned out below the label, always in the same way."""
    many = len(runs) > _MANY
    marks(
        axes,
        runs,
        [row + (i * _GOLDEN % 1 * 0.42 - 0.08 if many else 0) for i in range(len(runs))],
        part.colour,
        source=part.source,
        marker=marker,
        # A small mark must be full enough to show that half of it is not.
        markersize=((3.2 if part.source == words.LIVE else 5) if many else 6) - (marker == "D"),
        markeredgewidth=(0.3 if part.source == words.LIVE else 0.8) if many else 1.2,
        alpha=0.6 if many else 1,
    )
    if len(runs) > 1:
        marks(axes, [runs.median()], [row], part.colour, marker="|", markersize=13, mew=1.8)
