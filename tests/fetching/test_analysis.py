import pandas as pd
import pytest

from casebook.cases.fetching import analysis, phases
from casebook.cases.fetching.observations import Observation
from casebook.errors import UsageError


@pytest.mark.parametrize(
    ("n", "delay_s", "wall_s", "peak", "expected"),
    [
        (10, 0.1, 1.05, 1, "serial"),
        (10, 0.1, 0.35, 9, "concurrent"),
        # Serial by the server's account, however the clock was read.
        (10, 0.1, 0.50, 1, "serial"),
        # Requests overlapped, but nothing was gained by it.
        (10, 0.1, 0.90, 3, "between"),
        # Without the server's count the clock decides, with a gap in which it cannot.
        (10, 0.1, 1.00, None, "serial"),
        (10, 0.1, 0.75, None, "between"),
        (10, 0.1, 0.60, None, "concurrent"),
        # One request cannot be concurrent, and a delay of nothing leaves nothing to overlap.
        (1, 1.0, 1.05, 1, "between"),
        (10, 0.0, 0.20, 1, "between"),
        (10, 0.01, 0.30, 1, "between"),
    ],
)
def test_verdict_of_one_run(n, delay_s, wall_s, peak, expected):
    assert analysis.verdict(n, delay_s, wall_s, peak) == expected


def frame(*rows):
    columns = ["stack", "n", "wall_s", "effective_concurrency", "verdict"]
    fixed = {"client": "grequests", "scheme": "https", "delay_s": 0.1, "source": "live"}
    return pd.DataFrame(rows, columns=columns).assign(**fixed)


def test_verdict_of_a_stack_is_that_of_its_best_repeat_at_the_largest_n():
    runs = frame(
        ("a", 3, 0.15, 2.0, "concurrent"),
        ("a", 10, 0.90, 1.1, "between"),  # a busy moment
        ("a", 10, 0.30, 3.3, "concurrent"),
        ("b", 10, 1.05, 0.95, "serial"),
    )
    assert analysis.verdicts(runs).to_dict() == {"a": "concurrent", "b": "serial"}


def test_stacks_stand_in_the_order_of_their_runs():
    runs = frame(("b", 10, 1.05, 0.95, "serial"), ("a", 10, 0.30, 3.3, "concurrent"))
    assert list(analysis.verdicts(runs).items()) == [("b", "serial"), ("a", "concurrent")]
    assert analysis.verdicts(runs).name == "verdict"  # the heading of its column
    assert analysis.summary(runs)["stack"].tolist() == ["b", "a"]


def test_two_requests_at_once_are_not_serial():
    assert [analysis.verdict_by_peak(peak) for peak in (0, 1, 2, 9)] == [
        "serial", "serial", "concurrent", "concurrent",
    ]  # fmt: skip


def test_summary_keeps_the_spread_and_what_was_measured_where():
    runs = frame(
        ("a", 10, 0.30, 3.3, "concurrent"),
        ("a", 10, 0.50, 2.0, "concurrent"),
        ("a", 10, 0.40, 2.5, "concurrent"),
    )
    runs.loc[2, "source"] = "reference"
    summary = analysis.summary(runs).set_index("source")
    assert summary.loc["live", ["repeats", "min_s", "max_s"]].tolist() == [2, 0.30, 0.50]
    assert summary.loc["live", "effective_concurrency"] == 3.3
    assert summary.loc["reference", "repeats"] == 1


def test_median_of_what_was_not_run_is_an_error():
    with pytest.raises(UsageError, match="no run of 'b' with n = 10"):
        analysis.median_wall_s(frame(("a", 10, 0.3, 3.3, "concurrent")), "b", 10)
    with pytest.raises(UsageError, match="no run of 'b' with n = 10"):
        analysis.median_wall_s(pd.DataFrame(), "b", 10)  # no run at all, and no columns


@pytest.mark.parametrize(
    ("n", "delay_s", "wall_s", "peak", "expected"),
    [
        # At the limits themselves: 10 x 0.15 / 1, 10 x 0.12 / 1, two requests, 50 ms.
        (10, 0.15, 1.0, 2, "concurrent"),
        (10, 0.12, 1.0, None, "between"),
        (2, 0.5, 0.5, 2, "concurrent"),
        (2, 0.05, 0.05, 2, "concurrent"),
        (2, 0.0499, 0.04, 2, "between"),
        # Where the server counts, a clock that is too slow does not make a run serial.
        (10, 0.1, 1.0, 2, "between"),
        (10, 0.1, 1.0, 0, "serial"),
        (0, 0.1, 1.0, 0, "between"),
    ],
)
def test_a_verdict_at_its_limits(n, delay_s, wall_s, peak, expected):
    assert analysis.verdict(n, delay_s, wall_s, peak) == expected


@pytest.mark.parametrize(
    ("n", "delay_s", "wall_s", "name"),
    [
        (-1, 0.1, 1.0, "n"),
        (10, -0.1, 1.0, "delay_s"),
        (10, float("nan"), 1.0, "delay_s"),
        (10, 0.1, 0.0, "wall_s"),
    ],
)
def test_no_run_is_judged_that_cannot_have_been(n, delay_s, wall_s, name):
    with pytest.raises(UsageError, match=rf"^{name} is .*; choose"):
        analysis.verdict(n, delay_s, wall_s)


def test_effective_concurrency_is_what_was_served_in_a_delay():
    assert analysis.effective_concurrency(10, 0.2, 0.5) == pytest.approx(4.0)


def test_a_summary_tells_clients_schemes_and_delays_apart_and_says_the_median():
    runs = frame(
        ("a", 10, 0.30, 3.3, "concurrent"),
        ("a", 10, 0.90, 1.1, "between"),
        ("a", 10, 0.40, 2.5, "concurrent"),
    )
    [row] = analysis.summary(runs).to_dict("records")
    assert (row["median_s"], row["min_s"], row["max_s"]) == (0.40, 0.30, 0.90)
    assert (row["repeats"], row["verdict"], row["effective_concurrency"]) == (3, "concurrent", 3.3)
    for column, other in (("client", "loop"), ("scheme", "http"), ("delay_s", 0.2), ("n", 3)):
        changed = runs.copy()
        changed.loc[2, column] = other
        assert sorted(analysis.summary(changed)["repeats"]) == [1, 2], column


def test_a_median_is_of_one_stack_at_one_size():
    runs = frame(
        ("a", 10, 0.3, 3.3, "concurrent"),
        ("a", 10, 0.4, 2.5, "concurrent"),
        ("a", 10, 1.4, 0.7, "between"),
        ("a", 3, 9.0, 0.1, "between"),
        ("b", 10, 9.0, 0.1, "between"),
    )
    assert analysis.median_wall_s(runs, "a", 10) == 0.4


def timeline(rows, heartbeats=()):
    rows = [dict(zip(("page", "event", "start_s", "end_s"), row, strict=True)) for row in rows]
    return Observation(
        stack="s", kind="timeline", n=2, delay_s=0.1, python="3", steps="", measured_at="",
        source="live", answer={"timeline": rows, "heartbeats": list(heartbeats)},
    )  # fmt: skip


def test_a_beat_inside_two_waits_is_one_beat_and_one_outside_is_none():
    waits = [(0, "wait", 0.1, 0.5), (1, "wait", 0.2, 0.6), (2, "connect", 0.7, 0.9)]
    for beats, count in (
        ([], 0),
        ([0.3], 1),  # in both
        ([0.15, 0.3, 0.55], 3),
        ([0.05, 0.1, 0.6, 0.65, 0.8], 0),  # before, at the ends, after, and beside a connection
    ):
        assert analysis.beats_while_waiting(timeline(waits, beats)) == count, beats
    assert analysis.beats_while_waiting(timeline([], [0.1])) == 0


def test_the_most_that_wait_at_once_is_counted_from_the_waits_alone():
    def most(*rows):
        return phases.most_waiting(timeline(rows).frame)

    assert most() == 0
    assert most((0, "wait", 0, 1), (1, "wait", 1, 2)) == 1  # one ends as the next begins
    assert most((0, "wait", 0, 3), (1, "wait", 1, 2), (2, "wait", 2.5, 4)) == 2
    assert most((0, "wait", 0, 1), (1, "receive", 0, 1), (1, "send", 0, 1)) == 1


def test_each_request_is_a_row_of_its_parts_in_their_order():
    frame = timeline(
        [
            (1, "wait", 0.2, 0.3),
            (0, "send", 0.1, 0.2),
            (0, "connect", 0.0, 0.1),
            (0, "wait", 0.5, 0.6),
            (0, "wait", 0.30004, 0.4),  # asked twice: from the first start to the last end
            (0, "wait", 0.41, 0.43),
            (None, "connect", 0.0, 9.0),
        ]
    ).frame
    none = [None, None]
    assert phases.of_requests(frame, 1) == [
        [0, 0.0, 100.0, *none, 100.0, 200.0, 300.0, 600.0, *none],
        [1, *none, *none, *none, 200.0, 300.0, *none],
    ]
