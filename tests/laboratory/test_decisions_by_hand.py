"""Decisions on rows that are written down, each with its number worked out by hand."""

import json
import math
import threading
import time
from contextvars import ContextVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casebook import spans
from casebook.errors import NotInFile, UsageError
from casebook.laboratory import decisions, rounds
from casebook.laboratory.decisions import (
    HOLDS,
    NOT_HERE,
    OTHERWISE,
    UNDECIDED,
    Decision,
    Hypothesis,
    Window,
    decide,
    level,
    ratio,
    window,
)

pytestmark = pytest.mark.usefixtures("locks_of_our_own")


def rows(values, stack="a", **more) -> pd.DataFrame:
    """One run a round, from round 1 on."""
    numbers = range(1, len(values) + 1)
    return pd.DataFrame({"stack": stack, "repeat": numbers, "wall_s": values} | more)


# -------------------------------------------------------------------------------------- windows


@pytest.mark.parametrize(
    ("own", "written"),
    [
        (Window(low=1.1), "above 1.1"),
        (Window(high=0.85), "below 0.85"),
        (Window(0.9, 1.1), "between 0.9 and 1.1"),
        (Window(-2, 0), "between -2 and 0"),
        (Window(high=1e-07), "below 1e-07"),
        (Window(low=2e20), "above 2e+20"),
    ],
)
def test_a_window_in_words(own, written):
    assert str(own) == written and Window.read(written) == own


@pytest.mark.parametrize("ends", [(), (1, 1), (2, 1), (math.inf, math.inf), (math.nan, 1)])
def test_a_window_without_an_end_or_with_its_ends_in_the_wrong_order_is_none(ends):
    with pytest.raises(UsageError, match="a window needs an end, the lower one first"):
        Window(*ends)


@pytest.mark.parametrize(
    "text", ["above 1 2", "between 1 and 1", "between 1", "1", "about 1", "above 1.0", "below -"]
)
def test_what_str_never_writes_is_no_window(text):
    with pytest.raises(UsageError, match="is no window: above 1, below 2, or between 1 and 2"):
        Window.read(text)


@pytest.mark.parametrize(
    ("own", "low", "high", "outcome"),
    [
        (Window(high=0.8), 0.6, 0.7, HOLDS),
        (Window(high=0.8), 0.6, 0.8, UNDECIDED),
        (Window(high=0.8), 0.8, 0.9, OTHERWISE),
        (Window(high=0.8), 0.9, 1.0, OTHERWISE),
        (Window(low=0.8), 0.8, 0.9, UNDECIDED),
        (Window(low=0.8), 0.7, 0.8, OTHERWISE),
        (Window(0.9, 1.1), 0.95, 1.05, HOLDS),
        (Window(0.9, 1.1), 0.8, 1.2, UNDECIDED),  # it holds the window in itself
        (Window(0.9, 1.1), 0.8, 1.0, UNDECIDED),
        (Window(0.9, 1.1), 1.0, 1.2, UNDECIDED),
        (Window(0.9, 1.1), 0.5, 0.9, OTHERWISE),
        (Window(0.9, 1.1), 1.1, 1.5, OTHERWISE),
        (Window(0.9, 1.1), math.nan, math.nan, UNDECIDED),
    ],
)
def test_an_interval_and_a_window(own, low, high, outcome):
    assert own.outcome(low, high) == outcome


@pytest.mark.parametrize(
    ("ends", "own"),
    [
        ({"above": 1}, Window(low=1.0)),
        ({"below": 2}, Window(high=2.0)),
        ({"above": 1, "below": 2}, Window(1.0, 2.0)),
        ({"between": (1, 2)}, Window(1.0, 2.0)),
    ],
)
def test_ends_make_a_window(ends, own):
    assert window(**ends) == own
    assert level("wall_s", **ends).window == own == ratio("wall_s", "a", "b", **ends).window


@pytest.mark.parametrize(
    ("own", "low", "high", "interval_tells_more"),
    [
        (Window(low=5), 10.1, 12, True),
        (Window(low=5), 10, 12, False),  # exactly twice
        (Window(low=0), 0.1, 12, True),
        (Window(low=-5), 1, 12, False),
        (Window(high=0.8), 0.1, 0.39, True),
        (Window(high=0.8), 0.1, 0.4, False),  # exactly half
        (Window(0, 9), 4, 4.1, False),
        (Window(low=5), math.nan, math.nan, False),
    ],
)
def test_far_inside_its_window_an_interval_says_more(own, low, high, interval_tells_more):
    decision = Decision((low + high) / 2, low, high, 8, own, HOLDS)
    assert decision.interval_tells_more is interval_tells_more


def test_a_decision_in_words():
    decision = Decision(0.12345, 0.11, 0.13, 8, Window(high=0.4), HOLDS)
    assert str(decision) == "0.123 (0.11 to 0.13, 8 rounds): holds"
    assert f"{decision:.2f}" == "0.12" and float(decision) == 0.12345
    few = Decision(2.0, math.nan, math.nan, 3, Window(high=0.4), UNDECIDED)
    assert str(few) == "2 (no interval, 3 rounds): undecided"
    nothing = Decision(math.nan, math.nan, math.nan, 0, Window(high=0.4), NOT_HERE)
    assert f"{nothing:.2f}" == "…"
    outcomes = [decisions.outcome_in_words(outcome) for outcome in (NOT_HERE, HOLDS)]
    assert outcomes == ["not here", "holds"]


# ------------------------------------------------------------------------- intervals, correlation


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # The places of the two values among them, from 1, that the binomial distribution gives for an
    # error of 5 % shared out to four looks: 0.625 % beyond each end.
    [(8, 1, 8), (9, 1, 9), (10, 1, 10), (11, 2, 10), (12, 2, 11), (14, 2, 13), (15, 3, 13),
     (16, 3, 14), (32, 9, 24), (64, 22, 43)],
)  # fmt: skip
def test_the_interval_of_a_median(count, low, high):
    assert decisions.interval(range(1, count + 1)) == (low, high)
    at_random = np.random.default_rng(count).permutation(range(1, count + 1))
    assert decisions.interval(at_random) == (low, high)


@pytest.mark.parametrize("count", range(8))
def test_fewer_than_eight_values_have_none(count):
    assert all(map(math.isnan, decisions.interval(range(count))))


@pytest.mark.parametrize(
    ("values", "correlation"),
    [
        # Off the mean by 1 or -1: seven products of neighbours, over eight squares.
        ([1, -1] * 4, -7 / 8),
        ([1, 1, 1, 1, -1, -1, -1, -1], 5 / 8),
        # Off by -3.5 ... 3.5: products 8.75+3.75+0.75-0.25+0.75+3.75+8.75 over squares 42.
        ([1, 2, 3, 4, 5, 6, 7, 8], 26.25 / 42),
        # The mean counts, and not where they lie.
        ([101, 99] * 4, -7 / 8),
    ],
)
def test_the_correlation_of_a_round_with_the_next(values, correlation):
    assert decisions.correlation(pd.Series(values)) == pytest.approx(correlation)
    assert decide(values, Window(low=1)).correlation == pytest.approx(correlation)


def test_few_rounds_or_all_alike_have_no_correlation():
    assert math.isnan(decisions.correlation(pd.Series([1, 2, 3, 4, 5, 6, 7])))
    assert math.isnan(decisions.correlation(pd.Series([1] * 8)))


def test_a_decision_has_the_median_the_interval_and_the_rounds():
    found = decide([1, 8, 2, 7, 3, 6, 4, 5], Window(high=9))  # no round resembles the last
    assert (found.value, found.low, found.high, found.rounds) == (4.5, 1, 8, 8)
    assert (found.outcome, found.because, found.first, found.more_rounds_may_decide) == (
        HOLDS,
        "",
        None,
        False,
    )
    assert found.window == Window(high=9)
    assert type(found.value) is float


# ------------------------------------------------------------------------------- ratios and levels


def test_a_ratio_is_of_the_same_round():
    """12/4, 10/5, 18/6: not the ratio of sums, nor of medians."""
    both = pd.concat([rows([12.0, 10.0, 18.0], "a"), rows([4.0, 5.0, 6.0], "b")])
    asked = ratio("wall_s", "a", "b", above=1)
    assert asked.values(both).to_dict() == {1: 3.0, 2: 2.0, 3: 3.0}
    assert asked.decide(both).value == 3.0
    turned = ratio("wall_s", "b", "a", above=1)
    assert turned.values(both).to_dict() == pytest.approx({1: 1 / 3, 2: 0.5, 3: 1 / 3})


def test_a_round_that_one_side_lacks_does_not_count():
    both = pd.concat([rows([12.0, 10.0, 18.0], "a"), rows([4.0, 5.0], "b")])
    assert ratio("wall_s", "a", "b", above=1).decide(both).rounds == 2
    with pytest.raises(UsageError, match=r"^no round has all that this finding compares$"):
        ratio("wall_s", "a", "b", above=1).decide(both.iloc[[0, 4]])


def test_what_is_compared_is_chosen_by_a_column_and_by_where():
    frame = pd.concat([
        rows([2.0], way="x", n=3), rows([4.0], way="x", n=10), rows([1.0], way="y", n=3),
        rows([8.0], way="y", n=10),
    ])  # fmt: skip
    of = {"by": "way", "above": 0}
    assert ratio("wall_s", "x", "y", where={"n": 3}, **of).decide(frame).value == 2.0
    assert ratio("wall_s", "x", "y", where={"n": 10}, **of).decide(frame).value == 0.5
    assert level("wall_s", "y", where={"n": 10}, **of).decide(frame).value == 8.0
    assert level("wall_s", where={"n": 10, "way": "x"}, above=0).decide(frame).value == 4.0
    cpu = level(lambda runs: runs["wall_s"] * 1000, "y", where={"n": 3}, **of)
    assert cpu.decide(frame).value == 1000.0
    with pytest.raises(UsageError, match=r"no run with n 7, way x among those to be compared"):
        ratio("wall_s", "x", "y", where={"n": 7}, **of).decide(frame)
    with pytest.raises(UsageError, match=r"no run with any run"):
        level("wall_s", above=0).decide(frame[:0])


# --------------------------------------------------------------------- one machine, two attempts


def test_what_another_machine_recorded_decides_alone_where_this_one_has_nothing():
    ours = rows([5.0] * 8, source="live")
    theirs = pd.concat([rows([1.0] * 8, "a"), rows([2.0] * 8, "b")]).assign(source="reference")
    mixed = pd.concat([ours, theirs])
    found = ratio("wall_s", "a", "b", above=0).decide(mixed)
    assert (found.value, found.rounds, found.outcome) == (0.5, 8, HOLDS)
    alone = ratio("wall_s", "a", "b", above=0).decide(mixed.assign(instead=""))
    assert alone.value == 0.5
    # Two machines in files: the one that has both, whichever comes first.
    half = rows([9.0] * 8, "a", source="reference", instead="on A chip, 2 cores; n = 3")
    whole = theirs.assign(instead="on B chip, 4 cores")
    for frame in ([half, whole], [whole, half]):
        assert ratio("wall_s", "a", "b", above=0).decide(pd.concat(frame)).value == 0.5
    split = [half, theirs[theirs["stack"] == "b"].assign(instead="on B chip, 4 cores")]
    lost = ratio("wall_s", "a", "b", above=0).decide(pd.concat(split))
    assert (lost.outcome, lost.rounds) == (NOT_HERE, 0)
    assert all(map(math.isnan, (lost.value, lost.low, lost.high)))
    assert lost.window == Window(low=0)
    reason = (
        "a part of what is compared, of {}, was recorded on another machine, and two machines are "
        "never compared"
    )
    assert lost.because == reason.format("a, b")
    by_way = pd.concat(split).rename(columns={"stack": "way"})
    unnamed = ratio("wall_s", "a", "b", by="way", above=0).decide(by_way)
    assert unnamed.because == reason.format("a part")


def test_the_label_of_a_machine_ends_where_what_else_is_said_begins():
    frame = rows([1.0] * 4, source=["live", "reference", "reference", "reference"]).assign(
        instead=[None, "", "n = 10 instead of 7", "on A chip, 2 cores; n = 10 instead of 7"]
    )
    assert decisions._machines(frame).tolist() == [None, "", "", "on A chip, 2 cores"]
    # Where nothing is said of any run, as of those that a machine file answers for itself.
    assert decisions._machines(frame.assign(instead=None)).tolist() == [None, "", "", ""]


def test_two_attempts_decide_together_and_the_first_is_kept():
    first, second = rows([0.9] * 8, attempt=1), rows([2.0] * 8, attempt=2)
    second = second.assign(repeat=range(9, 17))
    asked = level("wall_s", above=1)
    found = asked.decide(pd.concat([first, second]))
    assert (found.outcome, found.value, found.rounds) == (UNDECIDED, 1.45, 16)
    assert (found.first.outcome, found.first.value, found.first.rounds) == (OTHERWISE, 0.9, 8)
    # The first alone had held: nothing was tried twice for this question.
    assert level("wall_s", above=0.5).decide(pd.concat([first, second])).first is None
    # The second brought no rounds that count for this one.
    nothing = second.assign(stack="b")
    assert level("wall_s", "a", above=1).decide(pd.concat([first, nothing])).first is None
    assert asked.decide(first).first is None and asked.decide(first).outcome == OTHERWISE


# ------------------------------------------------------------------------------------------ rounds


def taken(*outcomes_at: tuple[int, float]):
    """A measurement whose value changes after some rounds, and the numbers it was asked for."""
    calls = []

    def measure(numbers: range) -> pd.DataFrame:
        calls.append(numbers)
        values = [next(v for until, v in outcomes_at if n <= until) for n in numbers]
        return pd.DataFrame({"repeat": list(numbers), "wall_s": values})

    return measure, calls


def test_we_look_after_8_16_and_32_rounds():
    assert decisions.LOOKS == (8, 16, 32) and decisions.ERROR == 0.05
    measure, calls = taken((99, 1.0))
    straddling = Hypothesis(
        lambda frame: frame.set_index("repeat")["wall_s"] + frame.set_index("repeat").index % 2,
        Window(low=1.5),
    )
    frame = rounds.until_decided(measure, [straddling])
    assert calls == [range(1, 9), range(9, 17), range(17, 33)] and len(frame) == 32
    assert frame["repeat"].tolist() == list(range(1, 33)) and "attempt" not in frame
    assert frame.index.is_unique
    measure, calls = taken((99, 1.0))
    rounds.until_decided(measure, [straddling], looks=(3, 5))
    assert calls == [range(1, 4), range(4, 6)]


def test_where_no_rounds_are_to_be_had_there_are_none():
    nothing = rounds.until_decided(lambda numbers: pd.DataFrame(), [level("wall_s", above=2)])
    assert nothing.empty


def test_what_is_decided_at_the_second_look_takes_no_third():
    def values(frame):
        walls = frame.set_index("repeat")["wall_s"]
        return walls.where(walls.index != 1, 9.0)  # one odd round of eight leaves it open

    measure, calls = taken((99, 1.0))
    rounds.until_decided(measure, [Hypothesis(values, Window(high=2))])
    assert calls == [range(1, 9), range(9, 17)]


def test_otherwise_takes_as_many_again_once():
    measure, calls = taken((99, 1.0))
    frame = rounds.until_decided(measure, [level("wall_s", above=2)])
    assert calls == [range(1, 9), range(9, 17)]
    assert frame["attempt"].tolist() == [1] * 8 + [2] * 8 and frame.index.is_unique
    # Otherwise only at the last look: 32 more.
    measure, calls = taken((99, 1.0))
    asked = [level("wall_s", above=2), Hypothesis(lambda f: f.set_index("repeat")["wall_s"] +
             f.set_index("repeat").index % 2, Window(low=1.5))]  # fmt: skip
    rounds.until_decided(measure, asked)
    assert calls[-1] == range(33, 65)


def test_a_file_that_took_no_more_rounds_ends_the_looking():
    def measure(numbers: range) -> pd.DataFrame:
        if numbers.start > 8:
            raise NotInFile("no more")
        return pd.DataFrame({"repeat": list(numbers), "wall_s": 1.0})

    frame = rounds.until_decided(measure, [level("wall_s", above=2)])
    assert len(frame) == 8 and "attempt" not in frame

    def nothing(numbers: range) -> pd.DataFrame:
        raise NotInFile("no answer")

    with pytest.raises(NotInFile):
        rounds.until_decided(nothing, [level("wall_s", above=2)])


def test_what_may_still_come_is_waited_for():
    """A question whose rounds lacked something, such as a second core, is asked again."""

    class Waiting(Hypothesis):
        def decide(self, frame):
            free = len(frame) > 8
            return Decision(1, 1, 1, len(frame), self.window, HOLDS if free else NOT_HERE,
                            more_rounds_may_decide=not free)  # fmt: skip

    measure, calls = taken((99, 1.0))
    rounds.until_decided(measure, [Waiting(lambda frame: frame, Window(low=0))])
    assert calls == [range(1, 9), range(9, 17)]


def test_turns():
    assert list(rounds.in_turns("abc", 2)) == [
        (1, "a"), (1, "b"), (1, "c"), (2, "c"), (2, "b"), (2, "a"),
    ]  # fmt: skip
    assert list(rounds.in_turns(iter("ab"), range(4, 6))) == [
        (4, "b"), (4, "a"), (5, "a"), (5, "b"),
    ]  # fmt: skip
    assert rounds.numbers(3) == range(1, 4) and rounds.numbers(range(5, 7)) == range(5, 7)
    assert rounds.as_list("ab") == ["ab"] and rounds.as_list(3) == [3]
    assert rounds.as_list(("a", "b")) == ["a", "b"] and rounds.as_list(iter("ab")) == ["a", "b"]


def test_until_stands_in_the_signature_of_what_takes_it():
    @rounds.takes_until
    def measure(name: str, *, repeats=None, size=1):
        """Measure."""
        return pd.DataFrame({"repeat": list(rounds.numbers(repeats or 1)), "wall_s": 1.0})

    import inspect

    assert list(inspect.signature(measure).parameters) == [
        "name", "repeats", "size", "until", "looks"
    ]  # fmt: skip
    assert measure.__doc__ == "Measure."
    wide = level("wall_s", between=(0, 9))
    assert len(measure("a", until=wide)) == 8
    assert len(measure("a", until=wide, looks=(9,))) == 9
    assert len(measure("a", repeats=2)) == 2 and len(measure("a")) == 1
    for mistake, name in (({"name": 3}, "name"), ({"name": "a", "looks": "eight"}, "looks")):
        with pytest.raises(UsageError, match=f"^{name} is "):
            measure(**mistake)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"repeats": 0}, "repeats is 0; choose 1 to 1,000"),
        ({"repeats": 1001}, "repeats is 1,001; choose 1 to 1,000"),
        ({"repeats": range(3, 3)}, "repeats is 0; choose 1 to 1,000"),
        ({"looks": (8, 0)}, "looks is 0; choose 1 to 1,000"),
        ({"looks": (1001,)}, "looks is 1,001; choose 1 to 1,000"),
        ({"until": ["soon"]}, "until is 'soon'; give a Hypothesis or several of them"),
        ({"until": level("wall_s", above=0), "repeats": 3},
         "until= takes as many rounds as its hypotheses need, and repeats= says how many: give one "
         "of the two (looks=(8,) is what takes eight rounds and no more)"),
    ],
)  # fmt: skip
def test_rounds_that_cannot_be_taken(options, said):
    @rounds.takes_until
    def measure(repeats=None):
        raise AssertionError("nothing is measured")

    with pytest.raises(UsageError) as refused:
        measure(**options)
    assert str(refused.value) == said


@pytest.mark.parametrize(("at_once", "together"), [(1, 1), (2, 2), (9, 4)])
def test_rounds_side_by_side_come_in_their_order(at_once, together):
    """As many wait for each other as may run at once, so none runs alone."""
    all_here = threading.Barrier(together)

    def measure(repeat):
        all_here.wait(60)
        return repeat * 10

    assert rounds.side_by_side(measure, 4, at_once) == [10, 20, 30, 40]
    assert rounds.side_by_side(measure, range(3, 7), at_once) == [30, 40, 50, 60]


def test_no_more_rounds_run_at_once_than_may():
    at_once, peak, counting = 0, 0, threading.Lock()

    def measure(repeat):
        nonlocal at_once, peak
        with counting:
            at_once += 1
            peak = max(peak, at_once)
        time.sleep(0.02)
        with counting:
            at_once -= 1

    rounds.side_by_side(measure, 12, 2)
    assert peak <= 2


def test_rounds_side_by_side_are_noted_as_one_measurement_of_their_caller(tmp_path, monkeypatch):
    """Each knows what its caller does: with the lock that she has, it waits for none."""
    notes, whose = tmp_path / "spans", ContextVar("whose", default="nobody's")
    monkeypatch.setenv(spans.VARIABLE, str(notes))
    whose.set("hers")
    assert rounds.side_by_side(lambda repeat: whose.get(), 3, 2, "visits") == ["hers"] * 3
    rounds.side_by_side(str, 2, 2)
    noted = [json.loads(line) for line in notes.read_text().splitlines()]
    assert [(note["kind"], note["label"]) for note in noted if note["kind"] == "measurement"] == [
        ("measurement", "visits"), ("measurement", "")
    ]  # fmt: skip


def test_of_rounds_side_by_side_the_first_that_failed_is_told():
    def measure(repeat):
        raise ValueError(f"round {repeat}")

    for at_once in (1, 2):
        with pytest.raises(ValueError, match="round 5"):
            rounds.side_by_side(measure, range(5, 8), at_once)


def test_figures_that_cannot_be_compared():
    both = pd.concat([rows([1.0, 2.0], "a"), rows([3.0, 0.0], "b")])
    for asked, frame, said in (
        (ratio("wall_s", "a", "b", above=0), both,
         "b is 0 in a round, and nothing can be divided by it: ask for the level of a instead of "
         "a ratio to b"),
        (level("wall_s", "a", above=0), pd.concat([both, both]),
         "a round has several runs with stack a: say with where= which is meant"),
        (Hypothesis(lambda frame: frame.set_index("repeat")["wall_s"], Window(low=0)), both,
         "a round has several values: make one of them, as with .groupby('repeat').median()"),
        (Hypothesis(lambda frame: frame.set_index(["repeat", "stack"])["wall_s"], Window(low=0)),
         both,
         "a round has several values: make one of them, as with .groupby('repeat').median()"),
    ):  # fmt: skip
        with pytest.raises(UsageError) as refused:
            asked.decide(frame)
        assert str(refused.value) == said


# -------------------------------------------------------------------------------------- properties

VALUES = st.lists(st.floats(0.01, 100, allow_nan=False), min_size=8, max_size=20)


@settings(max_examples=15, deadline=None)
@given(over=VALUES, random=st.randoms())
def test_a_decision_does_not_depend_on_the_order_of_rows(over, random):
    under = [value % 7 + 1 for value in over]
    frame = pd.concat([rows(over, "a"), rows(under, "b")], ignore_index=True).assign(attempt=1)
    frame.loc[frame["repeat"] > 8, "attempt"] = 2
    mixed = list(range(len(frame)))
    random.shuffle(mixed)
    for asked in (ratio("wall_s", "a", "b", below=0.9), level("wall_s", "a", above=9)):
        # Rounds without a correlation have NaN, which is not the same as itself.
        assert str(vars(asked.decide(frame))) == str(vars(asked.decide(frame.iloc[mixed])))


@settings(max_examples=25, deadline=None)
@given(values=VALUES, low=st.floats(0.01, 100), width=st.floats(0.01, 100))
def test_what_holds_in_a_window_is_otherwise_outside_of_it(values, low, width):
    found = decide(values, Window(low, low + width))
    assert found.low <= found.value <= found.high
    below, above = decide(values, Window(high=low)), decide(values, Window(low=low + width))
    outcomes = [each.outcome for each in (below, found, above)]
    assert outcomes.count(HOLDS) <= 1
    if found.outcome == HOLDS:
        assert outcomes == [OTHERWISE, HOLDS, OTHERWISE]


def test_rounds_that_resemble_each_other_say_less_so_the_interval_is_wider():
    # 1 to 8 in order: 26.25 / 42 = 0.625 from one round to the next, 0.75 above -1/8, so that both
    # ends lie the root of 1.75 / 0.25 times as far from 4.5 as 1 and 8.
    found = decide([1, 2, 3, 4, 5, 6, 7, 8], Window(high=20))
    assert found.low == pytest.approx(4.5 - 3.5 * 7**0.5)
    assert found.high == pytest.approx(4.5 + 3.5 * 7**0.5)


@pytest.mark.parametrize(
    ("correlation", "factor"),
    [
        (math.nan, 1),  # where it is unknown, nothing is widened
        (-1 / 8, 1),  # as independent rounds have it
        (-0.9, 1),
        (0.475, 2),  # 0.6 above it: the root of 1.6 / 0.4
        (1.0, 39**0.5),  # no more than 0.95 counts: the root of 1.95 / 0.05
    ],
)
def test_an_interval_is_widened_by_what_its_rounds_share(correlation, factor):
    low, high = decisions.widened(1.0, 4.0, 2.0, correlation, 8)
    assert (low, high) == pytest.approx((2 - factor, 2 + 2 * factor))
