"""Rounds: everything that is compared once, in turns, as often as a question takes.

Every second round goes the other way round, so that a machine that gets slower or faster touches
all alike. We look after 8, 16 and 32 rounds, and go on only while the interval straddles an end of
the window (casebook/laboratory/decisions.py). Where a question then comes out *otherwise*, as many
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
from casebook.laboratory import beside
from casebook.laboratory.decisions import LOOKS, OTHERWISE, UNDECIDED, Question, interval
from casebook.mistakes import for_readers

Result = TypeVar("Result")


def as_list(value: object) -> list[Any]:
    """Return several values as a list, and one value as a list of one. A string is one value."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def numbers(repeats: int | range) -> range:
    """Return the numbers of the rounds: 3 -> 1, 2, 3. A range is returned as it is."""
    return range(1, repeats + 1) if isinstance(repeats, int) else repeats


def in_turns(ways: Iterable[Any], repeats: int | range) -> Iterator[tuple[int, Any]]:
    """Yield (round, way): every way once a round, in reverse order in every second round.

    Parameters:
        ways: what is compared.
        repeats: how many rounds, or their numbers.
    """
    ways = list(ways)
    for repeat in numbers(repeats):
        for way in ways if repeat % 2 else reversed(ways):
            yield repeat, way


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
    several = numbers(repeats)
    if min(at_once, len(several)) < 2:
        return [measure(repeat) for repeat in several]
    # The threads measure with the lock of this one: they wait neither for it nor each by itself.
    with (
        beside.shared(),
        spans.span(spans.MEASUREMENT, label),
        ThreadPoolExecutor(at_once) as pool,
    ):
        futures = [pool.submit(copy_context().run, measure, repeat) for repeat in several]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()


def takes_until(measure: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """Decorator: add `until` and `looks` to a function that measures `repeats` rounds.

    The parameters that are added:
        until: a Question or several: as many rounds are taken as they need to be decided. None:
            the function decides how many, by `repeats`.
        looks: after how many rounds we look, in ascending order. The last is the most there are;
            a second attempt doubles the rounds.

    The function raises UsageError where both `until` and `repeats` are given: only one of the two
    can say how many.
    """

    @wraps(measure)
    def asked(
        *args: Any,
        until: Question | Iterable[Question] | None = None,
        looks: Iterable[int] = LOOKS,
        **how: Any,
    ) -> pd.DataFrame:
        if questions := as_list(() if until is None else until):
            if its.bind_partial(*args, **how).arguments.get("repeats") is not None:
                raise UsageError(
                    "until= takes as many rounds as its questions need, and repeats= says how "
                    "many: give one of the two (looks=(8,) is what takes eight rounds and no more)"
                )
            return until_decided(
                lambda some: measure(*args, **how | {"repeats": some}), questions, looks
            )
        return measure(*args, **how)

    its, more = (inspect.signature(each, follow_wrapped=False) for each in (measure, asked))
    shown = [*its.parameters.values(), more.parameters["until"], more.parameters["looks"]]
    in_order = sorted(shown, key=lambda parameter: parameter.kind)
    asked.__signature__ = inspect.Signature(in_order)  # type: ignore[attr-defined]
    return for_readers(asked)


def until_decided(
    measure: Callable[[range], pd.DataFrame],
    questions: Iterable[Question],
    looks: Iterable[int] = LOOKS,
) -> pd.DataFrame:
    """Take rounds until all questions are decided, or the looks are used up.

    If one of them then comes out otherwise, as many rounds again are taken. That happens once:
    there are two attempts at most.

    Parameters:
        measure: from the numbers of some rounds (range(1, 9)) to their runs, one row a run, with
            the column `repeat`; an empty frame where there are no such rounds to be had, as of
            what was recorded elsewhere.
        questions: what is to be decided.
        looks: after how many rounds we look, in ascending order.

    Returns the runs of all rounds. After a second attempt they have the column `attempt`, 1 or 2.
    Nothing else is measured meanwhile.
    """
    questions, so_far, done = list(questions), pd.DataFrame(), 0
    outcomes: set[str] = set()

    def take(numbers: range) -> pd.DataFrame:
        try:
            return measure(numbers)
        except NotInFile:
            if so_far.empty:
                raise
            return pd.DataFrame()  # the machine of that file took no more rounds

    interval([])  # loads its library, while others may still measure
    with beside.exclusive():
        for look in looks:
            more = take(range(done + 1, look + 1))
            so_far, done = pd.concat([so_far, more], ignore_index=True), look
            if more.empty:
                break
            decisions = [each.decide(so_far) for each in questions]
            outcomes = {each.outcome for each in decisions}
            if UNDECIDED not in outcomes and not any(each.may_come for each in decisions):
                break
        if OTHERWISE in outcomes:
            more = take(range(done + 1, 2 * done + 1))
            if not more.empty:
                attempts = [so_far.assign(attempt=1), more.assign(attempt=2)]
                so_far = pd.concat(attempts, ignore_index=True)
    return so_far
