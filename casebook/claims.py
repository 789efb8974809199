"""Findings that the book states: each with a value and a condition that the build checks.

A claim shows its sentence, leaves a record in the cell's output for the ledger, and glues its
value, so that prose can quote it: {glue:text}`id:.1f`. A claim that does not hold here raises,
and the book is not built.
"""

import math
import os
import re
from collections.abc import Sequence
from html import escape

import pandas as pd
from IPython import get_ipython
from IPython.display import display

from casebook import words
from casebook.colours import style
from casebook.errors import ClaimReversed, UsageError
from casebook.media import CLAIM

#: What `holds` is for a claim that this machine cannot decide.
NOT_HERE = "not here"

#: myst-nb keeps outputs with this prefix as glued values and does not show them.
_GLUED = "application/papermill.record/"

_made: dict[str, tuple] = {}

_CSS = (
    ".cb-note{margin:.75rem 0;padding:.4rem .75rem;border-inline-start:3px solid "
    "var(--cb-faint,#5c6166);font-size:.95em;line-height:1.5;"
    "background:color-mix(in srgb,currentColor 4%,transparent)}"
    ".cb-note p{margin:0}.cb-note .cb-faint{color:var(--cb-faint,#5c6166)}"
    ".cb.cb-note code{background:none;border:0;padding:0;color:inherit;overflow-wrap:anywhere}"
    ".cb-note.cb-yes{border-color:var(--cb-stage-4,#24805e)}"
    ".cb-note.cb-no{border-color:var(--cb-stall,#b3261e)}"
)


def claim(
    id: str,
    statement: str,
    value,
    holds: bool,
    unit: str = "",
    runs=None,
    column: str = "wall_s",
    spread: Sequence[float] | None = None,
    stack: str = "",
    not_here: str = "",
) -> None:
    """Show a finding and check it.

    id: small letters, digits and dashes; unique in the book. statement: a sentence with
    {value} or {value:.1f} in it. value: a number, text or bool, in `unit`. holds: whether the
    condition is met. runs: the runs behind it, a frame or an Observation; from a frame come
    the number of runs, the stacks, the source and, where it has `column`, the spread (smallest
    and largest). spread: to give it instead. not_here: why this machine cannot decide it.

    Raises ClaimReversed when the claim does not hold and any run behind it was measured here,
    and UsageError for a value that is not a finite number or a second claim of the same id.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id):
        raise UsageError(f"claim {id!r}: an id is made of small letters, digits and single dashes")
    value = plain(value, f"claim {id}", nothing_allowed=bool(not_here))
    _only_once(id, statement)
    sentence = _sentence(id, statement, value)
    recorded, total = of_source(runs, words.REFERENCE)
    record = {
        "id": id,
        "statement": sentence,
        "value": value,
        "unit": unit,
        "n": total,
        "spread": _spread(id, runs, column, spread),
        "holds": NOT_HERE if not_here else bool(holds),
        "because": not_here,
        "source": words.REFERENCE if recorded else words.LIVE,
        "stack": stack or _stacks(runs),
        "chapter": os.environ.get("CASEBOOK_CHAPTER", ""),
    }
    _show(record, recorded, total)
    _glue(id, not_here if value is None else value)
    if record["holds"] is False and (recorded < total or not total):
        raise ClaimReversed(
            f"claim {id} does not hold on this machine: {sentence} (value: {value}"
            f"{f' {unit}' if unit else ''}). Look at the runs behind it, or say not_here=why."
        )


def plain(value, what: str, nothing_allowed: bool = False):
    """A value as plain Python: bool, int, float or str, whatever made it (numpy, pandas).

    Raises UsageError for NaN, infinity and everything else.
    """
    if hasattr(value, "item") and not isinstance(value, pd.Series | pd.DataFrame):
        value = value.item()
    if value is None and nothing_allowed:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{what}: {value} is not a value; is there a run behind it?")
    if not isinstance(value, bool | int | float | str):
        raise UsageError(f"{what}: a value is a number, a text or a bool, not {value!r}")
    return value


def rounded(value):
    """A float with at least two decimals and four significant digits, for prose."""
    if not isinstance(value, float) or value == 0:
        return value
    return round(value, max(2, 3 - math.floor(math.log10(abs(value)))))


def of_source(runs, source: str) -> tuple[int, int]:
    """How many of the runs behind something come from a source, and how many there are."""
    if runs is None:
        return 0, 0
    if isinstance(runs, pd.DataFrame):
        return (int((runs["source"] == source).sum()) if "source" in runs else 0), len(runs)
    return int(runs.source == source), 1


def note(kind: str, html: str, anchor: str) -> str:
    """One sentence in a box. kind: yes, no or maybe. anchor: the id to link to."""
    return (
        f'<div class="cb cb-note cb-{kind}" id="{escape(anchor)}" role="note">'
        f"{style(_CSS)}<p>{html}</p></div>"
    )


def emit(mime: str, record: dict, html: str, text: str) -> None:
    """Put a record and how it looks into the cell's output; without a notebook, print it."""
    if get_ipython() is None:
        print(text)
    else:
        display({"text/html": html, "text/plain": text, mime: record}, raw=True)


def _show(record: dict, recorded: int, total: int) -> None:
    verdict, kind = {
        True: ("holds", "yes"),
        False: ("does not hold", "no"),
        NOT_HERE: (f"not on this machine: {record['because']}", "maybe"),
    }[record["holds"]]
    if recorded:
        of = "" if recorded == total else f"{recorded} of {total} runs "
        verdict += f" ({of}from the reference machine, not measured now)"
    html = (
        f"<strong>Claim</strong> <code>{record['id']}</code> · {escape(record['statement'])} · "
        f"<strong>{escape(verdict)}</strong>"
    )
    text = f"Claim {record['id']} · {record['statement']} · {verdict}"
    emit(CLAIM, record, note(kind, html, f"claim-{record['id']}"), text)


def _glue(id: str, value) -> None:
    if get_ipython() is not None:
        display(
            {f"{_GLUED}text/plain": repr(rounded(value))},
            raw=True,
            metadata={"scrapbook": {"name": id, "mime_prefix": _GLUED}},
        )


def _only_once(id: str, statement: str) -> None:
    """Refuse a second claim of one id; running its cell again, changed or not, is no second."""
    shell = get_ipython()
    count = cell = None
    if shell is not None:
        count = shell.execution_count
        header = getattr(shell, "parent_header", None) or {}
        cell = (header.get("metadata") or {}).get("cellId")
    before = _made.get(id)
    if before is not None:
        its_statement, its_count, its_cell = before
        same_run = count is not None and count == its_count
        same_cell = cell is not None and cell == its_cell
        if same_run or not (same_cell or statement == its_statement):
            raise UsageError(
                f"claim {id!r} is made twice: once saying {its_statement!r}. Give one another id."
            )
    _made[id] = (statement, count, cell)


def _sentence(id: str, statement: str, value) -> str:
    if value is None:
        return re.sub(r"\{value[^}]*\}", "…", statement)
    bare = str(rounded(value))
    try:
        return re.sub(r"\{value\}", lambda _: bare, statement).format(value=value)
    except (ValueError, KeyError, IndexError) as error:
        raise UsageError(f"claim {id}: {statement!r} cannot take {value!r}: {error}") from None


def _spread(id: str, runs, column: str, given: Sequence[float] | None) -> list | None:
    if given is not None:
        return [plain(end, f"claim {id}, spread") for end in given]
    if isinstance(runs, pd.DataFrame) and column in runs and runs[column].notna().any():
        ends = runs[column].min(), runs[column].max()
        return [plain(end, f"claim {id}, {column}") for end in ends]
    return None


def _stacks(runs) -> str:
    if isinstance(runs, pd.DataFrame):
        return ", ".join(dict.fromkeys(runs["stack"])) if "stack" in runs else ""
    return getattr(runs, "stack", "")
