"""Profiles, call traces and the provenance of classes, each with its telling line marked."""

from collections.abc import Sequence
from html import escape

import pandas as pd

from casebook import words
from casebook.charts import tables
from casebook.charts.figure import slug
from casebook.charts.listings import Listing
from casebook.charts.origins import origin
from casebook.charts.series import columns
from casebook.colours import style
from casebook.errors import UsageError

#: What the probe numbers gevent's hub, whose pauses are everybody's waiting.
_HUB = -1

_TRACE_CSS = (
    ".cb-trace{margin:1rem 0}.cb-trace p{margin:0 0 .4rem;font-size:.9em;line-height:1.45}"
    ".cb.cb-trace pre{margin:0;padding:.6rem .8rem;overflow-x:auto;font-size:.8em;line-height:1.5;"
    "color:inherit;background:color-mix(in srgb,currentColor 5%,transparent);border-radius:4px}"
    ".cb-trace .cb-title{font-weight:600}"
    ".cb-trace .cb-source,.cb-trace .cb-faint{color:var(--cb-faint,#5c6166)}"
    ".cb.cb-trace mark{background:color-mix(in srgb,var(--cb-stage-2,#c14109) 14%,transparent);"
    "color:var(--pst-color-text-base,inherit);font-weight:700}"
    ".cb.cb-trace pre a{color:var(--pst-color-text-base,inherit);text-decoration:underline}"
)


def profile_rows(
    observation,
    highlight: str | Sequence[str] = (),
    top: int = 8,
    caption: str = "",
) -> tables.Table:
    """The lines of a profile with the largest cumulative time, the telling ones marked.

    observation: an Observation of kind `profile`, or its frame (file, line, function, calls,
    pcalls, tottime_s, cumtime_s). highlight: texts that occur in `file:line(function)`; a
    matching line is shown even when it is not among the top ones. Calls are written as pstats
    does: `20/10` is 20 calls, 10 of them not made from inside another. Raises UsageError when
    nothing matches.
    """
    frame = _frame(observation)
    columns(frame, "file", "line", "function", "calls", "pcalls", "tottime_s", "cumtime_s")
    frame = frame.sort_values("cumtime_s", ascending=False, kind="stable")
    where = frame["file"] + ":" + frame["line"].astype(str) + "(" + frame["function"] + ")"
    wanted = [highlight] if isinstance(highlight, str) else list(highlight)
    told = pd.Series(False, index=frame.index)
    for text in wanted:
        hits = where.str.contains(text, regex=False)
        if not hits.any():
            raise UsageError(f"no line of this profile contains {text!r}")
        told |= hits
    first = pd.Series(range(len(frame)), index=frame.index) < top
    frame, where, told = frame[first | told], where[first | told], told[first | told]
    titles = ("calls", "own time, s", "cumulative time, s")
    head = ['<th scope="col">where</th>']
    head += [f'<th scope="col" class="cb-number">{title}</th>' for title in titles]
    body, lines = [], [["where", *titles]]
    for row, place, hit in zip(frame.itertuples(), where, told, strict=True):
        numbers = [_calls(row), f"{row.tottime_s:.3f}", f"{row.cumtime_s:.3f}"]
        text = f"▶ {place}" if hit else place
        cells = "".join(f'<td class="cb-number">{value}</td>' for value in numbers)
        body.append(f'<th scope="row"><code>{tables.breakable(text)}</code></th>{cells}')
        lines.append([text, *numbers])
    caption = caption or f"Profile of {_label(observation)}: the largest cumulative times"
    source = _source(observation) + (" ▶ marks the telling line." if told.any() else "")
    marked = [i for i, hit in enumerate(told) if hit]
    html = tables.boxed(caption, head, body, source.strip(), marked=marked)
    return tables.Table(html, "\n".join("  ".join(line) for line in [[caption], *lines]))


def trace(
    observation,
    blocked: str = "",
    before: int = 10,
    after: int = 4,
    caption: str = "",
    quoted: Sequence[Listing] = (),
) -> tables.Table:
    """A call trace around the call in which the time passes, indented by depth.

    observation: an Observation of kind `trace`, or its frame (t_s, greenlet, depth, function,
    file, line, event). The marked call is the one after which most time passes before anything
    else happens, outside of gevent's hub; or the longest of those whose `file:line(function)`
    contains `blocked`. before, after: how many lines around it. quoted: functions that the trace
    went through, as `listings.source` quotes them; they stand above it, each linked with its row.
    Raises UsageError when nothing matches, or a quotation has no row.
    """
    frame = _frame(observation).reset_index(drop=True)
    columns(frame, "t_s", "greenlet", "depth", "function", "file", "line", "event")
    where = pd.Series([_where(row) for row in frame.itertuples()], index=frame.index)
    named = where + "(" + frame["function"] + ")"
    calls = frame["event"].isin(["call", "c_call"]) & (frame["greenlet"] != _HUB)
    calls &= named.str.contains(blocked, regex=False)
    took = (frame["t_s"].shift(-1) - frame["t_s"])[calls]
    if blocked:
        took = pd.Series({i: _duration(frame, i) for i in frame.index[calls]}, dtype=float)
    if not took.notna().any():
        raise UsageError(f"no call of this trace contains {blocked!r}")
    at = int(took.idxmax())
    part = frame[frame["event"] != "switch"]
    middle = part.index.get_loc(at)
    part = part.iloc[max(0, middle - before) : middle + after + 1]
    shallow = int(part["depth"].min())
    caption = caption or f"Call trace of {_label(observation)} around {frame['function'][at]}"
    rows = [_row_of(each, part, at) for each in quoted]
    shown, plain, greenlet = [], [], None
    for i, row in zip(part.index, part.itertuples(), strict=True):
        if row.greenlet != greenlet:
            greenlet = row.greenlet
            line = f"           greenlet {greenlet}"
            shown.append(f'<span class="cb-faint">{escape(line)}</span>')
            plain.append(line)
        arrow = "▶" if i == at else ("←" if row.event.endswith("return") else " ")
        indent = "  " * (int(row.depth) - shallow)
        line = f"{row.t_s:8.3f} {arrow} {indent}{row.function}  {where[i]}".rstrip()
        if i == at:
            line += f"  ◀ {words.seconds(took[i])} pass here"
        text = f"<mark>{escape(line)}</mark>" if i == at else escape(line)
        if i in rows:
            number = rows.index(i) + 1
            lines = _id(caption, number, "lines")
            text = f'<a id="{_id(caption, number)}" href="#{lines}">{text}</a>'
        shown.append(text)
        plain.append(line)
    source = (
        f"{_source(observation)} Seconds since the start; indented by depth; ← returns; "
        "▶ the call in which the time passes."
    )
    above = [
        f'<div id="{_id(caption, number, "lines")}">{each.html}<p><a '
        f'href="#{_id(caption, number)}">These lines in the trace below</a></p></div>'
        if each.path
        else each.html
        for number, each in enumerate(quoted, 1)
    ]
    html = "".join(above) + (
        f'<div class="cb cb-trace" role="group" aria-label="{escape(caption)}">'
        f'{style(_TRACE_CSS)}<p><span class="cb-title">{escape(caption)}.</span> '
        f'<span class="cb-source">{escape(source.strip())}</span></p>'
        f'<pre tabindex="0">{"<br>".join(shown)}</pre></div>'
    )
    texts = [each.text for each in quoted]
    return tables.Table(html, "\n".join([*texts, caption, *plain]))


def _row_of(quotation: Listing, part: pd.DataFrame, at: int) -> int | None:
    """The row of a trace in which a quoted function is called: the last one up to the row `at`.
    None where the stack's Python is missing, and nothing could be quoted."""
    if not quotation.path:
        return None
    called = part[(part["event"] == "call") & (part["file"] == quotation.path)]
    called = called[called["line"].between(quotation.first, quotation.last)]
    if called.empty:
        raise UsageError(
            f"no row of this trace is in lines {quotation.first} to {quotation.last} of "
            f"{quotation.path}: quote what it went through, or show more rows"
        )
    before = called.index[called.index <= at]
    return int(before[-1] if len(before) else called.index[0])


def _id(caption: str, number: int, what: str = "row") -> str:
    """The anchor of a quotation, or of its row."""
    return f"{slug(caption)}-{what}-{number}"


def provenance(
    observation, names: Sequence[str] = (), steps: Sequence[str] = (), caption: str = ""
) -> tables.Table:
    """Which class stood behind each name after each import step, changes marked.

    observation: an Observation of kind `provenance`, or its frame (step, name, class,
    module_file). A row per name, a column per step from the first that knows any; a cell that
    is as in the step before says "same", one that changed is bold and begins with ▲. names,
    steps: only these, in this order.
    """
    frame = _frame(observation)
    columns(frame, "step", "name", "class")
    names = list(names) or list(dict.fromkeys(frame["name"]))
    steps = list(steps) or list(dict.fromkeys(frame[frame["class"].notna()]["step"]))
    for asked, column in ((names, "name"), (steps, "step")):
        unknown = [text for text in asked if text not in set(frame[column])]
        if unknown:
            known = ", ".join(dict.fromkeys(frame[column]))
            raise UsageError(f"this provenance has no {column} {unknown[0]!r}; it has {known}")
    cell = {
        (row.name_, row.step): row.class_
        for row in frame.rename(columns={"name": "name_", "class": "class_"}).itertuples()
    }
    head = ['<th scope="col">name</th>', *(f'<th scope="col">{escape(s)}</th>' for s in steps)]
    body, lines = [], []
    for name in names:
        row, line, before = (
            f'<th scope="row"><code>{tables.breakable(name)}</code></th>',
            [name],
            None,
        )
        # A socket is there from the first connection on; everything else from its import.
        absent = "not connected" if name == "connected socket" else "not imported"
        for step in steps:
            now = cell.get((name, step))
            if now is None or pd.isna(now) or not now:
                said = absent
                row += f"<td>{absent}</td>"
            elif now == before:
                row, said = row + "<td>same</td>", "same"
            elif before is None:
                row, said = row + f"<td><code>{tables.breakable(now)}</code></td>", now
            else:
                row += f"<td><strong>▲ <code>{tables.breakable(now)}</code></strong></td>"
                said = f"▲ {now}"
            before = now if said != absent else before
            line.append(said)
        body.append(row)
        lines.append("  ".join(line))
    caption = caption or f"Who is behind each name, {_label(observation)}"
    source = f"{_source(observation)} ▲ marks a change from one step to the next."
    html = tables.boxed(caption, head, body, source.strip())
    return tables.Table(html, "\n".join([caption, "  ".join(["name", *steps]), *lines]))


def _frame(observation) -> pd.DataFrame:
    return observation if isinstance(observation, pd.DataFrame) else observation.frame


def _label(observation) -> str:
    if isinstance(observation, pd.DataFrame):
        return "this run"
    return words.stack_label(observation.stack)


def _source(observation) -> str:
    if isinstance(observation, pd.DataFrame):
        return origin(observation) if "source" in observation else ""
    return origin(
        pd.DataFrame([{"source": observation.source, "measured_at": observation.measured_at}])
    )


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


def _calls(row) -> str:
    return str(row.calls) if row.calls == row.pcalls else f"{row.calls}/{row.pcalls}"
