"""Profiles, call traces and the provenance of classes, each with its telling line marked."""

from collections.abc import Sequence
from html import escape

import pandas as pd

from casebook import words
from casebook.charts.figure import slug
from casebook.charts.listings import Listing
from casebook.charts.origins import marked, origin, origin_of
from casebook.charts.series import columns
from casebook.charts.tables import Table, code, plain, table
from casebook.colours import style
from casebook.errors import UsageError

#: What the probe numbers gevent's hub, whose pauses are everybody's waiting.
_HUB = -1
#: So many lines of a profile are shown.
_MOST = 8


def profile_rows(observation) -> Table:
    """The lines of a profile with the largest cumulative time.

    observation: an Observation of kind `profile`, or its frame (file, line, function, calls,
    pcalls, tottime_s, cumtime_s). Calls are written as pstats does: `20/10` is 20 calls, 10 of
    them not made from inside another.
    """
    frame, called, source = _seen(observation)
    columns(frame, "file", "line", "function", "calls", "pcalls", "tottime_s", "cumtime_s")
    frame = frame.sort_values("cumtime_s", ascending=False, kind="stable")
    rows = [
        (
            code(f"{each.file}:{each.line}({each.function})"),
            f"{each.calls}/{each.pcalls}" if each.calls != each.pcalls else str(each.calls),
            f"{each.tottime_s:.3f}",
            f"{each.cumtime_s:.3f}",
        )
        for each in frame.head(_MOST).itertuples()
    ]
    return table(
        f"Profile of {called}: the largest cumulative times",
        ("where", "calls", "own time, s", "cumulative time, s"),
        rows,
        numbers=(1, 2, 3),
        source=source,
    )


def provenance(
    observation, names: Sequence[str] = (), steps: Sequence[str] = (), *, caption: str = ""
) -> Table:
    """Which class stood behind each name after each import step, changes marked.

    observation: an Observation of kind `provenance`, or its frame (step, name, class,
    module_file). A row per name, a column per step from the first that knows any; a cell that
    is as in the step before says "same", one that changed is bold and begins with ▲. names,
    steps: only these, in this order.
    """
    frame, called, source = _seen(observation)
    columns(frame, "step", "name", "class")
    names = list(names) or list(dict.fromkeys(frame["name"]))
    steps = list(steps) or list(dict.fromkeys(frame[frame["class"].notna()]["step"]))
    for asked, column in ((names, "name"), (steps, "step")):
        unknown = [text for text in asked if text not in set(frame[column])]
        if unknown:
            known = ", ".join(dict.fromkeys(frame[column]))
            raise UsageError(f"this provenance has no {column} {unknown[0]!r}; it has {known}")
    classes = frame.dropna(subset="class").groupby(["name", "step"])["class"].last().to_dict()
    rows = [
        (code(name), *_history(name, [classes.get((name, step)) for step in steps]))
        for name in names
    ]
    return table(
        caption or f"Who is behind each name, {called}",
        ("name", *steps),
        rows,
        source=f"{source} ▲ marks a change from one column to the next.".strip(),
    )


def _history(name: str, classes: Sequence[str | None]) -> list[str]:
    """The cells of a name's row: its class after each step, and whether it changed."""
    cells, before = [], None
    for now in classes:
        if not now:  # A socket is there from the first connection on; all else from its import.
            cells.append("not connected" if name == "connected socket" else "not imported")
        elif now == before:
            cells.append("same")
        elif before is None:
            cells.append(code(now))
        else:
            cells.append(f"<strong>▲ {code(now)}</strong>")
        before = now or before
    return cells


def trace(
    observation,
    blocked: str = "",
    *,
    before: int = 10,
    after: int = 4,
    quoted: Sequence[Listing] = (),
) -> Table:
    """A call trace around the call in which the time passes, indented by depth.

    observation: an Observation of kind `trace`, or its frame (t_s, greenlet, depth, function,
    file, line, event). The marked call is the one after which most time passes before anything
    else happens, outside of gevent's hub; or the longest of those whose `file:line(function)`
    contains `blocked`. before, after: how many lines around it. quoted: functions that the trace
    went through, as `listings.source` quotes them; they stand above it, each linked with its row.
    Raises UsageError when nothing matches, or a quotation has no row.
    """
    frame, called, source = _seen(observation)
    columns(frame, "t_s", "greenlet", "depth", "function", "file", "line", "event")
    frame = frame.reset_index(drop=True)
    frame["where"] = [_where(row) for row in frame.itertuples()]
    at, took_s = _blocking(frame, blocked)
    part = frame[frame["event"] != "switch"]
    middle = part.index.get_loc(at)
    part = part.iloc[max(0, middle - before) : middle + after + 1]
    caption = f"Call trace of {called} around {frame['function'][at]}"
    links, above = {}, []
    for i, each in enumerate(quoted, 1):
        row, lines = f"{slug(caption)}-row-{i}", f"{slug(caption)}-lines-{i}"
        if each.path:  # where the stack's Python is missing, nothing could be quoted
            links[_row_of(each, part, at)] = row, lines
        above.append(_linked(each, row, lines) if each.path else each.html)
    shown = _lines(part, at, took_s, links)
    html = "".join([*above, _boxed(caption, source, shown)])
    return Table(html, "\n".join([*(each.text for each in quoted), caption, *map(plain, shown)]))


def _boxed(caption: str, source: str, lines: Sequence[str]) -> str:
    """The lines of a trace in their scroll box."""
    source += " Seconds since the start; indented by depth; ← returns; "
    source += "▶ the call in which the time passes."
    return (
        f'<div class="cb cb-trace" role="group" aria-label="{escape(caption)}">'
        f'{style("trace")}<p><span class="cb-title">{escape(caption)}.</span> '
        f'<span class="cb-source">{marked(source.strip())}</span></p>'
        f'<pre tabindex="0">{"<br>".join(lines)}</pre></div>'
    )


def _blocking(frame: pd.DataFrame, blocked: str) -> tuple[int, float]:
    """The row of the call in which the time passes, and how long, in seconds."""
    named = frame["where"] + "(" + frame["function"] + ")"
    calls = frame["event"].isin(["call", "c_call"]) & (frame["greenlet"] != _HUB)
    calls &= named.str.contains(blocked, regex=False)
    took = (frame["t_s"].shift(-1) - frame["t_s"])[calls]
    if blocked:
        took = pd.Series({i: _duration(frame, i) for i in frame.index[calls]}, dtype=float)
    if not took.notna().any():
        raise UsageError(f"no call of this trace contains {blocked!r}")
    return int(took.idxmax()), took.max()


def _lines(part: pd.DataFrame, at: int, took_s: float, links) -> list[str]:
    """The lines of a trace as HTML; links: row -> (its id, its target)."""
    shown, greenlet = [], None
    shallow = int(part["depth"].min())
    for i, row in zip(part.index, part.itertuples(), strict=True):
        if row.greenlet != greenlet:
            greenlet = row.greenlet
            shown.append(f'<span class="cb-faint">           greenlet {greenlet}</span>')
        arrow = "▶" if i == at else ("←" if row.event.endswith("return") else " ")
        indent = "  " * (int(row.depth) - shallow)
        text = escape(f"{row.t_s:8.3f} {arrow} {indent}{row.function}  {row.where}".rstrip())
        if i == at:
            text = f"<mark>{text}  ◀ {words.seconds(took_s)} pass here</mark>"
        if i in links:
            text = f'<a id="{links[i][0]}" href="#{links[i][1]}">{text}</a>'
        shown.append(text)
    return shown


def _linked(quotation: Listing, row: str, lines: str) -> str:
    """A quotation with an id, and a link to its row in the trace."""
    link = f'<p><a href="#{row}">These lines in the trace below</a></p>'
    return f'<div id="{lines}">{quotation.html}{link}</div>'


def _row_of(quotation: Listing, part: pd.DataFrame, at: int) -> int:
    """The row of a trace in which a quoted function is called: the last one up to the row `at`."""
    called = part[(part["event"] == "call") & (part["file"] == quotation.path)]
    called = called[called["line"].between(quotation.first, quotation.last)]
    if called.empty:
        raise UsageError(
            f"no row of this trace is in lines {quotation.first} to {quotation.last} of "
            f"{quotation.path}: quote what it went through, or show more rows"
        )
    before = called.index[called.index <= at]
    return int(before[-1] if len(before) else called.index[0])


def _seen(observation) -> tuple[pd.DataFrame, str, str]:
    """What was observed as a frame, what its stack is called, and where it came from."""
    if not isinstance(observation, pd.DataFrame):
        label = words.stack_label(observation.stack)
        return observation.frame, label, origin_of(observation)
    return observation, "this run", origin(observation) if "source" in observation else ""


def _duration(frame: pd.DataFrame, at: int) -> float:
    """Seconds until the call at a row returns; NaN when the trace ends before."""
    call = frame.loc[at]
    after = frame.loc[at + 1 :]
    same = (after["greenlet"] == call["greenlet"]) & (after["depth"] == call["depth"])
    back = after[same & after["event"].str.endswith("return")]
    return float("nan") if back.empty else back["t_s"].iloc[0] - call["t_s"]


def _where(row) -> str:
    """The file and line of a trace's row; a built-in function has none."""
    if row.file is None or pd.isna(row.file):
        return ""
    return f"{row.file}:{int(row.line)}" if pd.notna(row.line) else row.file
