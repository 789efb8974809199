"""What was published, and how it is held against what was measured."""

import re
from types import SimpleNamespace

import pandas as pd
import pytest

from casebook.errors import UsageError
from casebook.findings import published


def walls(delay_s: float, source: str = "live") -> pd.DataFrame:
    return pd.DataFrame({"delay_s": [delay_s], "source": [source]})


def test_the_published_rows_are_all_there():
    frame = published.load()
    assert len(frame) == frame["id"].nunique() == 46
    assert {"talk-serial-3", "report-job", "threads-ratio"} <= set(frame["id"])


def test_stages_are_called_what_the_book_calls_them():
    told = {row["id"]: published.described(row) for row in published.load().to_dict("records")}
    assert told["profile-stage1-recv"].endswith(
        "n = 10, cumulative time of gevent/_sslgte279.py recv"
    )
    assert told["stage2-27"] == "+ pyOpenSSL, Python 2.7, verdict"
    assert told["talk-grequests27-3"].startswith("grequests, whatever is there, Python 2.7")
    assert told["context-patched"].startswith("grequests alone and + pyOpenSSL, Python 2.7")
    assert not [text for text in told.values() if re.search(r"stage|laptop|minimal", text)]


def test_a_value_is_a_number_where_it_is_one():
    assert published.value("talk-serial-10") == 11.0
    assert published.value("stage2-27") == "slow"
    with pytest.raises(UsageError, match=r"published\.csv is 'stage9-27'; did you mean"):
        published.value("stage9-27")


def test_series_stand_beside_runs_in_a_chart():
    frame = published.series("talk-serial", "talk-grequests27")
    assert frame.iloc[0].to_dict() == {
        "stack": "stage-0", "client": "requests", "n": 3, "delay_s": 1.0, "wall_s": 3.3,
        "effective_concurrency": 3 / 3.3, "scheme": "https", "source": "published",
        "published_in": "001_aa3f9bf167bba672.txt",
    }  # fmt: skip
    assert list(frame["n"]) == [3, 5, 10] * 2 and frame["n"].dtype.kind == "i"
    assert list(frame["client"]) == ["requests"] * 3 + ["grequests"] * 3
    # Three pages in 3.30 s, five in 5.50, ten in 11, with one second for each.
    assert [round(value, 3) for value in frame["effective_concurrency"][:3]] == [0.909] * 3
    assert set(frame["stack"][3:]) == {"stage-0-py27"} and set(frame["source"]) == {"published"}
    # Ten pages, but no wall time; a wall time, but of thousands of pages.
    with pytest.raises(UsageError, match=r"no wall times under profile-stage2, report-job$"):
        published.series("profile-stage2", "report-job")


@pytest.mark.parametrize(("value", "n"), [("20-25", "10"), ("3.3", "3-10")])
def test_a_series_needs_both_a_time_and_a_number_of_pages(value, n, monkeypatch):
    row = published.load().iloc[:1].assign(value=value, n=n)
    row = row.assign(number=pd.to_numeric(row["value"], errors="coerce"))
    monkeypatch.setattr(published, "load", lambda: row)
    with pytest.raises(UsageError, match="no wall times under talk"):
        published.series("talk")


def test_what_waited_longer_is_compared_in_its_own_delays(compared, monkeypatch):
    monkeypatch.setattr(published, "DELAY_S", 2.0)  # as if the sources had waited for 2 s
    assert published.series("talk-serial-3")["effective_concurrency"][0] == pytest.approx(6 / 3.3)
    # 3.30 s are 1.65 delays.
    assert "✓ reproduced" in compared("talk-serial-3", 0.165, runs=walls(0.1))
    assert "it took 1.00 s there and 0.10 s here" in compared(
        "talk-serial-10", 0.6, runs=walls(0.1), delays=5
    )


def test_verdicts_are_named_like_our_stacks():
    frame = published.verdicts()
    assert frame.iloc[0].to_dict() == {
        "id": "stage0-27", "stack": "stage-0-py27", "published": "slow", "source": "published",
        "published_in": "001_aa3f9bf167bba672.txt",
    }  # fmt: skip
    said = frame.set_index("stack")["published"]
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


QUICK, FULL = walls(0.1), walls(1.0)
SAME, DIFFERS, NOT = "reproduced", "differs", "not reproduced"
#: A row, what was measured, what is said of it; what comes of it, and how it is written.
COMPARED = [
    # Times are compared in delays.
    ("talk-serial-10", 1.12, {"runs": QUICK}, SAME, "1.12 s at a delay of 0.1 s (11.2 delays)"),
    ("talk-serial-10", 10.3, {"runs": FULL}, SAME, "10.3 s"),
    # Only what was free to differ: ten pages at 1 s, one after another, cannot take less than 10 s.
    ("talk-serial-10", 1.95, {"runs": QUICK, "delays": 10}, SAME, None),
    ("talk-serial-10", 10.2, {"runs": FULL, "delays": 10}, DIFFERS, None),
    ("talk-grequests37-10", 10.5, {"runs": FULL, "delays": 1}, NOT, None),
    # Another number with the same finding, and another finding.
    ("talk-grequests37-10", 0.33, {"runs": QUICK}, DIFFERS, None),
    ("talk-grequests37-10", 10.2, {"runs": FULL}, NOT, None),
    ("stage0-27", "concurrent", {"why": "No laptop is like another."}, NOT, None),
    # Without a delay, as they are: a verdict of serial or concurrent would be none.
    ("threads-verify-true", 1.1, {"runs": QUICK}, SAME, "1.10 s"),
    ("threads-verify-false", 0.1, {"runs": QUICK, "finding": True}, DIFFERS, None),
    ("threads-verify-false", 0.1, {"runs": QUICK}, NOT, None),
    # Whether a finding holds is said, and not guessed.
    ("threads-true-read", 0.01, {"why": "No net.", "finding": True}, DIFFERS, None),
    ("threads-true-read", 0.01, {"why": "No net.", "finding": False}, NOT, None),
    ("bookstore-h1-cpu", 71.0, {"finding": False}, SAME, "71.0%"),
    # Published as more than a number.
    ("threads-ratio", 340.0, {}, SAME, "340%"),
    ("threads-ratio", 12.0, {"why": "A default bundle."}, NOT, None),
]


@pytest.fixture
def compared(capsys):
    """Return a function that compares a row with ours and returns the line in a terminal."""

    def comparing(*row_and_measured, **said):
        published.compare(*row_and_measured, **said)
        return capsys.readouterr().out

    return comparing


@pytest.mark.parametrize(("row", "measured", "said", "outcome", "written"), COMPARED)
def test_a_row_is_held_against_what_was_measured(compared, row, measured, said, outcome, written):
    line = compared(row, measured, **said)
    assert f"{published.OUTCOMES[outcome]} {outcome}, live; published {row}]" in line
    assert f", here {written or ''}" in line
    assert (said.get("why", published.UNEXPLAINED) in line) is (outcome == NOT or "why" in said)


def test_beside_the_delays_the_rest_is_said(compared):
    near = compared("talk-serial-10", 1.95, runs=QUICK, delays=10)
    assert near.endswith("] Beside the 10 delays it took 1.00 s there and 0.95 s here.\n")
    near = compared("talk-grequests37-3", 0.3, runs=QUICK, delays=1)
    assert near.endswith("] Beside the delay it took 0.20 s there and 0.20 s here.\n")


def test_a_number_beside_a_range_and_what_is_no_number(compared):
    assert "✓ reproduced" in compared("report-job", 22.0)
    assert "not reproduced" in compared("report-job", 40.0, why="It is another job.")
    with pytest.raises(UsageError, match=r"^comparison talk-serial-3: nan is not a value"):
        published.compare("talk-serial-3", float("nan"))


@pytest.mark.parametrize(
    ("source", "details"),
    [("live", "ours was measured here"), ("reference", "ours was recorded")],
)
def test_a_page_of_all_rows_is_told_of_each(monkeypatch, source, details):
    shown = []
    made = SimpleNamespace(show=lambda *what: shown.append(what))
    monkeypatch.setattr(published, "Sentence", lambda **parts: shown.append(parts) or made)
    published.compare("talk-serial-3", 3.1, runs=walls(1.0, source), why=" So it is. ")
    parts, record = shown
    assert (parts["details"], parts["remark"]) == (details, "So it is.")
    assert record == (published.COMPARISON, {
        "id": "talk-serial-3", "published": "3.30 s", "measured_text": "3.10 s",
        "outcome": "reproduced", "why": "So it is.", "source": source, "chapter": "",
    })  # fmt: skip


def test_runs_behind_a_comparison_have_one_delay():
    with pytest.raises(UsageError, match=r"^the runs behind a comparison must all have the same"):
        published.compare("talk-serial-3", 3.1, runs=pd.concat([walls(1.0), walls(0.1)]))


def test_a_time_without_a_delay_is_not_held_against_one_in_delays(compared):
    """There are no delays to count, so there is nothing to divide by."""
    runs = walls(0.0)
    said = compared("talk-serial-10", 0.12, runs=runs)
    assert "here 0.120 s without a delay [– not measured" in said and published.NO_DELAY in said
    assert "differs" in compared("talk-serial-10", 0.12, runs=runs, finding=True)
    assert "reproduced" in compared("talk-serial-10", 1.0, runs=runs, delays=10)
    assert "not reproduced" in compared("talk-serial-10", 9.0, runs=runs, delays=10)


def test_what_was_not_measured_needs_a_reason(compared):
    with pytest.raises(UsageError, match=r"nothing here\. Say why"):
        published.compare("report-job")
    said = compared("report-job", why="It is not public.")
    assert ", nothing here [– not measured; published report-job] It is not public." in said


def test_recorded_rows_are_told_apart(compared):
    assert compared("talk-serial-3", 3.1, runs=walls(1.0, "reference")) == (
        "requests, n = 3, wall time: published 3.30 s, here 3.10 s "
        "[✓ reproduced, recorded; published talk-serial-3]\n"
    )
    seen = SimpleNamespace(source="reference", delay_s=0.1, stack="stage-2-py27")
    assert "reproduced, recorded" in compared("profile-stage2-poll", 1.03, runs=seen)


def test_an_unknown_outcome_is_refused():
    with pytest.raises(UsageError, match="none of reproduced, differs"):
        published.compare("stage1-27", "concurrent", outcome="perhaps")


def test_the_lines_of_a_published_profile_are_as_printed():
    lines = published.profile_lines("threads-true").set_index("function")
    assert list(lines.index) == ["load_verify_locations", "connect", "read"]
    assert list(lines.loc["read", ["calls", "tottime_s", "cumtime_s"]]) == ["60/2", 0.18, 1.323]
    assert list(lines.loc["connect", ["calls", "cumtime_s"]]) == ["30/1", 0.002]
    with pytest.raises(UsageError, match="no profile"):
        published.profile_lines("talk-serial")
