"""How often findings on a clock come out on the wrong side: a simulation of how they are decided.

    wrong_sides()                  # {"holds": 0.006, "otherwise": 0.001}
    wrong_sides(correlation=0.4)   # where each round resembles the one before it

The truth of every simulated finding lies on the very end of its window, where one errs most: what
says more than "undecided" there is wrong. `decisions.ERROR` is a promise, and this is what comes of
it. Looks and second attempt are those of laboratory/rounds.py; everything is computed for all
findings at once, and a test compares it with the way of one.
"""

from functools import cache

import numpy as np

from casebook.laboratory import decisions
from casebook.laboratory.decisions import HOLDS, LOOKS, OTHERWISE, UNDECIDED

#: The seed of the simulation, so that it says the same in each build.
SEED = 20261127
#: How many findings are simulated: the standard error of a share of 1 % is then 0.07 %.
FINDINGS = 20_000


@cache
def wrong_sides(correlation: float = 0.0, findings: int = FINDINGS) -> dict[str, float]:
    """Simulate findings, and return the share of them that comes out on either wrong side.

    Parameters:
        correlation: of each round's value with that of the next; 0: rounds are independent.
        findings: how many are simulated.
    """
    outcomes = decided(draw(correlation, findings))
    return {outcome: float((outcomes == outcome).mean()) for outcome in (HOLDS, OTHERWISE)}


def draw(correlation: float, findings: int) -> np.ndarray:
    """Draw the rounds of findings, a row each, as many as two attempts may take.

    Each value has the true median 0, and is like the one before to some degree.
    """
    values = np.random.default_rng(SEED).normal(size=(findings, 2 * LOOKS[-1]))
    for number in range(1, values.shape[1]):
        fresh = np.sqrt(1 - correlation**2) * values[:, number]
        values[:, number] = correlation * values[:, number - 1] + fresh
    return values


def decided(values: np.ndarray) -> np.ndarray:
    """Decide findings whose values have to be above 0, as rounds.until_decided does.

    values: a row for each, of all rounds that there might be.
    """
    outcomes = np.full(len(values), UNDECIDED, dtype=object)
    for rounds in LOOKS:
        is_open = outcomes == UNDECIDED
        outcomes[is_open] = _look_outcomes(values[is_open, :rounds])
        second = is_open & (outcomes == OTHERWISE)
        outcomes[second] = _look_outcomes(values[second, : 2 * rounds])
        outcomes[second & (outcomes == UNDECIDED)] = ""  # no further look
    outcomes[outcomes == ""] = UNDECIDED
    return outcomes


def _look_outcomes(values: np.ndarray) -> np.ndarray:
    rounds = values.shape[1]
    place, in_order = decisions.lower_end(rounds), np.sort(values, axis=1)
    assert place is not None  # each of LOOKS is enough for an interval
    offsets = values - values.mean(axis=1, keepdims=True)
    correlation = (offsets[:, :-1] * offsets[:, 1:]).sum(axis=1) / (offsets * offsets).sum(axis=1)
    low, high = decisions.widened(
        in_order[:, place], in_order[:, -1 - place], np.median(values, axis=1), correlation, rounds
    )
    return np.where(low > 0, HOLDS, np.where(high <= 0, OTHERWISE, UNDECIDED)).astype(object)
