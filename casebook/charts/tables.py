"""Frames as tables that a reader can use: caption, headers, units, their own scroll box."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from casebook import words
from casebook.charts.captions import Caption
from casebook.charts.origins import origin
from casebook.colours import style
from casebook.errors import UsageError
from casebook.mistakes import for_readers

#: The width of a phone's page, and of the box of a solution on it; and the least width there of a
#: letter, a letter of a header, a column's padding and the first column (style.css, 30rem).
_PHONE_PX, _BOXED_PX = 355, 288
_LETTER_PX, _BOLD_PX, _PADDING_PX, _FIRST_PX = 6.6, 7.2, 6.4, 64

#: Columns that a phone has room for.
_ON_A_PHONE = 3
#: More columns than this stand closer together, so that all fit on a page.
_MANY = 6
#: Calls as a profile counts them, "20/10": a column of them is one of numbers.
_CALLS = re.compile(r"\d+(/\d+)?|–")

#: Columns that say how something was measured, not what came out.
SETTINGS = ("source", "python", "client", "scheme", "trust", "n", "delay_s")


@dataclass(frozen=True)
class Table:
    """A finished piece of a page. html: including its box. text: the same for a terminal."""

    html: str
    text: str

    def _repr_mimebundle_(self, **_: object) -> dict:
        return {"text/html": self.html, "text/plain": self.text}


def code(text: str) -> str:
    """Return a path or a dotted name as HTML that a page may break after its separators."""
    return f"<code>{breakable(text)}</code>"


def breakable(text: str) -> str:
    """Return text as HTML in which a page may break paths, dotted names and long names.

    Paths and dotted names break after their separators, a long name before its last hump: else it
    pushes the columns beside it out of a narrow page.
    """
    html = re.sub(r"(?<=\w)([./_:(])(?=[^\W\d])", r"\1<wbr>", escape(text))
    return re.sub(r"(?<=[A-Za-z]{6})(?=[A-Z][a-z]{4})", "<wbr>", html)  # PyOpenSSL|Context


def _code_line(text: str) -> str:
    """Return a line of code as HTML that a page may break at its spaces alone."""
    return f"<code>{escape(text)}</code>" if text else ""


def plain(html: str) -> str:
    """Return the text of some HTML for a terminal."""
    return unescape(re.sub("<[^>]*>", "", html))


@for_readers
def show(
    frame: pd.DataFrame,
    caption: str,
    formats: Mapping[str, str | Callable] | None = None,
    headers: Mapping[str, str] | None = None,
    none: str = "",
    as_code: Sequence[str] = (),
) -> Table:
    """Show a frame as a table, its first column as row headers, its source in words.

    frame: any columns; the index is not shown. A column `stack` is written as words, and so is a
    column `source` (live, reference, published); the caption then says where the rows come from,
    and with a column `instead`, which is not shown, from which machine. A column of SETTINGS with
    the same text in all rows moves to the caption.
    formats: per column a format spec (".2f") or a function of the value. headers: per column
    its header, with the unit; names that end in _s or _kib have one already.
    none: why there may be no rows, which a line then says in place of the table. as_code: columns
    of code. Raises UsageError if there are no rows and no reason.
    """
    if none and frame.empty:
        note = f"Not here: {none}."
        return Table(f'<p class="cb cb-not-here"><em>{escape(note)}</em></p>', note)
    if frame.empty or not len(frame.columns):
        raise UsageError("the table has no rows; measure some, or look at the filter before it")
    if not caption.strip():
        raise UsageError("a table needs a caption")
    formats, headers = formats or {}, headers or {}
    source = origin(frame) if "source" in frame else ""
    frame = frame.drop(columns="instead", errors="ignore")
    unknown = [name for name in formats if name not in frame]
    if unknown:
        raise UsageError(f"there is no column {', '.join(unknown)} to format in this table")
    titles = {name: headers.get(name) or header(str(name)) for name in frame}
    texts = {
        name: [_format_value(value, frame[name], formats.get(name)) for value in frame[name]]
        for name in frame
    }
    shared = _agreed(texts)
    if settings := [f"{titles[name]} {texts[name][0]}" for name in shared if name != "source"]:
        source = f"{source} In all rows: {', '.join(settings)}.".strip()
    columns = [name for name in frame if name not in shared]
    html = {
        name: [(_code_line if name in as_code else breakable)(text) for text in texts[name]]
        for name in columns
    }
    return table(
        Caption(caption, source=source),
        [titles[name] for name in columns],
        zip(*html.values(), strict=True),
        numbers=[
            i
            for i, name in enumerate(columns)
            if is_numeric_dtype(frame[name]) or all(map(_CALLS.fullmatch, texts[name]))
        ],
    )


def _agreed(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns of settings, not of results, that are the same in each of several rows.

    The caption states them once.
    """
    return [
        name
        for name, texts in columns.items()
        if name in SETTINGS
        and len(texts) > 1
        and len(set(texts)) == 1
        and name != next(iter(columns))
    ]


def table(
    caption: Caption,
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Collection[int] = (),
    kind: str = "",
) -> Table:
    """Make a table of finished cells (HTML) in its scroll box, the first of each row its header.

    numbers: positions of the columns of numbers. kind: a section of style.css besides that of
    tables, and a class as well.

    If the columns are too many or too wide for a phone, or for a box on one, each row is a card
    there. Else a reader would have to find out that there is more to the right, and it may be what
    matters.
    """
    rows = [list(row) for row in rows]
    title_attributes, room, names = [""] * len(titles), "", 1
    least_px = _least_px(titles, rows, numbers)
    has_many = len(titles) > _ON_A_PHONE
    if not kind and (has_many or least_px > _BOXED_PX):
        title_attributes = [f' data-title="{escape(title)}"' * bool(title) for title in titles]
        names = _telling_apart(rows)
        room = "cb-wide" if has_many or least_px > _PHONE_PX else "cb-close"
    dense = " cb-dense" if len(titles) > _MANY else ""
    css = [' class="cb-number"' * (i in numbers) for i in range(len(titles))]
    head = zip(css, titles, strict=True)
    body, texts = "", [list(titles)]
    # What tells the rows apart heads a card.
    for_names = [
        attribute.replace("cb-", "cb-names cb-") or ' class="cb-names"' for attribute in css
    ]
    in_body = css[:1] + for_names[1:names] + css[names:]
    for row in rows:
        texts.append([plain(cell) for cell in row])
        cells = [
            f"<td{c}{n}>{cell}</td>"
            for c, n, cell in zip(in_body, title_attributes, row, strict=True)
        ]
        cells[0] = f'<th scope="row"{css[0]}{title_attributes[0]}>{row[0]}</th>'
        body += f"<tr>{''.join(cells)}</tr>"
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in texts]
    title = escape(caption.title.rstrip("."))
    stop = "" if title.endswith("?") else "."
    figcaption = f'<span class="cb-title" aria-hidden="true">{title}{stop}</span>'
    if caption.clause:
        figcaption += f' <span class="cb-clause">{escape(caption.clause)}</span>'
    if caption.finding:
        figcaption += f' <span class="cb-finding">{escape(caption.finding)}</span>'
    if caption.source:
        figcaption += f' <span class="cb-source">{escape(caption.source)}</span>'
    html = (
        f'<figure class="cb cb-table {f"cb-{kind}" if kind else f"{room}{dense}"}">'
        f"{style('table', kind)}"
        f'<figcaption>{figcaption}</figcaption><div class="cb-scroll" role="group" tabindex="0" '
        f'aria-label="{title}"><table><caption>{title}</caption><thead><tr>'
        + "".join(f'<th scope="col"{c}>{_header_html(text)}</th>' for c, text in head)
        + f"</tr></thead><tbody>{body}</tbody></table></div></figure>"
    )
    return Table(
        html, "\n".join([caption.title, *lines, *filter(None, [caption.clause, caption.source])])
    )


def _header_html(text: str) -> str:
    """Return a header that keeps its unit beside its last word: "wall time,&nbsp;s"."""
    return re.sub(r", (?=\S{1,3}$)", ",\u00a0", breakable(text))


def _telling_apart(rows: Sequence[Sequence[str]]) -> int:
    """Return how many of the first columns it takes to tell the rows apart, and so to head a card.

    One if it would take all of them.
    """
    columns = len(rows[0]) if rows else 1
    for names in range(1, columns - 1):
        if len({tuple(row[:names]) for row in rows}) == len(rows):
            return names
    return 1


def _least_px(
    titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int]
) -> float:
    """Estimate the least width of a table on a phone.

    In each column, that is the longest piece of text in which a line should not break: a number, a
    word, a dotted name, which could break but is not read so.
    """
    heads = (re.split(r"\s|<wbr>", breakable(title)) for title in titles)
    widths = [_BOLD_PX * max(map(len, pieces)) for pieces in heads]
    for row in rows:
        for i, cell in enumerate(row):
            pieces = [cell] if i in numbers else re.split(r"\s(?![^<]*>)|\b-\b", cell)
            widths[i] = max(widths[i], *(_LETTER_PX * len(plain(piece)) for piece in pieces))
    widths[0] = max(widths[0], _FIRST_PX)
    return sum(widths) + _PADDING_PX * len(widths)


def header(name: str) -> str:
    """Return a column's header, with its unit: `wall_s` -> "wall time, s"."""
    if name in words.HEADINGS:
        return words.HEADINGS[name]
    if not name.isidentifier():  # it is in words already
        return name
    for end, unit in (("_s", "s"), ("_ms", "ms"), ("_kib", "KiB"), ("_mb", "MB")):
        if name.endswith(end):
            return f"{_in_words(name.removesuffix(end))}, {unit}"
    return _in_words(name)


def _in_words(name: str) -> str:
    """Return a column's name without its underscores: `cpu_beside` -> "CPU beside"."""
    return re.sub(r"\bcpu\b", "CPU", name.replace("_", " "))


def _format_value(value: Any, column: pd.Series, spec: str | Callable | None) -> str:
    """Format a value by the spec, or else as its column is written."""
    if callable(spec):
        return str(spec(value))
    if value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NA:
        return "–"
    if spec is not None:
        try:
            return format(value, spec)
        except (ValueError, TypeError):
            kind = type(value).__name__
            raise UsageError(
                f"the format of {column.name} is {spec!r}, which no {kind} has; such as '.2f' for "
                "a number"
            ) from None
    if column.name == "stack":
        return words.stack_label(value)
    if column.name == "source":
        return words.SOURCES.get(value, str(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if pd.api.types.is_float_dtype(column):
        return f"{value:.{_decimals(column)}f}"
    return str(value)


def _decimals(column: pd.Series) -> int:
    """Return the decimals of a column: none for counts, else three digits of its largest number."""
    numbers = column.dropna()
    if (numbers % 1 == 0).all() and not str(column.name).endswith("_s"):
        return 0
    largest = numbers.abs().max()
    return max(1, 2 - math.floor(math.log10(largest))) if largest > 0 else 0
