"""The simulation of how often findings on a clock err: what the ledger says of all of them."""

import numpy as np
import pandas as pd
import pytest

from casebook.laboratory import decisions, error_rates, rounds
from casebook.laboratory.decisions import ERROR, HOLDS, LOOKS, OTHERWISE, UNDECIDED, Window, level

pytestmark = pytest.mark.usefixtures("locks_of_our_own")


@pytest.fixture(autouse=True)
def _anew():
    """Forget what was simulated under other conditions."""
    error_rates.wrong_sides.cache_clear()
    yield
    error_rates.wrong_sides.cache_clear()


def test_it_errs_far_less_often_than_each_finding_promises():
    wrong = error_rates.wrong_sides()
    assert wrong == {HOLDS: pytest.approx(0.0058), OTHERWISE: pytest.approx(0.001)}
    assert 0 < sum(wrong.values()) < ERROR / 5


@pytest.mark.parametrize(("correlation", "most"), [(0.0, 1), (0.2, 1), (0.4, 1), (0.6, 1.5)])
def test_where_rounds_resemble_each_other_it_stays_near_what_is_promised(
    monkeypatch, correlation, most
):
    widened = sum(error_rates.wrong_sides(correlation).values())
    assert widened < most * ERROR
    # The control: the same rounds, and the interval as it would be if they were independent.
    monkeypatch.setattr(decisions, "MOST_ALIKE", 0)
    error_rates.wrong_sides.cache_clear()
    bare = sum(error_rates.wrong_sides(correlation).values())
    assert bare > widened
    if correlation > 0.3:
        assert bare > 1.2 * ERROR


@pytest.mark.parametrize("correlation", [0, 0.6])
def test_all_at_once_come_out_as_one_by_one(correlation):
    values = error_rates.draw(correlation, 400)
    values[::2] -= 0.3  # so that there are second attempts
    together, asked = error_rates.decided(values), level("v", above=0)
    for number, its in enumerate(values[:60]):
        every = pd.DataFrame({"repeat": range(1, len(its) + 1), "v": its, "stack": "a"})
        frame = rounds.until_decided(lambda some, of=every: of[of["repeat"].isin(some)], [asked])
        assert asked.decide(frame).outcome == together[number]
    assert set(together) == {HOLDS, OTHERWISE, UNDECIDED}
    second = [np.median(its[:8]) < 0 and together[n] != OTHERWISE for n, its in enumerate(values)]
    assert any(second)


def test_a_clear_effect_is_decided_at_the_first_look_however_alike_its_rounds_are():
    values = 20 + error_rates.draw(0.6, 500)[:, : LOOKS[0]]
    assert {decisions.decide(its, Window(low=0)).outcome for its in values} == {HOLDS}


def test_the_interval_of_independent_rounds_is_that_of_order_statistics():
    """Widened is only what goes together more than independent rounds seem to."""
    turns = [1.0, 2.0] * 4  # each round unlike the one before
    decision = decisions.decide(turns, Window(low=0))
    assert decision.correlation < decisions.independent(8)
    assert (decision.low, decision.high) == decisions.interval(turns) == (1, 2)
    rising = [float(each) for each in range(1, 9)]
    decision = decisions.decide(rising, Window(low=0))
    beyond = decision.correlation + 1 / 8
    factor = ((1 + beyond) / (1 - beyond)) ** 0.5
    assert decision.correlation == pytest.approx(0.625)
    assert decision.value - decision.low == pytest.approx(factor * 3.5)
    assert decision.high - decision.value == pytest.approx(factor * 3.5)


def test_what_independent_rounds_show_is_a_little_less_than_nothing():
    random = np.random.default_rng(11)
    for some in (8, 16, 32):
        its = [decisions.correlation(pd.Series(random.normal(size=some))) for _ in range(2000)]
        assert np.mean(its) == pytest.approx(decisions.independent(some), abs=0.02)
