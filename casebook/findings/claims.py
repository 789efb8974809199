"""Findings that the book states: each with a value, a condition, and how it came out here.

A claim shows its sentence and its outcome, leaves a record in the cell's output for the ledger,
and glues its value, so that prose can quote it: {glue:text}`id:.1f`. It never raises because of
what came out: a reader sees it, and the build says it (casebook/pages).

Outcomes (laboratory/decisions.py): `holds`; `undecided` (noise, or too few runs); `otherwise`;
`not-here` (it cannot be measured on this machine).
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import pandas as pd
from IPython import get_ipython
from IPython.display import display

from casebook import words
from casebook.errors import UsageError
from casebook.findings import reach
from casebook.findings.media import CLAIM
from casebook.findings.sentences import Sentence, origin
from casebook.laboratory.decisions import HOLDS, NOT_HERE, OTHERWISE, UNDECIDED, Decision
from casebook.mistakes import for_readers

#: What `holds` is in claims.json for each outcome.
AS_HOLDS = {HOLDS: True, UNDECIDED: None, OTHERWISE: False, NOT_HERE: "not here"}

#: The sign of the mark at the end of a sentence.
_SIGNS = {HOLDS: "✓", UNDECIDED: "?", OTHERWISE: "✗", NOT_HERE: "–"}

#: myst-nb keeps outputs with this prefix as glued values and does not show them.
_GLUED = "application/papermill.record/"

#: What a record says of the rounds of a decision.
_ROUNDS = ("value", "n", "interval", "window")

Record = dict[str, Any]


@for_readers
def claim(
    id: str, statement: str, value: Any, holds: bool | None = None, unit: str = "",
    runs: Any = None, column: str = "wall_s", stack: str = "", not_here: str = "",
    also: Sequence[Decision] = (), on: str = "",
) -> None:  # fmt: skip
    """Show a finding and how it came out.

    id: small letters, digits and dashes; unique in the book. statement: a sentence with
    {value} or {value:.1f} in it, and `code` in backticks. value: a number, text or bool, in
    `unit`; or, for a finding on a clock, the Decision from decisions.Question.decide, whose
    interval decides; the sentence gives it behind the number if it lies far inside the window
    (Decision.says_more). also: further decisions that the sentence rests on; of those, the one
    that decided is shown if the sentence does not hold. holds: whether the
    condition is met, if the value is no decision; beside a decision, a further condition on
    what was counted. runs: the runs behind it, a frame or an Observation; from a frame come the
    number of runs, the stacks, the source and, if it has `column`, the spread (smallest and
    largest). not_here: why this machine cannot decide it. on: what else it was measured on, of
    which the runs have no column, such as a server; what they have is said anyway (reach.on).

    Raises UsageError for a value that is not a finite number, or without a condition. Two claims
    of one id fail the build.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id):
        raise UsageError(f"claim {id!r}: an id is made of small letters, digits and single dashes")
    decisions = [decision for decision in (value, *also) if isinstance(decision, Decision)]
    if holds is None and not decisions and not not_here:
        raise UsageError(f"claim {id!r}: say with holds= what has to be true, or give a decision")
    frame = behind(runs)
    outcome, because = _outcome(decisions, holds, not_here)
    record = {
        "id": id,
        "unit": unit,
        "n": len(frame),
        "outcome": outcome,
        "holds": AS_HOLDS[outcome],
        "because": because,
        **_of_value(id, statement, value, outcome),
        "decided": _decided(decisions, outcome),
        "correlation": _correlation(decisions),
        **_of_runs(id, frame, stack, column),
        "on": "; ".join(filter(None, (on, reach.on(frame)))),
    }
    record["attempts"] = _attempts(record, value, decisions)
    _show(record, frame)
    _glue(record)


def _of_value(id: str, statement: str, value: Any, outcome: str) -> Record:
    """Return what a record says of the value; for a decision also its rounds, its interval and what
    was asked.
    """
    record: Record = {"interval": None, "window": None}
    if isinstance(value, Decision):
        if outcome == HOLDS and value.says_more:
            statement = _with_interval(statement, value)
        record = _of_rounds(value)
        value = record.pop("value")
    if value is not None or outcome != NOT_HERE:
        value = plain(value, f"claim {id}")
    return record | {"statement": _sentence(id, statement, value), "value": value}


def _of_rounds(decision: Decision) -> Record:
    """Return what a record says of a decision."""
    value, *bounds = (
        None if math.isnan(number) else number
        for number in (decision.value, decision.low, decision.high)
    )
    interval = None if None in bounds else bounds
    return {
        "value": value, "n": decision.rounds, "interval": interval, "window": str(decision.window)
    }  # fmt: skip


def _decided(decisions: Sequence[Decision], outcome: str) -> Record | None:
    """Return what a record says of the decision that made the outcome; None if something else made
    it, or if all decisions hold.
    """
    if outcome == HOLDS:
        return None
    return next(
        (_of_rounds(decision) for decision in decisions if decision.outcome == outcome), None
    )


def _correlation(decisions: Sequence[Decision]) -> float | None:
    """Return how much the rounds of a finding resemble the next: the most of several decisions."""
    correlations = [
        decision.correlation for decision in decisions if not math.isnan(decision.correlation)
    ]
    return max(correlations, default=None)


def _with_interval(statement: str, decision: Decision) -> str:
    """Return the statement with the interval behind its number, in the number's own format."""
    of_number = re.search(r"\{value(:[^}]*)?\}", statement)
    if not of_number:
        return statement
    number_format = f"{{{of_number[1] or ':.3g'}}}"
    low, high = number_format.format(decision.low), number_format.format(decision.high)
    if low == high:  # which says no more than the number does
        return statement
    interval = f" ({low} to {high})"
    return statement[: of_number.end()] + interval + statement[of_number.end() :]


def behind(runs: Any) -> pd.DataFrame:
    """Return the runs behind something (a frame, an Observation or nothing) as a frame that has
    source, stack, delay_s and key.
    """
    names = ("source", "stack", "delay_s", "key")
    if runs is None:
        runs = pd.DataFrame()
    elif not isinstance(runs, pd.DataFrame):
        runs = pd.DataFrame([{name: getattr(runs, name, None) for name in names}])
    return runs.assign(**{name: None for name in names if name not in runs})


def _of_runs(id: str, frame: pd.DataFrame, stack: str, column: str) -> Record:
    """Return what a record says of the runs behind it."""
    recorded = frame["source"].eq(words.REFERENCE)
    spread = None
    if column in frame and frame[column].notna().any():
        extremes = frame[column].min(), frame[column].max()
        spread = [plain(extreme, f"claim {id}, {column}") for extreme in extremes]
    return {
        "source": words.REFERENCE if recorded.any() or words.is_of_file() else words.LIVE,
        # Rebuilding cannot improve recorded runs.
        "live": (not recorded.all() or frame.empty) and not words.is_of_file(),
        "stack": stack or ", ".join(frame["stack"].dropna().unique()),
        "keys": [key for key in frame["key"].dropna().unique() if key],
        "spread": spread,
    }


def _outcome(decisions: Sequence[Decision], holds: bool | None, not_here: str) -> tuple[str, str]:
    """Return the outcome of everything together, and the reason for not-here."""
    if not_here:
        return NOT_HERE, not_here
    of_counts = [] if holds is None else [HOLDS if holds else OTHERWISE]
    outcomes = {*(decision.outcome for decision in decisions), *of_counts}
    outcome = next(
        candidate for candidate in (OTHERWISE, NOT_HERE, UNDECIDED, HOLDS) if candidate in outcomes
    )
    return outcome, next(
        (decision.because for decision in decisions if decision.outcome == outcome), ""
    )


def _attempts(record: Record, value: Any, decisions: Sequence[Decision]) -> list[Record]:
    """Return the outcomes of the first attempt and of both together, if a finding on a clock
    needed a second (rounds.until_decided); else nothing.
    """
    first = _first_rounds(record, value, decisions)
    names = ("outcome", "value", "interval", "n")
    return [{name: attempt[name] for name in names} for attempt in (first, record)] if first else []


def _first_rounds(record: Record, value: Any, decisions: Sequence[Decision]) -> Record | None:
    """Return the record as it was after the first attempt, if a decision needed a second."""
    if record["outcome"] == NOT_HERE or not any(decision.first for decision in decisions):
        return None
    rounds = _of_rounds(value.first or value) if isinstance(value, Decision) else {}
    return record | rounds | {"outcome": OTHERWISE}


def plain(value: Any, place: str) -> Any:
    """Return a value as plain Python: bool, int, float or str, whatever made it (numpy, pandas).

    place: what the value belongs to, for the message. Raises UsageError for NaN, infinity and
    everything else.
    """
    if hasattr(value, "item") and not isinstance(value, pd.Series | pd.DataFrame):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{place}: {value} is not a value; is there a run behind it?")
    if not isinstance(value, bool | int | float | str):
        raise UsageError(f"{place}: a value is a number, a text or a bool, not {value!r}")
    return value


def rounded(value: Any) -> Any:
    """Return a float with at least two decimals and four significant digits, for prose."""
    if not isinstance(value, float) or value == 0:
        return value
    return round(value, max(2, 3 - math.floor(math.log10(abs(value)))))


def _show(record: Record, frame: pd.DataFrame) -> None:
    recorded, total = int(frame["source"].eq(words.REFERENCE).sum()), len(frame)
    source = words.SOURCES[words.LIVE]
    if recorded:
        source = f"{recorded} of {total} runs from the reference machine"
    clock, is_here = _describe_clock(record), record["outcome"] != NOT_HERE
    Sentence(
        kind="claim",
        id=record["id"],
        text=record["statement"],
        sign=_SIGNS[record["outcome"]],
        outcome=_in_words(record["outcome"]),
        origin=origin(recorded, total) if is_here else "",
        details="; ".join(filter(None, (source, clock))) if is_here else "",
        remark=_remark(record, clock),
    ).show(CLAIM, record)


def figure(record: Record, is_known: bool = False) -> str:
    """Return what a finding came to, for a sentence that rests on it: its own sentence, with the
    interval and what was asked; or why it was not measured.

    is_known: the page has said so before. The interval alone then says which figure it is.
    """
    if record["outcome"] == NOT_HERE:
        return record["because"].rstrip(".")
    clock = _describe_clock(record)
    statements = [] if clock and is_known else [record["statement"].rstrip(".")]
    return ": ".join(filter(None, [*statements, clock]))


def _describe_clock(record: Record) -> str:
    """Describe the interval that decided a finding on a clock, what was asked, and both
    attempts.
    """
    parts = []
    rounds = record["decided"] or record
    if record["outcome"] == OTHERWISE and record["window"] and not record["decided"]:
        parts = ["what was counted beside the clock is not as it was asked"]
    elif rounds["window"]:
        interval = f"{rounds['n']} rounds are too few to say"
        if rounds["interval"]:
            interval = "{:.3g} to {:.3g} in {} rounds".format(*rounds["interval"], rounds["n"])
        if [rounds[name] for name in _ROUNDS] != [record[name] for name in _ROUNDS]:
            interval = f"of what it rests on, one figure is {rounds['value']:.3g}, {interval}"
        parts = [interval, f"asked: {rounds['window']}"]
    if record["attempts"]:
        outcomes = ", then ".join(_in_words(attempt["outcome"]) for attempt in record["attempts"])
        parts.append(f"measured twice: {outcomes}")
    return ", ".join(parts)


def _in_words(outcome: str) -> str:
    return outcome.replace("-", " ")


def _remark(record: Record, clock: str) -> str:
    """Say in words what did not hold, and how to measure more."""
    if record["outcome"] == HOLDS:
        return ""
    if record["outcome"] == NOT_HERE:
        return f"Not on {words.machine()}: {record['because'].rstrip('.')}."
    verdict, advice = (
        "It came out otherwise here",
        "To measure it again, run this chapter once more.",
    )
    if record["outcome"] == UNDECIDED:
        verdict = "Undecided here"
        if record["window"]:
            advice = "A quieter machine may decide it, or more rounds: `looks=(64,)` in its cell."
    return f"{verdict}{': ' * bool(clock)}{clock}. {advice}"


def _glue(record: Record) -> None:
    value = record["because"] or "not here" if record["value"] is None else record["value"]
    if get_ipython() is not None:
        display(
            # Unrounded: its format rounds it, once.
            {f"{_GLUED}text/plain": repr(value)},
            raw=True,
            metadata={"scrapbook": {"name": record["id"], "mime_prefix": _GLUED}},
        )


def _sentence(id: str, statement: str, value: Any) -> str:
    if value is None:
        return re.sub(r"\{value[^}]*\}", "…", statement)
    try:
        return statement.replace("{value}", str(rounded(value))).format(value=value)
    except (ValueError, KeyError, IndexError) as error:
        raise UsageError(f"claim {id}: {statement!r} cannot take {value!r}: {error}") from None
