"""Rounds: everything that is compared once, in turns, as often as a hypothesis takes.

Every second round goes the other way round, so that a machine that gets slower or faster touches
all alike. We look after 8, 16 and 32 rounds, and go on only while the interval straddles an end of
the window (casebook/laboratory/decisions.py). Where it then comes out *otherwise*, as many
rounds again are taken, once, and all of them decide.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import wraps
from typing import Any, TypeVar

import pandas as pd

from casebook import spans
from casebook.errors import NotInFile, UsageError
from casebook.laboratory import reservation
from casebook.laboratory.decisions import LOOKS, OTHERWISE, UNDECIDED, Hypothesis, interval
from casebook.mistakes import check_range, for_readers

Result = TypeVar("Result")

#: The most rounds that can be asked for.
MOST = 1000


def as_list(value: object) -> list[Any]:
    """Return several values as a list, and one value as a list of one. A string is one value."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def numbers(repeats: int | range) -> range:
    """Return the numbers of the rounds: 3 -> 1, 2, 3. A range is returned as it is.

    Raises UsageError for none, or for more than MOST.
    """
    count = len(repeats) if isinstance(repeats, range) else repeats
    check_range("repeats", count, 1, MOST)
    return repeats if isinstance(repeats, range) else range(1, count + 1)


def in_turns(variants: Iterable[Any], repeats: int | range) -> Iterator[tuple[int, Any]]:
    """Yield (round, variant): each variant once a round, in reverse order in every second round.

    Parameters:
        variants: what is compared.
        repeats: how many rounds, or their numbers.
    """
    variants = list(variants)
    for repeat in numbers(repeats):
        for variant in variants if repeat % 2 else reversed(variants):
            yield repeat, variant


def side_by_side(
    measure: Callable[[int], Result], repeats: int | range, at_once: int, label: str = ""
) -> list[Result]:
    """Take several rounds at the same time, which is for what waits and hardly computes.

    Parameters:
        measure: from the number of a round to its result.
        repeats: how many rounds, or their numbers.
        at_once: how many of them run at a time, each in a thread of its own.
        label: what is measured, for the account of a build's time.

    Returns the results in the order of the rounds. Raises what the first round raised that failed.
    """
    chosen = numbers(repeats)
    if min(at_once, len(chosen)) < 2:
        return [measure(repeat) for repeat in chosen]
    # The threads measure with the lock of this one: they wait neither for it nor each by itself.
    with (
        reservation.shared(),
        spans.span(spans.MEASUREMENT, label),
        ThreadPoolExecutor(at_once) as pool,
    ):
        futures = [pool.submit(copy_context().run, measure, repeat) for repeat in chosen]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()


def takes_until(measure: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """Add `until` and `looks` to a function that measures `repeats` rounds (a decorator).

    The parameters that are added:
        until: a Hypothesis or several: as many rounds are taken as they need to be decided. None:
            the function decides how many, by `repeats`.
        looks: after how many rounds we look, in ascending order. The last is the most there are;
            a second attempt doubles the rounds.

    The function raises UsageError if both `until` and `repeats` are given: only one of the two
    can say how many.
    """

    @wraps(measure)
    def measure_until(
        *args: Any,
        until: Hypothesis | Iterable[Hypothesis] | None = None,
        looks: Iterable[int] = LOOKS,
        **options: Any,
    ) -> pd.DataFrame:
        repeats = signature.bind_partial(*args, **options).arguments.get("repeats")
        if repeats is not None:
            numbers(repeats)  # raises for too few and too many
        looks = list(looks)
        for look in looks:
            check_range("looks", look, 1, MOST)
        hypotheses = as_list(() if until is None else until)
        for hypothesis in hypotheses:
            if not isinstance(hypothesis, Hypothesis):
                raise UsageError(f"until is {hypothesis!r}; give a Hypothesis or several of them")
        if hypotheses:
            if repeats is not None:
                raise UsageError(
                    "until= takes as many rounds as its hypotheses need, and repeats= says how "
                    "many: give one of the two (looks=(8,) is what takes eight rounds and no more)"
                )
            return until_decided(
                lambda chosen: measure(*args, **options | {"repeats": chosen}), hypotheses, looks
            )
        return measure(*args, **options)

    signature, extended = (
        inspect.signature(function, follow_wrapped=False) for function in (measure, measure_until)
    )
    parameters = [
        *signature.parameters.values(),
        extended.parameters["until"],
        extended.parameters["looks"],
    ]
    in_order = sorted(parameters, key=lambda parameter: parameter.kind)
    # wraps() gave it the types of `measure` alone: those that are checked.
    measure_until.__annotations__ = measure.__annotations__ | {"looks": Iterable[int]}
    measure_until.__signature__ = inspect.Signature(in_order)  # type: ignore[attr-defined]
    return for_readers(measure_until)


def until_decided(
    measure: Callable[[range], pd.DataFrame],
    hypotheses: Iterable[Hypothesis],
    looks: Iterable[int] = LOOKS,
) -> pd.DataFrame:
    """Take rounds until all hypotheses are decided, or the looks are used up.

    If one of them then comes out otherwise, as many rounds again are taken. That happens once:
    there are two attempts at most.

    Parameters:
        measure: from the numbers of some rounds (range(1, 9)) to their runs, one row a run, with
            the column `repeat`; an empty frame where there are no such rounds to be had, as of
            what was recorded elsewhere.
        hypotheses: what is to be decided.
        looks: after how many rounds we look, in ascending order.

    Returns the runs of all rounds. After a second attempt they have the column `attempt`, 1 or 2.
    Nothing else is measured meanwhile.
    """
    hypotheses, frame, count = list(hypotheses), pd.DataFrame(), 0
    outcomes: set[str] = set()

    def measure_rounds(numbers: range) -> pd.DataFrame:
        try:
            return measure(numbers)
        except NotInFile:
            if frame.empty:
                raise
            return pd.DataFrame()  # the machine of that file took no more rounds

    interval([])  # loads its library, while others may still measure
    with reservation.exclusive():
        for last in looks:
            runs = measure_rounds(range(count + 1, last + 1))
            frame, count = pd.concat([frame, runs], ignore_index=True), last
            if runs.empty:
                break
            decisions = [hypothesis.decide(frame) for hypothesis in hypotheses]
            outcomes = {decision.outcome for decision in decisions}
            is_open = any(decision.more_rounds_may_decide for decision in decisions)
            if UNDECIDED not in outcomes and not is_open:
                break
        if OTHERWISE in outcomes:
            runs = measure_rounds(range(count + 1, 2 * count + 1))
            if not runs.empty:
                attempts = [frame.assign(attempt=1), runs.assign(attempt=2)]
                frame = pd.concat(attempts, ignore_index=True)
    return frame
