"""What was published, and how it is held against what was measured."""

from types import SimpleNamespace

import pandas as pd
import pytest

from casebook.errors import UsageError
from casebook.findings import published


def walls(delay_s: float, source: str = "live") -> pd.DataFrame:
    return pd.DataFrame({"delay_s": [delay_s], "source": [source]})


def test_the_rows_of_the_first_part_are_all_there():
    frame = published.load()
    assert len(frame) == frame["id"].nunique() == 46
    first = published.rows_of_part(1)
    assert "talk-serial-3" in first and "report-job" in first and "threads-ratio" not in first
    assert sum(len(published.rows_of_part(part)) for part in (1, 2, 3)) == 46
    assert published.missing(first[1:]) == [first[0]]


def test_a_value_is_a_number_where_it_is_one():
    assert published.value("talk-serial-10") == 11.0
    assert published.value("stage2-27") == "slow"
    with pytest.raises(UsageError, match="no row 'stage9-27'"):
        published.value("stage9-27")


def test_series_stand_beside_runs_in_a_chart():
    frame = published.series("talk-serial", "talk-grequests27")
    assert list(frame["n"]) == [3, 5, 10] * 2
    assert list(frame["client"]) == ["requests"] * 3 + ["grequests"] * 3
    assert set(frame["stack"][3:]) == {"stage-0-py27"} and set(frame["source"]) == {"published"}
    with pytest.raises(UsageError):
        published.series("profile-stage2")


def test_verdicts_are_named_like_our_stacks():
    said = published.verdicts().set_index("stack")["published"]
    assert len(said) == 10 and said["stage-3-py27"] == "fast" and said["stage-3-py37"] == "slow"


@pytest.mark.parametrize(
    ("said", "measured", "same"),
    [
        ("slow", "serial", True),
        ("slow", "concurrent", False),
        ("ssl.SSLContext", "ssl.SSLContext", True),
        (11.0, 13.7, True),
        (11.0, 13.8, False),
        (11.0, 8.3, True),
        ("20-25", 26.0, True),
        ("20-25", 33.0, False),
        (">100%", 240.0, True),
        (">100%", 90.0, False),
        ("fast", 1.0, False),
    ],
)
def test_agreement(said, measured, same):
    assert published.agrees(said, measured) is same


def test_times_are_compared_in_delays():
    record = published.comparison("talk-serial-10", 1.12, runs=walls(0.1))
    assert record["outcome"] == "reproduced" and record["published"] == "11 s"
    assert record["measured_text"] == "1.12 s at a delay of 0.1 s (11.2 delays)"
    full = published.comparison("talk-serial-10", 10.3, runs=walls(1.0))
    assert full["outcome"] == "reproduced" and full["measured_text"] == "10.3 s"


def test_only_what_was_free_to_differ_is_compared():
    """Ten pages at 1 s, one after another, cannot take less than 10 s: 11 s says 1 s."""
    near = published.comparison("talk-serial-10", 1.95, runs=walls(0.1), delays=10)
    assert near["outcome"] == "reproduced"
    assert near["why"] == "Beside the 10 delays it took 1.00 s there and 0.95 s here."
    far = published.comparison("talk-serial-10", 10.2, runs=walls(1.0), delays=10)
    assert far["outcome"] == "differs" and "and 0.20 s here." in far["why"]
    record = published.comparison("talk-grequests37-10", 10.5, runs=walls(1.0), delays=1)
    assert record["outcome"] == "not reproduced" and published.UNEXPLAINED in record["why"]


def test_another_number_with_the_same_finding_differs():
    record = published.comparison("talk-grequests37-10", 0.33, runs=walls(0.1))
    assert record["outcome"] == "differs" and record["measured"] == 0.33


def test_another_finding_without_a_reason_says_so():
    record = published.comparison("talk-grequests37-10", 10.2, runs=walls(1.0))
    assert record["outcome"] == "not reproduced" and record["why"] == published.UNEXPLAINED
    record = published.comparison("stage0-27", "concurrent", why="No laptop is like another.")
    assert record["outcome"] == "not reproduced" and record["why"] == "No laptop is like another."


def test_times_without_a_delay_are_compared_as_they_are():
    runs = walls(0.1)
    record = published.comparison("threads-verify-true", 1.1, runs=runs)
    assert record["outcome"] == "reproduced" and record["measured_text"] == "1.10 s"
    record = published.comparison("threads-verify-false", 0.1, runs=runs, finding=True)
    assert record["outcome"] == "differs"
    # A verdict of serial or concurrent would be none: nothing waited.
    record = published.comparison("threads-verify-false", 0.1, runs=runs)
    assert record["outcome"] == "not reproduced"


def test_whether_a_finding_holds_is_said_and_not_guessed():
    for finding, outcome in ((True, "differs"), (False, "not reproduced")):
        record = published.comparison("threads-true-read", 0.01, why="No net.", finding=finding)
        assert record["outcome"] == outcome
    record = published.comparison("bookstore-h1-cpu", 71.0, finding=False)
    assert record["outcome"] == "reproduced" and record["measured_text"] == "71.0%"


def test_a_ratio_that_was_published_as_more_than():
    record = published.comparison("threads-ratio", 340.0)
    assert record["outcome"] == "reproduced" and record["measured_text"] == "340%"
    record = published.comparison("threads-ratio", 12.0, why="A default bundle.")
    assert record["outcome"] == "not reproduced"


def test_what_was_not_measured_needs_a_reason():
    with pytest.raises(UsageError, match="nothing here"):
        published.compare("report-job")
    assert published.comparison("report-job", why="It is not public.")["outcome"] == "not measured"


def test_recorded_rows_are_told_apart():
    assert published.comparison("stage1-27", "concurrent", runs=walls(1.0, "reference")) == {
        "id": "stage1-27",
        "published": "fast",
        "measured": "concurrent",
        "measured_text": "concurrent",
        "unit": "",
        "outcome": "reproduced",
        "why": "",
        "source": "reference",
        "chapter": "",
    }
    seen = SimpleNamespace(source="reference", delay_s=0.1, stack="stage-2-py27")
    record = published.comparison("profile-stage2-poll", 1.03, runs=seen)
    assert record["source"] == "reference" and record["outcome"] == "reproduced"


def test_an_unknown_outcome_is_refused():
    with pytest.raises(UsageError, match="none of reproduced, differs"):
        published.compare("stage1-27", "concurrent", outcome="perhaps")


def test_a_comparison_is_one_line_in_a_terminal(capsys):
    published.compare("talk-serial-3", 3.1, runs=walls(1.0, "reference"))
    assert capsys.readouterr().out == (
        "requests, n = 3, wall: published 3.30 s, here 3.10 s "
        "[✓ reproduced, recorded; published talk-serial-3]\n"
    )
