"""Findings that the book states: each with a value, a condition, and how it came out here.

A claim shows its sentence and its outcome, leaves a record in the cell's output for the ledger,
and glues its value, so that prose can quote it: {glue:text}`id:.1f`. It never raises because of
what came out: a reader sees it, and the build says it (casebook/pages).

Outcomes (casebook/runs/decisions.py): `holds`; `undecided` (noise, or too few runs); `otherwise`;
`not-here` (it cannot be measured on this machine).
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
from casebook.errors import UsageError
from casebook.media import CLAIM
from casebook.runs import again
from casebook.runs.decisions import HOLDS, NOT_HERE, OTHERWISE, UNDECIDED, Decision

#: What `holds` is in claims.json for each outcome.
AS_HOLDS = {HOLDS: True, UNDECIDED: None, OTHERWISE: False, NOT_HERE: "not here"}

_SAYS = {
    HOLDS: "holds",
    UNDECIDED: "undecided",
    OTHERWISE: "came out otherwise",
    NOT_HERE: "not on this machine",
}
_KINDS = {HOLDS: "yes", UNDECIDED: "maybe", OTHERWISE: "no", NOT_HERE: "maybe"}

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
    holds: bool | None = None,
    unit: str = "",
    runs=None,
    column: str = "wall_s",
    spread: Sequence[float] | None = None,
    stack: str = "",
    not_here: str = "",
    also: Sequence[Decision] = (),
) -> None:
    """Show a finding and how it came out.

    id: small letters, digits and dashes; unique in the book. statement: a sentence with
    {value} or {value:.1f} in it. value: a number, text or bool, in `unit`; or, for a finding on
    a clock, the Decision from decisions.Question.decide, whose interval decides. also: further
    decisions that the sentence rests on. holds: whether the condition is met, where the value
    is no decision; beside a decision, a further condition on what was counted.
    runs: the runs behind it, a frame or an Observation; from a frame come the number of runs,
    the stacks, the source and, where it has `column`, the spread (smallest and largest). spread:
    to give it instead. not_here: why this machine cannot decide it.

    Raises UsageError for a value that is not a finite number, a second claim of the same id, or
    a claim without a condition.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id):
        raise UsageError(f"claim {id!r}: an id is made of small letters, digits and single dashes")
    decisions = [each for each in (value, *also) if isinstance(each, Decision)]
    if holds is None and not decisions and not not_here:
        raise UsageError(f"claim {id!r}: say with holds= what has to be true, or give a decision")
    outcome, because = _outcome(decisions, holds, not_here)
    decided = value if isinstance(value, Decision) else None
    if decided is not None:
        value = None if math.isnan(decided.value) else decided.value
    value = plain(value, f"claim {id}", nothing_allowed=outcome == NOT_HERE)
    _only_once(id, statement)
    sentence = _sentence(id, statement, value)
    recorded, total = of_source(runs, words.REFERENCE)
    record = {
        "id": id,
        "statement": sentence,
        "value": value,
        "unit": unit,
        "n": decided.rounds if decided else total,
        "spread": _spread(id, runs, column, spread),
        "interval": _interval(decided),
        "window": str(decided.window) if decided else None,
        "outcome": outcome,
        "holds": AS_HOLDS[outcome],
        "because": because,
        "source": words.REFERENCE if recorded else words.LIVE,
        # Of what was only recorded, another build makes nothing better.
        "live": recorded < total or not total,
        "stack": stack or _stacks(runs),
        "chapter": os.environ.get("CASEBOOK_CHAPTER", ""),
        "keys": _keys(runs),
    }
    record = _both_attempts(record, decided is not None)
    _show(record, recorded, total)
    _glue(id, because or "not here" if value is None else value)


def _outcome(decisions: Sequence[Decision], holds: bool | None, not_here: str) -> tuple[str, str]:
    """The outcome of everything together, and why where it is not-here."""
    if not_here:
        return NOT_HERE, not_here
    counted = [] if holds is None else [HOLDS if holds else OTHERWISE]
    found = [*(each.outcome for each in decisions), *counted]
    for outcome in (OTHERWISE, NOT_HERE, UNDECIDED):
        if outcome in found:
            because = next((each.because for each in decisions if each.because), "")
            return outcome, because if outcome == NOT_HERE else ""
    return HOLDS, ""


def _both_attempts(record: dict, by_interval: bool) -> dict:
    """The record, with both attempts where a chapter was taken once more.

    An interval is made of all runs of both. Where something was counted, and the two attempts
    differ, there is no deciding between them.
    """
    first = again.before(record["id"])
    if first is None:
        return record | {"attempts": []}
    told = ("outcome", "value", "interval", "n")
    attempts = [{name: each[name] for name in told} for each in (first, record)]
    if not by_interval and record["outcome"] == HOLDS and first["outcome"] == OTHERWISE:
        record = record | {"outcome": UNDECIDED, "holds": None}
    return record | {"attempts": attempts}


def _keys(runs) -> list[str]:
    """The names in the store of the runs behind something."""
    if isinstance(runs, pd.DataFrame):
        keys = runs["key"].dropna().unique().tolist() if "key" in runs else []
    else:
        keys = [getattr(runs, "key", "")]
    return [key for key in keys if key]


def _interval(decided: Decision | None) -> list | None:
    if decided is None or math.isnan(decided.low):
        return None
    return [decided.low, decided.high]


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
    verdict = in_words(record)
    if recorded:
        of = "" if recorded == total else f"{recorded} of {total} runs "
        verdict += f" ({of}from the reference machine, not measured now)"
    html = (
        f"<strong>Claim</strong> <code>{record['id']}</code> · {escape(record['statement'])} · "
        f"<strong>{escape(verdict)}</strong>{escape(_more(record))}"
    )
    text = f"Claim {record['id']} · {record['statement']} · {verdict}{_more(record)}"
    emit(CLAIM, record, note(_KINDS[record["outcome"]], html, f"claim-{record['id']}"), text)


def in_words(record: dict) -> str:
    """How a claim came out, in words: "came out otherwise, twice"."""
    said = _SAYS[record["outcome"]]
    if record["outcome"] == NOT_HERE:
        return f"{said}: {record['because']}"
    if record["attempts"]:
        firsts = ", then ".join(_SAYS[each["outcome"]] for each in record["attempts"])
        said += f" (measured twice: {firsts})"
    return said


def _more(record: dict) -> str:
    """The interval of a finding on a clock, what was asked, and what to do where it is open."""
    if not record["window"] or record["outcome"] == NOT_HERE:
        return ""
    asked = f"asked: {record['window']}"
    if record["interval"] is None:
        return f"; {asked}; {record['n']} rounds are too few to say"
    low, high = (f"{end:.3g}" for end in record["interval"])
    said = f"; {low} to {high} in {record['n']} rounds, {asked}"
    if record["outcome"] == UNDECIDED:
        said += ". More rounds: looks=(64,) where it is measured"
    return said


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
