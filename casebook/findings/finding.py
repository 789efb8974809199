"""A finding: a statement of the book, what was measured for it, and how it came out.

A chapter makes one with `claim` (claims.py). Its cell shows it as a sentence (sentences.py) and
hands it on as JSON (media.CLAIM); a build gathers all of them and writes `claims.json`, one object
per finding, with the fields below and `holds`.

How a finding comes out is decided in one place, `outcome_of`: from the decisions on its rounds
(laboratory/decisions.py) and from what was counted beside them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from casebook.laboratory.decisions import (
    HOLDS,
    NOT_HERE,
    OTHERWISE,
    UNDECIDED,
    Decision,
    outcome_in_words,
)

#: The field `holds` of claims.json for each outcome. Programs decide by `outcome`, since the text
#: counts as true.
AS_HOLDS = {HOLDS: True, UNDECIDED: None, OTHERWISE: False, NOT_HERE: "not here"}

Value = bool | int | float | str


@dataclass(frozen=True)
class Rounds:
    """The rounds of a decision: their median, their number, its interval, and what was asked.

    A missing number is None, since JSON has no NaN: three rounds have no interval.
    """

    value: float | None
    n: int
    interval: list[float] | None
    window: str

    @classmethod
    def from_decision(cls, decision: Decision) -> "Rounds":
        """Return the rounds of a decision."""
        value, *bounds = (
            None if math.isnan(number) else number
            for number in (decision.value, decision.low, decision.high)
        )
        interval = [bound for bound in bounds if bound is not None]
        return cls(
            value, decision.rounds, interval if len(interval) == 2 else None, str(decision.window)
        )


@dataclass(frozen=True)
class Attempt:
    """How a finding on a clock came out in the first attempt, or in both together.

    Fields as in Finding; value and interval are None if they are not known of the first alone.
    """

    outcome: str
    value: Value | None
    interval: list[float] | None
    n: int


@dataclass(frozen=True)
class Finding:
    """A statement and how it came out.

    Fields:
        id: unique in the book, such as "load-threads".
        statement: the sentence, with its number in it.
        value: what was measured, in `unit`; None if it was not measured here.
        n: the number of runs behind it, or of rounds.
        spread: the smallest and the largest of these runs, if they have the column in question.
        interval, window: of a finding on a clock, the confidence interval of the median and what
            was asked.
        decided: the rounds of the first decision that has this outcome; None if the finding holds,
            or if a count made the outcome.
        correlation: of a round with the next, the largest of all decisions; None if unknown.
        outcome: one of decisions.OUTCOMES.
        because: why it cannot be decided here.
        attempts: both, if a finding on a clock needed a second one.
        source: "live", or "reference" if any of its runs was recorded elsewhere.
        stack, on: what it was measured on; `on` is what reach.conditions_of says of its runs.
        chapter: the stem of its notebook, once a build has gathered it.
        live: whether anything was measured here, so that another build may come out otherwise.
        keys: of the stored measurements behind it.
    """

    id: str
    statement: str
    value: Value | None = None
    unit: str = ""
    n: int = 0
    spread: list[Value] | None = None
    interval: list[float] | None = None
    window: str | None = None
    decided: Rounds | None = None
    correlation: float | None = None
    outcome: str = field(kw_only=True)
    because: str = ""
    attempts: list[Attempt] = field(default_factory=list)
    source: str = ""
    stack: str = ""
    on: str = ""
    chapter: str = ""
    live: bool = False
    keys: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object, with AS_HOLDS."""
        return asdict(self) | {"holds": AS_HOLDS[self.outcome]}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Finding":
        """Read a finding as `as_json` writes it.

        A field that is missing has its default; id, statement and outcome have none (TypeError).
        """
        values = {f.name: record[f.name] for f in fields(cls) if f.name in record}
        if values.get("decided"):
            values["decided"] = Rounds(**values["decided"])
        values["attempts"] = [Attempt(**attempt) for attempt in values.get("attempts") or ()]
        return cls(**values)

    def in_brief(self, is_known: bool = False) -> str:
        """Return what the finding came to, for a sentence that rests on it.

        That is its own sentence, with the interval and what was asked; or why it was not measured.

        is_known: the page has said so before. The interval alone then says which figure it is.
        """
        if self.outcome == NOT_HERE:
            return self.because.rstrip(".")
        clock = self.clock()
        statements = [] if clock and is_known else [self.statement.rstrip(".")]
        return ": ".join(filter(None, [*statements, clock]))

    def clock(self) -> str:
        """Describe the interval that decided a finding on a clock, what was asked, and attempts."""
        parts = []
        rounds = self.decided or self
        if self.outcome == OTHERWISE and self.window and not self.decided:
            parts = ["what was counted beside the clock is not as it was asked"]
        elif rounds.window:
            interval = f"{rounds.n} rounds are too few to say"
            if rounds.interval:
                interval = "{:.3g} to {:.3g} in {} rounds".format(*rounds.interval, rounds.n)
            shown = (self.value, self.n, self.interval, self.window)
            if (rounds.value, rounds.n, rounds.interval, rounds.window) != shown:
                interval = f"of what it rests on, one figure is {rounds.value:.3g}, {interval}"
            parts = [interval, f"asked: {rounds.window}"]
        if self.attempts:
            outcomes = ", then ".join(
                outcome_in_words(attempt.outcome) for attempt in self.attempts
            )
            parts.append(f"measured twice: {outcomes}")
        return ", ".join(parts)


def outcome_of(decisions: Sequence[Decision], holds: bool | None, not_here: str) -> tuple[str, str]:
    """Decide how a finding comes out: as its worst part. Returns the outcome, and why not here.

    decisions: on rounds. holds: whether what was counted is as it was asked, None if nothing was
    counted. not_here: why this machine cannot decide it; empty if it can.
    """
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
