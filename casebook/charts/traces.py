"""Profiles, call traces and the provenance of classes, each with its decisive line marked."""

from collections.abc import Sequence
from html import escape

import pandas as pd

from casebook import words
from casebook.charts.captions import Caption
from casebook.charts.figure import slug
from casebook.charts.listings import Listing
from casebook.charts.origins import origin, origin_of
from casebook.charts.series import require_columns, require_observation
from casebook.charts.tables import Table, code, plain, table
from casebook.colours import style
from casebook.errors import UsageError
from casebook.mistakes import check_range, for_readers

#: The probe's number for gevent's hub, in whose pauses everybody waits.
_HUB = -1
#: The most lines of a profile that are shown.
_MOST = 8


@for_readers
def profile_rows(observation) -> Table:
    """Show the lines of a profile with the largest cumulative time.

    observation: an Observation of kind `profile`, or its frame (file, line, function, calls,
    pcalls, tottime_s, cumtime_s). Calls are written as in pstats: `20/10` is 20 calls, 10 of
    them not made from inside another.
    """
    frame, label, source = _unpack(observation)
    require_columns(frame, "file", "line", "function", "calls", "pcalls", "tottime_s", "cumtime_s")
    frame = frame.sort_values("cumtime_s", ascending=False, kind="stable")
    rows = [
        (
            code(f"{row.file}:{row.line}({row.function})"),
            f"{row.calls}/{row.pcalls}" if row.calls != row.pcalls else str(row.calls),
            f"{row.tottime_s:.3f}",
            f"{row.cumtime_s:.3f}",
        )
        for row in frame.head(_MOST).itertuples()
    ]
    return table(
        Caption(f"Profile of {label}: the largest cumulative times", source=source),
        ("where", "calls", "own time, s", "cumulative time, s"),
        rows,
        numbers=(1, 2, 3),
    )


@for_readers
def provenance(
    observation, names: Sequence[str] = (), steps: Sequence[str] = (), *, caption: str = ""
) -> Table:
    """Show which class stood behind each name after each import step, changes marked.

    observation: an Observation of kind `provenance`, or its frame (step, name, class,
    module_file). A row per name, a column per step from the first that knows any; a cell that
    is as in the step before says "same", one that changed is bold and begins with ▲. names,
    steps: only these, in this order.
    """
    frame, label, source = _unpack(observation)
    require_columns(frame, "step", "name", "class")
    names = list(names) or list(dict.fromkeys(frame["name"]))
    steps = list(steps) or list(dict.fromkeys(frame[frame["class"].notna()]["step"]))
    for choice, column in ((names, "name"), (steps, "step")):
        unknown = [text for text in choice if text not in set(frame[column])]
        if unknown:
            choices = ", ".join(dict.fromkeys(frame[column]))
            raise UsageError(f"this provenance has no {column} {unknown[0]!r}; it has {choices}")
    classes = frame.dropna(subset="class").groupby(["name", "step"])["class"].last().to_dict()
    rows = [
        (code(name), *_history(name, [classes.get((name, step)) for step in steps]))
        for name in names
    ]
    return table(
        Caption(
            caption or f"Who is behind each name, {label}",
            clause="▲ marks a change from one column to the next.",
            source=source,
        ),
        ("name", *steps),
        rows,
    )


def _history(name: str, classes: Sequence[str | None]) -> list[str]:
    """Return the cells of a name's row: its class after each step, and whether it changed."""
    cells, previous = [], None
    for current in classes:
        if not current:  # A socket exists from the first connection, all else from its import.
            cells.append("not connected" if name == "connected socket" else "not imported")
        elif current == previous:
            cells.append("same")
        elif previous is None:
            cells.append(code(current))
        else:
            cells.append(f"<strong>▲ {code(current)}</strong>")
        previous = current or previous
    return cells


@for_readers
def trace(
    observation,
    blocked: str = "",
    *,
    before: int = 10,
    after: int = 4,
    quoted: Sequence[Listing] = (),
) -> Listing:
    """Show a call trace around the call in which the time passes, indented by depth.

    observation: an Observation of kind `trace`, or its frame (t_s, greenlet, depth, function,
    file, line, event). The marked call is the one after which most time passes before anything
    else happens, outside of gevent's hub; or the longest of those whose `file:line(function)`
    contains `blocked`. before, after: how many lines around it. quoted: functions that the trace
    went through, as `listings.source` quotes them; they stand above it, each linked with its row.
    Raises UsageError if nothing matches, or a quotation has no row.
    """
    check_range("before", before, 0, 10_000)
    check_range("after", after, 0, 10_000)
    frame, label, source = _unpack(observation)
    require_columns(frame, "t_s", "greenlet", "depth", "function", "file", "line", "event")
    frame = frame.reset_index(drop=True)
    frame["where"] = [_place(row) for row in frame.itertuples()]
    blocking_row, took_s = _blocking(frame, blocked)
    part = frame[frame["event"] != "switch"]
    middle = part.index.get_loc(blocking_row)
    part = part.iloc[max(0, middle - before) : middle + after + 1]
    caption = f"The calls around {frame['function'][blocking_row]}, in their order: {label}"
    links, above = {}, []
    for i, quotation in enumerate(quoted, 1):
        row, lines = f"{slug(caption)}-row-{i}", f"{slug(caption)}-lines-{i}"
        if quotation.path:  # nothing could be quoted if the stack's Python is missing
            links[_row_of(quotation, part, blocking_row)] = row, lines
        above.append(_linked(quotation, row, lines) if quotation.path else quotation.html)
    lines_html = _lines(part, blocking_row, took_s, links)
    html = "".join([*above, _boxed(caption, source, lines_html)])
    text = "\n".join([*(quotation.text for quotation in quoted), caption, *map(plain, lines_html)])
    return Listing(html, text, quotes=tuple(quote for each in quoted for quote in each.quotes))


def _boxed(caption: str, source: str, lines: Sequence[str]) -> str:
    """Put the lines of a trace into their scroll box."""
    reading = "Seconds since the start; indented by depth; ← returns; "
    reading += "▶ the call in which the time passes."
    return (
        f'<div class="cb cb-trace" role="group" aria-label="{escape(caption)}">'
        f'{style("trace")}<p><span class="cb-title">{escape(caption)}.</span> '
        f'<span class="cb-source">{escape(source.strip())}</span> '
        f'<span class="cb-clause">{reading}</span></p>'
        f'<pre tabindex="0">{"".join(lines)}</pre></div>'
    )


def _blocking(frame: pd.DataFrame, blocked: str) -> tuple[int, float]:
    """Return the row of the call in which the time passes, and how long it takes, in seconds."""
    calls_at = frame["where"] + "(" + frame["function"] + ")"
    calls = frame["event"].isin(["call", "c_call"]) & (frame["greenlet"] != _HUB)
    calls &= calls_at.str.contains(blocked, regex=False)
    durations = (frame["t_s"].shift(-1) - frame["t_s"])[calls]
    if blocked:
        durations = pd.Series({i: _duration(frame, i) for i in frame.index[calls]}, dtype=float)
    if not durations.notna().any():
        raise UsageError(f"no call of this trace contains {blocked!r}")
    return int(durations.idxmax()), durations.max()


def _lines(part: pd.DataFrame, blocking_row: int, took_s: float, links) -> list[str]:
    """Return the lines of a trace as HTML; links: row -> (its id, its target)."""
    lines, greenlet = [], None
    shallow = int(part["depth"].min())
    for i, row in zip(part.index, part.itertuples(), strict=True):
        if row.greenlet != greenlet:
            greenlet = row.greenlet
            lines.append(_line(" " * 11, f'<span class="cb-faint">greenlet {greenlet}</span>'))
        arrow = "▶" if i == blocking_row else ("←" if row.event.endswith("return") else " ")
        function = escape(row.function)
        if i in links:
            function = f'<a id="{links[i][0]}" href="#{links[i][1]}">{function}</a>'
        places = [f"  {escape(row.where)}"] * bool(row.where)
        places += [f"  ◀ {words.seconds(took_s)} pass here"] * (i == blocking_row)
        time = f"{row.t_s:8.3f} {arrow} "
        lines.append(_line(time, function, places, int(row.depth) - shallow, i == blocking_row))
    return lines


def _line(
    time: str, call: str, places: Sequence[str] = (), depth: int = 0, is_marked: bool = False
) -> str:
    """Return a line of a trace; on a phone, each of its places has a line of its own."""
    tag = "mark" if is_marked else "span"
    after = "".join(f'<span class="cb-place">{place}</span>' for place in places)
    return (
        f'<{tag} class="cb-line" style="--depth:{depth}"><span class="cb-time">{time}</span>'
        f'<span class="cb-call">{"  " * depth}{call}</span>{after}</{tag}>'
    )


def _linked(quotation: Listing, row: str, lines: str) -> str:
    """Return a quotation with an id, and a link to its row in the trace."""
    link = f'<p><a href="#{row}">find these lines in the trace below</a></p>'
    return f'<div id="{lines}">{quotation.html}{link}</div>'


def _row_of(quotation: Listing, part: pd.DataFrame, blocking_row: int) -> int:
    """Return the row in which a quoted function is called: the last one up to `blocking_row`."""
    calls = part[(part["event"] == "call") & (part["file"] == quotation.path)]
    calls = calls[calls["line"].between(quotation.first, quotation.last)]
    if calls.empty:
        raise UsageError(
            f"no row of this trace is in lines {quotation.first} to {quotation.last} of "
            f"{quotation.path}: quote what it went through, or show more rows"
        )
    earlier = calls.index[calls.index <= blocking_row]
    return int(earlier[-1] if len(earlier) else calls.index[0])


def _unpack(observation) -> tuple[pd.DataFrame, str, str]:
    """Return the frame of an observation, the label of its stack, and where it came from."""
    if not isinstance(observation, pd.DataFrame):
        label = words.stack_label(require_observation(observation).stack)
        return observation.frame, label, origin_of(observation)
    return observation, "this run", origin(observation) if "source" in observation else ""


def _duration(frame: pd.DataFrame, index: int) -> float:
    """Return the seconds until the call at a row returns; NaN if the trace ends before."""
    call = frame.loc[index]
    later = frame.loc[index + 1 :]
    same_depth = (later["greenlet"] == call["greenlet"]) & (later["depth"] == call["depth"])
    back = later[same_depth & later["event"].str.endswith("return")]
    return float("nan") if back.empty else back["t_s"].iloc[0] - call["t_s"]


def _place(row) -> str:
    """Return the file and line of a trace's row; a built-in function has none."""
    if row.file is None or pd.isna(row.file):
        return ""
    return f"{row.file}:{int(row.line)}" if pd.notna(row.line) else row.file
