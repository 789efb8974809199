"""Decisions: what an interval says, how often it errs, and that rounds are taken in turns."""

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy.stats import quantile_test

from casebook.errors import UsageError
from casebook.laboratory import decisions, progress, rounds
from casebook.laboratory.decisions import (
    HOLDS,
    NOT_HERE,
    OTHERWISE,
    UNDECIDED,
    Window,
    level,
    ratio,
)

pytestmark = pytest.mark.usefixtures("locks_of_our_own")

TRIES = 200


def machine(random, rounds: int) -> np.ndarray:
    """Return how slow a machine is over 2 x rounds runs.

    It drifts, and has spells of two to six runs in which everything takes up to three times as
    long.
    """
    runs = 2 * rounds
    slow = np.exp(np.linspace(0, random.uniform(-0.5, 0.5), runs)) * random.lognormal(0, 0.05, runs)
    for _ in range(random.integers(0, 4)):
        start = random.integers(0, runs)
        slow[start : start + random.integers(2, 7)] *= random.uniform(1.5, 3)
    return slow


def in_turns(random, true_ratio: float):
    """take(rounds) of two programs, of which one takes true_ratio times the CPU of the other."""
    slow = machine(random, 2 * decisions.LOOKS[-1])  # a second attempt included

    def take(rounds: range) -> pd.DataFrame:
        rows = []
        for repeat in rounds:
            pair = [("a", true_ratio), ("b", 1.0)]
            for place, (stack, cost) in enumerate(pair if repeat % 2 else reversed(pair)):
                noise = slow[2 * (repeat - 1) + place] * random.lognormal(0, 0.03)
                rows.append({"stack": stack, "repeat": repeat, "cpu_s": cost * noise})
        return pd.DataFrame(rows)

    return take


def outcomes(true_ratio: float, **window) -> Counter:
    random = np.random.default_rng(20261121)
    hypothesis = ratio("cpu_s", "a", "b", **window)
    found = Counter()
    for _ in range(TRIES):
        frame = rounds.until_decided(in_turns(random, true_ratio), [hypothesis])
        found[hypothesis.decide(frame).outcome] += 1
    return found


@pytest.mark.parametrize(
    ("true_ratio", "window", "wrong"),
    [
        (1.0, {"above": 1.0}, HOLDS),  # on the very end of the window, where it errs most
        (1.0, {"below": 1.0}, HOLDS),
        (1.1, {"above": 1.1}, OTHERWISE),
        (1.0, {"above": 1.1}, HOLDS),
        (1.3, {"between": (0.9, 1.1)}, HOLDS),
        (1.0, {"between": (0.9, 1.1)}, OTHERWISE),
    ],
)
def test_errs_no_more_often_than_it_says(true_ratio, window, wrong):
    # Of 200 tries at a rate of 5 %, 18 or fewer come in 99 of 100 cases.
    assert outcomes(true_ratio, **window)[wrong] <= 18


@pytest.mark.parametrize(
    ("true_ratio", "window", "right", "share"),
    [
        (1.5, {"above": 1.1}, HOLDS, 0.9),
        (1.0, {"between": (0.85, 1.18)}, HOLDS, 0.9),
        (1 / 1.5, {"above": 1.1}, OTHERWISE, 0.95),  # a reversal
    ],
)
def test_decides_what_is_clear(true_ratio, window, right, share):
    assert outcomes(true_ratio, **window)[right] >= share * TRIES


def alike(random, rounds: int, correlation: float) -> pd.DataFrame:
    """The runs of rounds whose true ratio is 1, each like the one before to some degree."""
    noise, state = [], random.normal()
    for _ in range(rounds):
        noise.append(state)
        state = correlation * state + math.sqrt(1 - correlation**2) * random.normal()
    repeats = range(1, rounds + 1)
    a = pd.DataFrame({"stack": "a", "repeat": repeats, "cpu_s": np.exp(0.1 * np.array(noise))})
    return pd.concat([a, a.assign(stack="b", cpu_s=1.0)], ignore_index=True)


def of(frame: pd.DataFrame):
    """take(rounds) of a frame."""
    return lambda rounds: frame[frame["repeat"].isin(rounds)]


def wrong(correlation: float) -> dict[str, float]:
    """The share of findings that say either, where the truth is on the very end of the window."""
    random, hypothesis = np.random.default_rng(20261123), ratio("cpu_s", "a", "b", above=1.0)
    found, attempts = Counter(), Counter()
    for _ in range(TRIES):
        frame = alike(random, 2 * decisions.LOOKS[-1], correlation)
        decision = hypothesis.decide(rounds.until_decided(of(frame), [hypothesis]))
        found[decision.outcome] += 1
        attempts[decision.first is not None] += 1
    assert attempts[True]  # the second attempt is among what is tried here
    return {outcome: found[outcome] / TRIES for outcome in (HOLDS, OTHERWISE)}


@pytest.mark.parametrize("correlation", [0, 0.3])
def test_with_its_second_attempt_errs_no_more_often_than_it_says(correlation):
    assert max(wrong(correlation).values()) <= 18 / 200


def slow_at_first(rounds: range) -> pd.DataFrame:
    """A machine that was slow in the first eight rounds, and not in any other."""
    walls = [0.9 if each < 9 else 2.0 for each in rounds]
    return pd.DataFrame({"stack": "a", "repeat": rounds, "wall_s": walls})


def test_what_comes_out_otherwise_is_tried_once_more_and_all_rounds_decide():
    asked, other = level("wall_s", above=1.0), level("wall_s", above=-9)  # far from an end
    frame = rounds.until_decided(slow_at_first, [asked, other])
    assert frame["attempt"].tolist() == [1] * 8 + [2] * 8
    found = asked.decide(frame)
    assert (found.outcome, found.rounds) == (UNDECIDED, 16)
    assert (found.first.outcome, found.first.rounds) == (OTHERWISE, 8)
    # What holds at the first attempt has not been tried a second time, though it has more rounds.
    assert other.decide(frame).outcome == HOLDS and other.decide(frame).first is None
    # Two attempts are all there are, and what is clear comes out otherwise in both.
    never = level("wall_s", above=9)
    frame = rounds.until_decided(slow_at_first, [never])
    assert len(frame) == 16 and never.decide(frame).outcome == OTHERWISE
    assert never.decide(frame).first.outcome == OTHERWISE
    # Where no more rounds are to be had, as of a recorded machine, there was one attempt.
    recorded = rounds.until_decided(of(slow_at_first(range(1, 9))), [never])
    assert len(recorded) == 8 and never.decide(recorded).first is None


def test_rounds_that_resemble_each_other_much_err_more_often_and_say_so():
    """The control: why a decision says how much its rounds are correlated.

    Widening the interval cannot repair that.
    """
    assert wrong(0.9)[HOLDS] > 0.1
    random = np.random.default_rng(5)
    for truth in (0, 0.3, 0.8):
        rows = [alike(random, 32, truth).query("stack == 'a'")["cpu_s"] for _ in range(50)]
        found = np.mean([decisions.decide(each, Window(low=1)).correlation for each in rows])
        assert abs(found - truth) < 0.2  # a little too small, as estimates from few rounds are
    assert math.isnan(decisions.decide([1.0] * 8, Window(low=1)).correlation)


def test_one_after_the_other_would_err():
    """The control: the same runs, all of one program first, as single visits were compared."""
    random, wrong = np.random.default_rng(7), 0
    for _ in range(TRIES):
        slow = machine(random, 8)
        wrong += (slow[:8] / slow[8:]).mean() > 1.1
    assert wrong > 0.1 * TRIES


def test_the_interval_is_that_of_order_statistics():
    assert decisions.interval(range(1, 9)) == (1, 8)
    assert decisions.interval(range(1, 17)) == (3, 14)
    assert decisions.interval(range(1, 33)) == (9, 24)
    assert all(map(math.isnan, decisions.interval(range(7))))


def test_the_interval_is_that_of_scipys_test_of_a_median():
    at_one_look = 1 - decisions.ERROR / (len(decisions.LOOKS) + 1)
    for count in range(1, 65):
        values = np.random.default_rng(count).lognormal(size=count).round(1)  # with ties
        its = quantile_test(values, q=0, p=0.5).confidence_interval(at_one_look)
        assert decisions.interval(values) == pytest.approx((its.low, its.high), nan_ok=True)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (1.2, 1.4, HOLDS),
        (1.1, 1.4, UNDECIDED),  # the end does not belong to the window
        (1.0, 1.2, UNDECIDED),
        (0.9, 1.1, OTHERWISE),
        (0.5, 0.6, OTHERWISE),
        (*decisions.interval([2.0] * 7), UNDECIDED),  # too few rounds to have one
    ],
)
def test_an_interval_holds_only_wholly_inside(low, high, outcome):
    assert Window(low=1.1).outcome(low, high) == outcome


@pytest.mark.parametrize("each", [Window(low=1.1), Window(high=-0.5), Window(1e-07, 2e20)])
def test_a_window_is_read_as_it_is_written(each):
    assert Window.read(str(each)) == each


@pytest.mark.parametrize("said", ["", "below", "below 1.2 or so", "between 2 and 1", "above inf"])
def test_what_is_no_window_is_refused(said):
    with pytest.raises(UsageError, match="is no window"):
        Window.read(said)


def test_a_machine_is_not_divided_by_another():
    live = pd.DataFrame({"stack": "a", "repeat": range(1, 9), "cpu_s": 1.0, "source": "live"})
    recorded = live.assign(stack="b", source="reference", cpu_s=9.0)
    hypothesis = ratio("cpu_s", "a", "b", below=0.5)
    mixed = hypothesis.decide(pd.concat([live, recorded]))
    assert (mixed.outcome, mixed.rounds) == (NOT_HERE, 0) and "another machine" in mixed.because
    both = pd.concat([live, live.assign(stack="b", cpu_s=9.0)])
    assert hypothesis.decide(both).outcome == HOLDS
    # What was recorded of a third thing takes nothing from what was measured of these two.
    third = pd.concat([both, recorded.assign(stack="c")])
    assert hypothesis.decide(third).outcome == HOLDS
    # Where another machine has all as well, this one decides.
    twice = pd.concat([both.assign(source="reference", cpu_s=1.0), both])
    assert hypothesis.decide(twice).outcome == HOLDS


def test_a_round_with_two_candidates_is_refused():
    frame = pd.DataFrame({"stack": ["a", "a"], "repeat": [1, 1], "n": [3, 10], "wall_s": 1.0})
    with pytest.raises(UsageError, match="say with where="):
        level("wall_s", "a", below=2).decide(frame)
    assert level("wall_s", "a", where={"n": 3}, below=2).decide(frame).value == 1.0


@pytest.mark.parametrize("by", [["repeat", "n"], "repeat"])
def test_several_values_of_a_round_are_no_rounds(by):
    """Four rounds with two sizes each are not eight rounds."""
    sizes = pd.DataFrame({"repeat": [1, 2, 3, 4] * 2, "n": [3] * 4 + [10] * 4, "wall_s": 1.0})
    asked = decisions.Hypothesis(lambda runs: runs.set_index(by)["wall_s"], Window(high=2))
    with pytest.raises(UsageError, match="a round has several values"):
        asked.decide(sizes)
    one_each = decisions.Hypothesis(lambda runs: runs.groupby("repeat")["wall_s"].sum(), Window(3))
    assert one_each.decide(sizes).rounds == 4


def test_rounds_stop_when_all_is_decided_and_go_on_while_it_is_not():
    def take(rounds):
        return pd.DataFrame(
            {"stack": "a", "repeat": rounds, "wall_s": [1.0 + r % 3 for r in rounds]}
        )

    clear, open_ = level("wall_s", below=9), level("wall_s", between=(1.5, 2.5))
    assert len(rounds.until_decided(take, [clear])) == 8
    assert len(rounds.until_decided(take, [clear, open_])) == 32


def test_nothing_is_divided_by_a_count_of_zero():
    live = pd.DataFrame({"stack": "a", "repeat": range(1, 9), "loads": 4, "source": "live"})
    both = pd.concat([live, live.assign(stack="b", loads=0)])
    with pytest.raises(UsageError, match=r"b is 0 in a round.*the level of a"):
        ratio("loads", "a", "b", below=2).decide(both)
    assert ratio("loads", "b", "a", below=2).decide(both).outcome == HOLDS
    assert level("loads", "a", above=3).decide(both).outcome == HOLDS


def test_only_one_says_how_many_rounds_are_taken():
    @rounds.takes_until
    def take(first="a", repeats=1):
        numbers = rounds.numbers(repeats)
        return pd.DataFrame({"stack": first, "repeat": numbers, "wall_s": 1.0})

    clear = level("wall_s", below=9)
    assert len(take(until=clear)) == len(take(until=[clear], repeats=None)) == 8
    assert len(take(until=None)) == len(take(until=())) == 1
    assert len(take(until=None, repeats=3)) == 3
    for how in (dict(repeats=3), dict(repeats=range(1, 4))):
        with pytest.raises(UsageError, match="give one of the two"):
            take(until=clear, **how)
    with pytest.raises(UsageError, match="give one of the two"):
        take("a", 3, until=clear)


def test_every_second_round_goes_the_other_way():
    assert list(rounds.in_turns("ab", 3)) == [
        (1, "a"), (1, "b"), (2, "b"), (2, "a"), (3, "a"), (3, "b"),
    ]  # fmt: skip


def test_two_threads_can_tell_their_progress_to_a_build(tmp_path, monkeypatch):
    file = tmp_path / "progress"
    monkeypatch.setenv(progress.VARIABLE, str(file))
    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(progress.tell_build, f"line {n}") for n in range(400)]:
            each.result()
    assert file.read_text().startswith("line ")
    assert list(tmp_path.iterdir()) == [file]
