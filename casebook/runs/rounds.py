"""Rounds: everything that is compared once, in turns, as often as a question takes.

Every second round goes the other way round, so that a machine that gets slower or faster touches
all alike. We look after 8, 16 and 32 rounds, and go on only while the interval straddles an end of
the window (casebook/runs/decisions.py).
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import pandas as pd

from casebook.runs import again, beside
from casebook.runs.decisions import LOOKS, UNDECIDED, Question, interval


def several(value: object) -> list[Any]:
    """One value or several, as a list."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def numbers(repeats: int | range) -> range:
    """The numbers of some rounds: 3 -> 1, 2, 3."""
    return range(1, repeats + 1) if isinstance(repeats, int) else repeats


def in_turns(ways: Iterable[Any], repeats: int | range) -> Iterator[tuple[int, Any]]:
    """(round, way): in each round every way once, and every second round the other way round."""
    ways = list(ways)
    for repeat in numbers(repeats):
        for way in ways if repeat % 2 else reversed(ways):
            yield repeat, way


def decidable(measure: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """Let a function that measures so many rounds, its `repeats`, also take what is to be decided.

    until: a Question or several: there are then as many rounds as these take. looks: after how
    many rounds we look, the last number being the most there are.
    """

    @wraps(measure)
    def asked(
        *args: Any,
        until: Question | Iterable[Question] = (),
        looks: Iterable[int] = LOOKS,
        **how: Any,
    ) -> pd.DataFrame:
        if questions := several(until):
            return until_decided(
                lambda some: measure(*args, **how | {"repeats": some}), questions, looks
            )
        return measure(*args, **how)

    its, more = (inspect.signature(each, follow_wrapped=False) for each in (measure, asked))
    shown = [*its.parameters.values(), more.parameters["until"], more.parameters["looks"]]
    in_order = sorted(shown, key=lambda parameter: parameter.kind)
    asked.__signature__ = inspect.Signature(in_order)  # type: ignore[attr-defined]
    return asked


def until_decided(
    measure: Callable[[range], pd.DataFrame],
    questions: Iterable[Question],
    looks: Iterable[int] = LOOKS,
) -> pd.DataFrame:
    """Take rounds until all questions are decided, or the looks are used up.

    measure: from the numbers of some rounds (range(1, 9)) to their runs, one row a run, with the
    column `repeat`. Nothing else is measured beside them. Where the build takes a chapter again
    because a finding came out otherwise, and this is where, as many rounds come on top.
    """
    questions, frames, done = list(questions), [], 0
    interval([])  # loads its library, while others may still measure
    with beside.nothing():
        for look in looks:
            frames.append(measure(range(done + 1, look + 1)))
            done = look
            so_far = pd.concat(frames, ignore_index=True)
            if frames[-1].empty or all(
                each.decide(so_far).outcome != UNDECIDED for each in questions
            ):
                break
        if again.made_otherwise(pd.concat(frames)):
            frames.append(measure(range(done + 1, 2 * done + 1)))
    return pd.concat(frames, ignore_index=True)
