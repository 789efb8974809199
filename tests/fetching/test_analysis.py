import pandas as pd
import pytest

from casebook.cases.fetching import analysis


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
    with pytest.raises(KeyError, match="no run of b with n = 10"):
        analysis.median_wall_s(frame(("a", 10, 0.3, 3.3, "concurrent")), "b", 10)
