"""Makes findings: `claim` states something, decides how it came out here, and shows it.

A claim shows its sentence and its outcome, leaves the finding in the cell's output for the ledger,
and glues its value, so that prose can quote it: {glue:text}`id:.1f`. It never raises because of
what came out: a reader sees it, and the build says it (casebook/pages).

Outcomes (laboratory/decisions.py): `holds`; `undecided` (noise, or too few runs); `otherwise`;
`not-here` (it cannot be measured on this machine).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from IPython import get_ipython
from IPython.display import display

from casebook import words
from casebook.errors import UsageError
from casebook.findings import reach
from casebook.findings.finding import Attempt, Finding, Rounds, Value, outcome_of
from casebook.findings.media import CLAIM
from casebook.findings.sentences import Sentence, origin
from casebook.laboratory.decisions import (
    HOLDS,
    NOT_HERE,
    OTHERWISE,
    UNDECIDED,
    Decision,
    outcome_in_words,
)
from casebook.mistakes import for_readers

#: The sign of the mark at the end of a sentence.
_SIGNS = {HOLDS: "✓", UNDECIDED: "?", OTHERWISE: "✗", NOT_HERE: "–"}

#: myst-nb keeps outputs with this prefix as glued values and does not show them.
_GLUED = "application/papermill.record/"


@for_readers
def claim(  # noqa: PLR0913 - a chapter's call, each keyword about the finding
    id: str, statement: str, value: Any, holds: bool | None = None, unit: str = "",
    runs: Any = None, column: str = "wall_s", stack: str = "", not_here: str = "",
    also: Sequence[Decision] = (), on: str = "",
) -> None:  # fmt: skip
    """Show a finding and how it came out.

    id: small letters, digits and dashes; unique in the book. statement: a sentence with
    {value} or {value:.1f} in it, and `code` in backticks. value: a number, text or bool, in
    `unit`; or, for a finding on a clock, the Decision from decisions.Hypothesis.decide, whose
    interval decides; the sentence gives it behind the number if it lies far inside the window
    (Decision.interval_tells_more). also: further decisions that the sentence rests on; of those,
    the one that decided is shown if the sentence does not hold. holds: whether the condition is
    met, if the value is no decision; beside a decision, a further condition on what was counted.
    runs: the runs behind it, a frame or an Observation; from a frame come the number of runs, the
    stacks, the source and, if it has `column`, the spread (smallest and largest). not_here: why
    this machine cannot decide it. on: what else it was measured on, of which the runs have no
    column, such as a server; what they have is added anyway (reach.conditions_of).

    Raises UsageError for a value that is not a finite number, or without a condition. Two claims
    of one id fail the build.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id):
        raise UsageError(f"claim {id!r}: an id is made of small letters, digits and single dashes")
    decisions = [decision for decision in (value, *also) if isinstance(decision, Decision)]
    if holds is None and not decisions and not not_here:
        raise UsageError(f"claim {id!r}: say with holds= what has to be true, or give a decision")
    frame = runs_frame(runs)
    outcome, because = outcome_of(decisions, holds, not_here)
    finding = Finding(
        id,
        unit=unit,
        outcome=outcome,
        because=because,
        decided=_decided(decisions, outcome),
        correlation=_correlation(decisions),
        on="; ".join(filter(None, (on, reach.conditions_of(frame)))),
        **_of_runs(id, frame, stack, column) | _of_value(id, statement, value, outcome),
    )
    finding = replace(finding, attempts=_attempts(finding, value, decisions))
    _show(finding, frame)
    _glue(finding)


def _of_value(id: str, statement: str, value: Any, outcome: str) -> dict[str, Any]:
    """Return the fields of a finding that follow from its value, or from the rounds of it."""
    rounds: dict[str, Any] = {}
    if isinstance(value, Decision):
        if outcome == HOLDS and value.interval_tells_more:
            statement = _with_interval(statement, value)
        rounds = vars(Rounds.from_decision(value))
        value = rounds["value"]
    if value is not None or outcome != NOT_HERE:
        value = plain(value, f"claim {id}")
    return rounds | {"statement": _sentence(id, statement, value), "value": value}


def _decided(decisions: Sequence[Decision], outcome: str) -> Rounds | None:
    """Return the rounds that made the outcome; None if a count made it, or if all of it holds."""
    if outcome == HOLDS:
        return None
    return next(
        (Rounds.from_decision(decision) for decision in decisions if decision.outcome == outcome),
        None,
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


def runs_frame(runs: Any) -> pd.DataFrame:
    """Return the runs behind something as a frame that has source, stack, delay_s and key.

    runs: a frame, an Observation or nothing.
    """
    names = ("source", "stack", "delay_s", "key")
    if runs is None:
        runs = pd.DataFrame()
    elif not isinstance(runs, pd.DataFrame):
        runs = pd.DataFrame([{name: getattr(runs, name, None) for name in names}])
    return runs.assign(**{name: None for name in names if name not in runs})


def _of_runs(id: str, frame: pd.DataFrame, stack: str, column: str) -> dict[str, Any]:
    """Return the fields of a finding that follow from the runs behind it."""
    recorded = frame["source"].eq(words.REFERENCE)
    spread = None
    if column in frame and frame[column].notna().any():
        extremes = frame[column].min(), frame[column].max()
        spread = [plain(extreme, f"claim {id}, {column}") for extreme in extremes]
    return {
        "n": len(frame),
        "source": words.REFERENCE if recorded.any() or words.is_from_machine_file() else words.LIVE,
        # Rebuilding cannot improve recorded runs.
        "live": (not recorded.all() or frame.empty) and not words.is_from_machine_file(),
        "stack": stack or ", ".join(frame["stack"].dropna().unique()),
        "keys": [key for key in frame["key"].dropna().unique() if key],
        "spread": spread,
    }


def _attempts(finding: Finding, value: Any, decisions: Sequence[Decision]) -> list[Attempt]:
    """Return the first attempt and both together, if a finding on a clock needed a second one.

    The second is taken where the rounds are (rounds.until_decided); without one there are none. If
    it was another decision than the value's that needed it, the first attempt has no value.
    """
    firsts = [decision.first for decision in decisions if decision.first]
    if finding.outcome == NOT_HERE or not firsts:
        return []
    both = Attempt(finding.outcome, finding.value, finding.interval, finding.n)
    if isinstance(value, Decision) and value.first:
        first = Rounds.from_decision(value.first)
        return [Attempt(OTHERWISE, first.value, first.interval, first.n), both]
    return [Attempt(OTHERWISE, None, None, firsts[0].rounds), both]


def plain(value: Any, place: str) -> Value:
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


def _show(finding: Finding, frame: pd.DataFrame) -> None:
    recorded, total = int(frame["source"].eq(words.REFERENCE).sum()), len(frame)
    source = words.SOURCES[words.LIVE]
    if recorded:
        source = f"{recorded} of {total} runs recorded on another machine"
    clock, is_here = finding.clock(), finding.outcome != NOT_HERE
    Sentence(
        kind="claim",
        id=finding.id,
        text=finding.statement,
        sign=_SIGNS[finding.outcome],
        outcome=outcome_in_words(finding.outcome),
        origin=origin(recorded, total) if is_here else "",
        details="; ".join(filter(None, (source, clock))) if is_here else "",
        remark=_remark(finding, clock),
    ).show(CLAIM, finding.as_json())


def _remark(finding: Finding, clock: str) -> str:
    """Say in words what did not hold, and how to measure more."""
    if finding.outcome == HOLDS:
        return ""
    if finding.outcome == NOT_HERE:
        return f"Not on {words.machine()}: {finding.because.rstrip('.')}."
    sentence, advice = (
        "It came out otherwise here",
        "To measure it again, run this chapter once more.",
    )
    if finding.outcome == UNDECIDED:
        sentence = "Undecided here"
        if finding.window:
            advice = "A quieter machine may decide it, or more rounds: `looks=(64,)` in its cell."
    return f"{sentence}{': ' * bool(clock)}{clock}. {advice}"


def _glue(finding: Finding) -> None:
    value = finding.because or "not here" if finding.value is None else finding.value
    if get_ipython() is not None:
        display(
            # Unrounded: its format rounds it, once.
            {f"{_GLUED}text/plain": repr(value)},
            raw=True,
            metadata={"scrapbook": {"name": finding.id, "mime_prefix": _GLUED}},
        )


def _sentence(id: str, statement: str, value: Any) -> str:
    if value is None:
        return re.sub(r"\{value[^}]*\}", "…", statement)
    try:
        return statement.replace("{value}", str(rounded(value))).format(value=value)
    except (ValueError, KeyError, IndexError) as error:
        raise UsageError(f"claim {id}: {statement!r} cannot take {value!r}: {error}") from None
