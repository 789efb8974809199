"""How a finding on a clock is decided: repeats in turns, and an interval.

    saved = ratio("cpu_s", cured, stock, below=0.4)         # first what is asked ...
    frame = measure([cured, stock], n=30, until=[saved])    # ... then the runs, in turns
    saved.decide(frame)                                     # 0.12 (0.11 to 0.13, 8 rounds): holds

A *round* takes each of the things compared once, in turns (laboratory/rounds.py). Each round
gives one value: a ratio of two runs next to each other, or one run's figure. The finding is the
median of these values, and its confidence interval is that of order statistics: two of the sorted
values, which have the true median between them whatever the noise looks like
(scipy.stats.quantile_test; W. J. Conover, Practical Nonparametric Statistics, 3rd edition, section
3.2).

We look after 8, 16 and 32 rounds. If we find *otherwise*, as many rounds again are taken
(`rounds.until_decided`), and all together decide: that is the fourth and last look. Four looks make
an error more likely than one, so the 5 % are divided among them (Bonferroni): 1.25 % each.
tests/laboratory/test_decisions.py measures the rate, the second attempt included, with drift and
with spells of a slow machine put in.

That interval takes each round for a new one. Where rounds resemble the ones before them, more than
independent rounds of that number seem to, it is widened, as if there were fewer of them.
laboratory/error_rates.py simulates what is left of the error, and tests hold it to the promise.
"""

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from casebook.errors import UsageError
from casebook.mistakes import for_readers
from casebook.words import ON, REFERENCE

HOLDS, UNDECIDED, OTHERWISE, NOT_HERE = "holds", "undecided", "otherwise", "not-here"
OUTCOMES = (HOLDS, UNDECIDED, OTHERWISE, NOT_HERE)


def outcome_in_words(outcome: str) -> str:
    """Return an outcome as a reader says it: "not here"."""
    return outcome.replace("-", " ")


#: After how many rounds we look. A second attempt doubles the rounds: one look more.
LOOKS = (8, 16, 32)
#: How often a finding may come out on the wrong side of its window, all looks together.
ERROR = 0.05
#: The same at one look, and beyond one end of the interval.
_ONE_SIDE = ERROR / (len(LOOKS) + 1) / 2
#: No correlation counts for more than this: a few rounds cannot tell it from 1.
MOST_ALIKE = 0.95


@dataclass(frozen=True)
class Window:
    """Where a value has to lie: between low and high, both without the ends."""

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low < self.high or (math.isinf(self.low) and math.isinf(self.high)):
            raise UsageError(f"a window needs an end, the lower one first: {self.low}, {self.high}")

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"above {self.low:g}"
        lower_end = "" if math.isinf(self.low) else f"{self.low:g} and "
        return f"{'between' if lower_end else 'below'} {lower_end}{self.high:g}"

    @classmethod
    def read(cls, text: str) -> "Window":
        """Read a window as `str` writes it. Raises UsageError if it is none."""
        bounds = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?", text)]
        candidates = [cls(low=bounds[0]), cls(high=bounds[0])] if len(bounds) == 1 else []
        if len(bounds) == 2 and bounds[0] < bounds[1]:
            candidates = [cls(*bounds)]
        for window in candidates:
            if str(window) == text:
                return window
        raise UsageError(f"{text!r} is no window: above 1, below 2, or between 1 and 2")

    def outcome(self, low: float, high: float) -> str:
        """Compare an interval with the window.

        Parameters:
            low, high: the interval; NaN if there is none.

        Returns HOLDS for an interval inside the window, OTHERWISE for one outside, UNDECIDED for
        one that straddles an end, or for none.
        """
        if self.low < low and high < self.high:
            return HOLDS
        return OTHERWISE if high <= self.low or low >= self.high else UNDECIDED


@dataclass(frozen=True)
class Decision:
    """What the rounds say.

    Fields:
        value: the median of the rounds.
        low, high: its interval, widened where rounds resemble each other; NaN where there are too
            few rounds to have one.
        rounds: how many there are.
        window: where the value had to lie.
        outcome: one of OUTCOMES.
        because: why it cannot be decided here; empty where it can.
        more_rounds_may_decide: these rounds cannot decide it, and further ones may have what they
            lacked, such as a second core that was free.
        correlation: of each round's value with that of the next, from -1 to 1; NaN if unknown.
        first: the decision of the first attempt, which came out otherwise, if there was a second.
            All other fields are of the rounds of both.
    """

    value: float
    low: float
    high: float
    rounds: int
    window: Window
    outcome: str
    because: str = ""
    correlation: float = math.nan
    first: "Decision | None" = None
    more_rounds_may_decide: bool = False

    @property
    def interval_tells_more(self) -> bool:
        """Check whether the interval says more than the window, which has one end.

        So it does if it lies so far inside (beyond twice the end, or below half of it) that the
        window alone says little of it.
        """
        if math.isinf(self.window.high):
            return 0 <= 2 * self.window.low < self.low
        return math.isinf(self.window.low) and self.high < self.window.high / 2

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        """Format the value; without one, as where this cannot be measured, with an ellipsis."""
        return "…" if math.isnan(self.value) else format(self.value, spec)

    def __str__(self) -> str:
        has_one = not math.isnan(self.low)
        interval = f"{self.low:.3g} to {self.high:.3g}" if has_one else "no interval"
        return f"{self.value:.3g} ({interval}, {self.rounds} rounds): {self.outcome}"


@for_readers
@dataclass(frozen=True)
class Hypothesis:
    """What the rounds have to decide, said before they are taken: that a value lies in a window.

    Fields:
        values: from a frame of runs to one value per round, a Series indexed by `repeat`.
        window: where the median of these values has to lie.
    """

    values: Callable[[pd.DataFrame], pd.Series]
    window: Window

    @for_readers
    def decide(self, frame: pd.DataFrame) -> Decision:
        """Decide from runs of one machine, this one first.

        Parameters:
            frame: the runs, one row each. After a second attempt (rounds.until_decided) all of
                them decide, and the decision says if the first alone came out otherwise.

        Returns not-here if no machine alone has everything that is compared. Raises UsageError if
        a side is missing, or if a round has several values.
        """
        decision = self._decide_on_one_machine(frame)
        if "attempt" in frame and (frame["attempt"] == 2).any():
            first = self._decide_on_one_machine(frame[frame["attempt"] != 2])
            if first.outcome == OTHERWISE and first.rounds < decision.rounds:
                return replace(decision, first=first)
        return decision

    def _decide_on_one_machine(self, frame: pd.DataFrame) -> Decision:
        if "source" not in frame or _machines(frame).nunique(dropna=False) < 2:
            return decide(self._round_values(frame), self.window)
        is_recorded = frame["source"] == REFERENCE
        labels = _machines(frame)
        for rows in (
            frame[~is_recorded],
            *(frame[labels == label] for label in labels.dropna().unique()),
        ):
            with contextlib.suppress(UsageError):
                return decide(self._round_values(rows), self.window)
        names = ", ".join(frame[is_recorded]["stack"].unique()) if "stack" in frame else "a part"
        reason = (
            f"a part of what is compared, of {names}, was recorded on another machine, and two "
            "machines are never compared"
        )
        return Decision(math.nan, math.nan, math.nan, 0, self.window, NOT_HERE, reason)

    def _round_values(self, frame: pd.DataFrame) -> pd.Series:
        values = self.values(frame).dropna().sort_index()
        if values.empty:
            raise UsageError("no round has all that this finding compares")
        if values.index.nlevels > 1 or values.index.has_duplicates:
            raise UsageError(
                "a round has several values: make one of them, as with .groupby('repeat').median()"
            )
        return values


def _machines(frame: pd.DataFrame) -> pd.Series:
    """Return the label of the machine that recorded each row.

    It is empty for the reference machine, and None for what was measured here.
    """
    instead = frame.get("instead", pd.Series("", index=frame.index)).fillna("").astype(str)
    label = instead.str.split("; ").str[0].where(instead.str.startswith(ON), "")
    return label.where(frame["source"] == REFERENCE, None)


def decide(values: Iterable[float], window: Window) -> Decision:
    """Decide from one value per round.

    Parameters:
        values: in the order of the rounds.
        window: where their median has to lie.
    """
    series = pd.Series([float(value) for value in values])
    middle, coefficient = float(series.median()), correlation(series)
    low, high = map(float, widened(*interval(series), middle, coefficient, len(series)))
    outcome = window.outcome(low, high)
    return Decision(middle, low, high, len(series), window, outcome, "", coefficient)


def correlation(values: pd.Series) -> float:
    """Correlate each round's value with that of the next.

    Returns -1 to 1, and `independent` on average if the rounds are; NaN for fewer than eight, or
    if all are the same.
    """
    if len(values) < LOOKS[0] or values.nunique() < 2:
        return math.nan
    off = (values - values.mean()).to_numpy()
    return float((off[:-1] * off[1:]).sum() / (off * off).sum())


def interval(values: Iterable[float]) -> tuple[float, float]:
    """Compute the interval of a median at one look; two NaN for fewer than eight values.

    As scipy.stats.quantile_test has it, which takes two seconds to import.
    """
    values = sorted(values)
    place = lower_end(len(values))
    if place is None:
        return math.nan, math.nan
    return float(values[place]), float(values[-1 - place])


@cache
def lower_end(rounds: int) -> int | None:
    """Return which of the sorted values, from 0, is the lower end of their median's interval.

    The interval is that of one look. Returns None for too few.
    """
    from scipy.special import bdtr  # the distribution of heads in a number of tosses

    places = [k for k in range(rounds // 2) if bdtr(k, rounds, 0.5) <= _ONE_SIDE]
    return places[-1] if places else None


def independent(rounds: int) -> float:
    """Return what `correlation` gives on average for independent rounds.

    It is less than nothing, since each is compared with a mean that it is part of.
    """
    return -1 / max(rounds, 1)


def widened(low: Any, high: Any, middle: Any, correlation: Any, rounds: int) -> tuple[Any, Any]:
    """Widen the interval of a median by how much rounds resemble the ones before them.

    n rounds of which each is correlated with the next by r say as much of their mean as
    n (1 - r) / (1 + r) independent ones (G. V. Bayley and J. M. Hammersley, The "effective" number
    of independent observations in an autocorrelated time series, 1946), so both ends go away from
    the median by the root of that factor. Nothing is widened where the correlation is unknown, or
    no more than independent rounds show.

    Parameters:
        low, high, middle, correlation: of one interval, or arrays of as many as there are.
        rounds: how many there are of each.
    """
    excess = np.nan_to_num(correlation - independent(rounds), nan=0.0).clip(0, MOST_ALIKE)
    factor = np.sqrt((1 + excess) / (1 - excess))
    return middle - factor * (middle - low), middle + factor * (high - middle)


@for_readers
def window(
    above: float = -math.inf, below: float = math.inf, between: tuple[float, float] | None = None
) -> Window:
    """Make a window.

    Parameters:
        above, below: its ends, one of them or both.
        between: both ends.

    Raises UsageError if there is no end, or if the lower one is not the first.
    """
    low, high = between or (above, below)
    return Window(float(low), float(high))


@for_readers
def ratio(
    column: str | Callable[[pd.DataFrame], pd.Series],
    of: str | float,
    to: str | float,
    by: str = "stack",
    where: Mapping[str, object] | None = None,
    **bounds: Any,
) -> Hypothesis:
    """Ask for the ratio of two runs of the same round.

    Parameters:
        column: of the runs, or a function from rows to a value for each.
        of, to: which rows are divided by which, by their value in the column `by`.
        by: the column that tells the two apart.
        where: further columns, and the value that the rows must have.
        bounds: of the window: above=, below=, or between=(low, high).
    """

    def values(frame: pd.DataFrame) -> pd.Series:
        over, under = (_figures(frame, column, {**(where or {}), by: side}) for side in (of, to))
        if (under == 0).any():
            raise UsageError(
                f"{to} is 0 in a round, and nothing can be divided by it: ask for the level of "
                f"{of} instead of a ratio to {to}"
            )
        return over / under

    return Hypothesis(values, window(**bounds))


@for_readers
def level(
    column: str | Callable[[pd.DataFrame], pd.Series],
    of: str | float | None = None,
    by: str = "stack",
    where: Mapping[str, object] | None = None,
    **bounds: Any,
) -> Hypothesis:
    """Ask for one figure of the runs: parameters as for `ratio`."""
    conditions = {**(where or {}), **({} if of is None else {by: of})}
    return Hypothesis(lambda frame: _figures(frame, column, conditions), window(**bounds))


def _figures(
    frame: pd.DataFrame,
    column: str | Callable[[pd.DataFrame], pd.Series],
    conditions: Mapping[str, object],
) -> pd.Series:
    """Select the rows with these values, and return their figures by `repeat`, one a round."""
    for name, value in conditions.items():
        frame = frame[frame[name] == value]
    description = ", ".join(f"{name} {value}" for name, value in conditions.items()) or "any run"
    if frame.empty:
        raise UsageError(f"there is no run with {description} among those to be compared")
    figures = (column(frame) if callable(column) else frame[column]).set_axis(frame["repeat"])
    if figures.index.has_duplicates:
        raise UsageError(
            f"a round has several runs with {description}: say with where= which is meant"
        )
    return figures.astype(float)
