"""What a claim records, and how it is compared, on decisions and rows that are written down."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from casebook import words
from casebook.errors import UsageError
from casebook.findings import claims, published, side_by_side
from casebook.findings.finding import Attempt, Finding, Rounds, outcome_of
from casebook.findings.media import CLAIM
from casebook.findings.sentences import Sentence
from casebook.laboratory.decisions import (
    HOLDS,
    NOT_HERE,
    OTHERWISE,
    UNDECIDED,
    Decision,
    Window,
)
from casebook.laboratory.machine_files import Machine
from casebook.pages import ledger


def decision(outcome: str = HOLDS, value: float = 2.0, correlation: float = math.nan, **more):
    its = dict(low=value - 1, high=value + 1, rounds=8, window=Window(low=0.5)) | more
    return Decision(value, outcome=outcome, correlation=correlation, **its)


# ---------------------------------------------------------------------------------- the outcome


@pytest.mark.parametrize(
    ("outcomes", "holds", "outcome"),
    [
        ([], True, HOLDS),
        ([], False, OTHERWISE),
        ([HOLDS], None, HOLDS),
        ([HOLDS, HOLDS], True, HOLDS),
        ([HOLDS], False, OTHERWISE),
        ([UNDECIDED], True, UNDECIDED),
        ([UNDECIDED], False, OTHERWISE),  # a count is no noise
        ([HOLDS, UNDECIDED], None, UNDECIDED),
        ([UNDECIDED, NOT_HERE], None, NOT_HERE),
        ([NOT_HERE, OTHERWISE, HOLDS], None, OTHERWISE),
        ([NOT_HERE], True, NOT_HERE),
    ],
)
def test_a_claim_comes_out_as_its_worst_part(outcomes, holds, outcome):
    decisions = [decision(each, because=f"because {each}") for each in outcomes]
    because = f"because {outcome}" if outcome in outcomes else ""
    assert outcome_of(decisions, holds, "") == (outcome, because)
    assert outcome_of(decisions, holds, "no Python") == (NOT_HERE, "no Python")


def test_of_several_decisions_the_one_that_made_the_outcome_is_shown():
    first, second, third = decision(), decision(UNDECIDED, 5.0), decision(UNDECIDED, 7.0)
    decisive = Rounds(value=5.0, n=8, interval=[4.0, 6.0], window="above 0.5")
    assert claims._decided([first, second, third], UNDECIDED) == decisive
    assert claims._decided([first, second], HOLDS) is None
    assert claims._decided([first], OTHERWISE) is None  # a count did


def test_the_correlation_that_is_told_is_the_most():
    """Where it is high, the interval is too short: the least would make light of it."""
    several = [decision(correlation=each) for each in (0.1, 0.7, math.nan, -0.9)]
    assert claims._correlation(several) == 0.7
    assert claims._correlation([decision(correlation=-0.9), decision(correlation=-0.2)]) == -0.2
    assert claims._correlation([decision()]) is None and claims._correlation([]) is None


def test_of_a_decision_its_rounds_are_kept_and_nothing_that_is_no_number():
    few = decision(UNDECIDED, low=math.nan, high=math.nan, rounds=3)
    assert Rounds.from_decision(few) == Rounds(value=2.0, n=3, interval=None, window="above 0.5")
    nothing = decision(NOT_HERE, math.nan, low=math.nan, high=math.nan, rounds=0)
    assert Rounds.from_decision(nothing).value is None


def test_two_attempts_are_both_told():
    first = decision(OTHERWISE, 0.3)
    second = decision(HOLDS, 2.0, rounds=16, first=first)
    finding = Finding("x", "It is 2.", outcome=HOLDS, value=2.0, interval=[1.0, 3.0], n=16)
    assert claims._attempts(finding, second, [second]) == [
        Attempt(OTHERWISE, 0.3, [-0.7, 1.3], 8), Attempt(HOLDS, 2.0, [1.0, 3.0], 16),
    ]  # fmt: skip
    assert claims._attempts(finding, decision(), [decision()]) == []
    assert claims._attempts(replace(finding, outcome=NOT_HERE), second, [second]) == []
    # If it was not the value's own decision, no value is known of the first attempt alone.
    for value in (7, decision()):
        told = claims._attempts(finding, value, [second])
        assert told == [Attempt(OTHERWISE, None, None, 8), Attempt(HOLDS, 2.0, [1.0, 3.0], 16)]


def frame(*sources: str) -> pd.DataFrame:
    rows = enumerate(zip(sources, ("k", None, "", "k"), strict=False))
    return claims.runs_frame(pd.DataFrame([
        {"source": source, "stack": f"s{n % 2}", "wall_s": 3.0 + n, "key": key}
        for n, (source, key) in rows
    ]))  # fmt: skip


def test_what_is_said_of_the_runs_behind():
    partly = claims._of_runs("x", frame("live", "reference", "live"), "", "wall_s")
    assert partly == {
        "n": 3, "source": "reference", "live": True, "stack": "s0, s1", "keys": ["k"],
        "spread": [3.0, 5.0],
    }  # fmt: skip
    assert claims._of_runs("x", frame("live"), "own", "cpu_s") == {
        "n": 1, "source": "live", "live": True, "stack": "own", "keys": ["k"], "spread": None,
    }  # fmt: skip
    recorded = claims._of_runs("x", frame("reference", "reference"), "", "wall_s")
    assert (recorded["source"], recorded["live"]) == ("reference", False)
    nothing = claims._of_runs("x", claims.runs_frame(None), "", "wall_s")
    assert (nothing["source"], nothing["live"], nothing["keys"]) == ("live", True, [])


def test_in_the_book_of_a_machine_file_nothing_is_live(monkeypatch):
    monkeypatch.setattr(words, "is_from_machine_file", lambda: True)
    its = claims._of_runs("x", frame("live"), "", "wall_s")
    assert (its["source"], its["live"]) == ("reference", False)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"interval": [1, 2.5], "window": "below 3"}, "1 to 2.5 in 8 rounds, asked: below 3"),
        ({"window": "below 3"}, "8 rounds are too few to say, asked: below 3"),
        ({"interval": [1, 2.5], "window": "below 3", "outcome": OTHERWISE},
         "what was counted beside the clock is not as it was asked"),
        ({"decided": Rounds(9.0, 16, [8, 10], "below 5"),
          "interval": [1, 2], "window": "below 3", "outcome": OTHERWISE},
         "of what it rests on, one figure is 9, 8 to 10 in 16 rounds, asked: below 5"),
        ({}, ""),
        ({"attempts": [Attempt(OTHERWISE, 1, None, 8), Attempt(NOT_HERE, 1, None, 8)]},
         "measured twice: otherwise, then not here"),
    ],
)  # fmt: skip
def test_what_decided_in_words(fields, found):
    finding = Finding("x", "It is 2.", value=2.0, n=8, **{"outcome": HOLDS} | fields)
    assert finding.clock() == found
    assert finding.in_brief() == ": ".join(filter(None, ["It is 2", found]))
    assert finding.in_brief(is_known=True) == (found or "It is 2")


@pytest.mark.parametrize(
    ("outcome", "window", "remark"),
    [
        (HOLDS, "below 3", ""),
        (OTHERWISE, "", "It came out otherwise here: why. To measure it again, run this chapter "
         "once more."),
        (UNDECIDED, "below 3", "Undecided here: why. A quieter machine may decide it, or more "
         "rounds: `looks=(64,)` in its cell."),
        (UNDECIDED, None, "Undecided here: why. To measure it again, run this chapter once more."),
        (NOT_HERE, None, "Not on this machine: ..it has no Python 2.X."),
    ],
)  # fmt: skip
def test_what_did_not_hold_says_how_to_measure_more(monkeypatch, outcome, window, remark):
    monkeypatch.setattr(words, "machine", lambda: "this machine")
    because = "..it has no Python 2.X."  # with one full stop at its end, whatever comes before it
    finding = Finding("x", "It is X.", outcome=outcome, window=window, because=because)
    assert claims._remark(finding, "why") == remark
    if outcome == NOT_HERE:
        assert finding.in_brief() == "..it has no Python 2.X"


def test_a_figure_is_a_sentence_without_its_full_stop():
    assert Finding("x", "It is X.", outcome=HOLDS, value=2.0, n=8).in_brief() == "It is X"


@pytest.mark.parametrize(
    ("value", "plain"),
    [(np.int64(3), 3), (np.float64(1.5), 1.5), (np.bool_(True), True), (2, 2), ("text", "text")],
)
def test_a_value_is_plain_python_whatever_made_it(value, plain):
    made = claims.plain(value, "here")
    assert made == plain and type(made) is type(plain)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.inf, "here: inf is not a value; is there a run behind it?"),
        (np.float64("nan"), "here: nan is not a value; is there a run behind it?"),
        ([1], "here: a value is a number, a text or a bool, not [1]"),
        (None, "here: a value is a number, a text or a bool, not None"),
    ],
)
def test_what_is_no_value_is_refused(value, said):
    with pytest.raises(UsageError) as refused:
        claims.plain(value, "here")
    assert str(refused.value) == said


def test_a_column_of_runs_is_no_value():
    with pytest.raises(UsageError, match=r"^here: a value is a number"):
        claims.plain(pd.Series([1]), "here")
    with pytest.raises(UsageError, match=r"^claim x, wall_s: inf is not a value"):
        claims._of_runs("x", frame("live").assign(wall_s=math.inf), "", "wall_s")


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(1234.5678, 1234.57), (12.3456, 12.35), (1.23456, 1.235), (0.0123456, 0.01235), (0.0, 0.0),
     (-1.23456, -1.235), (12345, 12345), ("text", "text"), (True, True)],
)  # fmt: skip
def test_a_number_in_prose(value, rounded):
    assert claims.rounded(value) == rounded


# ------------------------------------------------------------------------------- what a claim shows


@pytest.fixture
def shown(monkeypatch):
    """What claims show: of each the parts of its sentence, and its record with its kind."""
    claimed = []

    class Shown:
        def __init__(self, **parts):
            self.parts = parts

        def show(self, kind, record):
            claimed.append((self.parts, kind, record))

    monkeypatch.setattr(claims, "Sentence", Shown)
    return claimed


RUNS = pd.DataFrame({
    "source": ["live", "reference"], "stack": ["s0", "s1"], "key": ["k", None],
    "wall_s": [3.0, 4.5], "cpu_s": [0.25, 0.5], "engine": ["asyncio", "threads"],
})  # fmt: skip


def test_a_claim_says_what_it_was_given_and_what_its_runs_have(shown):
    claims.claim("a-lock", "It took {value:.1f} s.", np.float64(2.0), True, unit="s", runs=RUNS)
    parts, kind, record = shown.pop()
    of_runs = {
        "n": 2, "spread": [3.0, 4.5], "source": "reference", "live": True, "stack": "s0, s1",
        "keys": ["k"], "on": "engine asyncio, threads",
    }  # fmt: skip
    assert kind == CLAIM and record == {
        "id": "a-lock", "statement": "It took 2.0 s.", "value": 2.0, "unit": "s",
        "interval": None, "window": None, "decided": None, "correlation": None, "outcome": HOLDS,
        "because": "", "attempts": [], "chapter": "", "holds": True, **of_runs,
    }  # fmt: skip
    assert parts == {
        "kind": "claim", "id": "a-lock", "text": "It took 2.0 s.", "sign": "✓", "outcome": "holds",
        "origin": "partly recorded", "details": "1 of 2 runs recorded on another machine",
        "remark": "",
    }  # fmt: skip
    claims.claim("a-lock", "{value}", 2.0, True, runs=RUNS[1:])
    parts, _, record = shown.pop()
    assert (parts["origin"], record["live"]) == ("recorded", False)
    assert parts["details"] == "1 of 1 runs recorded on another machine"


def test_a_claim_may_name_its_stack_its_column_and_what_it_was_measured_on(shown):
    claims.claim("a-lock", "{value}", 2, True, runs=RUNS, column="cpu_s", stack="own", on="Go 1.22")
    _, _, record = shown.pop()
    assert (record["stack"], record["spread"]) == ("own", [0.25, 0.5])
    assert record["on"] == "Go 1.22; engine asyncio, threads"


def test_a_claim_without_runs_is_measured_here(shown):
    claims.claim("a-lock", "It is {value}, {value:.1f}.", 9.5712345, True)
    parts, _, record = shown.pop()
    assert record["statement"] == "It is 9.571, 9.6."  # rounded in prose, or as it says
    assert (record["unit"], record["stack"], record["on"], record["n"]) == ("", "", "", 0)
    assert (parts["origin"], parts["details"]) == ("live", "measured here")


def test_what_cannot_be_measured_here_says_why_and_nothing_of_a_measurement(shown):
    claims.claim("a-lock", "It is {value:.1f}, {value}.", None, not_here="it has no Python 2.7")
    parts, _, record = shown.pop()
    assert (record["outcome"], record["because"]) == (NOT_HERE, "it has no Python 2.7")
    assert (record["value"], record["statement"]) == (None, "It is …, ….")
    assert (parts["origin"], parts["details"]) == ("", "")
    assert parts["remark"] == f"Not on {words.machine()}: it has no Python 2.7."
    # What was measured elsewhere may be told all the same, and is plain Python.
    claims.claim("a-lock", "It is {value}.", np.float64(1.5), not_here="it has no Python 2.7")
    assert type(shown.pop()[2]["value"]) is float


def test_what_is_undecided_shows_the_rounds_that_left_it_open(shown):
    claims.claim("a-clock", "It is {value:.0f}.", decision(), also=[decision(UNDECIDED, 5.0, 0.75)])
    parts, _, record = shown.pop()
    rounds = {"value": 5.0, "n": 8, "interval": [4.0, 6.0], "window": "above 0.5"}
    assert (record["decided"], record["correlation"]) == (rounds, 0.75)
    found = "of what it rests on, one figure is 5, 4 to 6 in 8 rounds, asked: above 0.5"
    assert parts["details"] == f"measured here; {found}"
    assert parts["remark"].startswith(f"Undecided here: {found}. A quieter machine")
    assert (parts["sign"], parts["outcome"]) == ("?", UNDECIDED)


@pytest.mark.parametrize(
    ("statement", "value", "low", "high", "window", "text"),
    [
        ("It is {value}.", 9.0, 8.1234, 12.0, Window(low=1), "It is 9.0 (8.12 to 12)."),
        ("It is {value:.1f}.", 9.0, 8.1234, 12.0, Window(low=1), "It is 9.0 (8.1 to 12.0)."),
        (
            "It is {value}.",
            1.5e-7,
            1e-7,
            2e-7,
            Window(high=1e-6),
            "It is 1.5e-07 (1e-07 to 2e-07).",
        ),
    ],
)
def test_the_interval_has_the_format_of_its_number(
    statement, value, low, high, window, text, shown
):
    claims.claim("a-clock", statement, decision(HOLDS, value, low=low, high=high, window=window))
    assert shown.pop()[2]["statement"] == text


@pytest.mark.parametrize(
    ("value", "because", "glued"),
    [(2.0625, "", "2.0625"), ("serial", "", "'serial'"),
     (None, "no Python", "'no Python'"), (None, "", "'not here'")],
)  # fmt: skip
def test_prose_quotes_the_value_or_why_there_is_none(value, because, glued, monkeypatch):
    shown = []
    finding = Finding("a-lock", "It is.", outcome=NOT_HERE, value=value, because=because)
    monkeypatch.setattr(claims, "display", lambda *what, **how: shown.append((what, how)))
    monkeypatch.setattr(claims, "get_ipython", lambda: None)
    claims._glue(finding)
    assert shown == []  # no notebook, no prose
    monkeypatch.setattr(claims, "get_ipython", object)
    claims._glue(finding)
    prefix = "application/papermill.record/"
    scrapbook = {"name": "a-lock", "mime_prefix": prefix}
    assert shown == [
        (({f"{prefix}text/plain": glued},), {"raw": True, "metadata": {"scrapbook": scrapbook}})
    ]


@pytest.mark.parametrize(
    ("statement", "runs", "said"),
    [
        ("It is {value:.1f} {x}.", RUNS, "claim a-lock: 'It is {value:.1f} {x}.' cannot take 2.0"),
        ("{value}", RUNS.assign(wall_s=math.inf), "claim a-lock, wall_s: inf is not a value"),
    ],
)
def test_a_claim_that_cannot_be_made_says_which_it_is(statement, runs, said, shown):
    with pytest.raises(UsageError) as refused:
        claims.claim("a-lock", statement, 2.0, True, runs=runs)
    assert str(refused.value).startswith(said) and shown == []


def test_a_record_is_read_as_it_was_written():
    attempts = [Attempt(OTHERWISE, 0.3, [-0.7, 1.3], 8), Attempt(NOT_HERE, 2.0, None, 16)]
    decided = Rounds(5.0, 8, [4.0, 6.0], "above 0.5")
    finding = Finding("x", "It is.", outcome=NOT_HERE, attempts=attempts, decided=decided)
    record = json.loads(json.dumps(finding.as_json()))
    assert record["holds"] == "not here"
    assert Finding.from_json(record) == finding
    least = {"id": "x", "statement": "It is.", "outcome": UNDECIDED}
    assert Finding.from_json(least) == Finding("x", "It is.", outcome=UNDECIDED)
    with pytest.raises(TypeError, match="outcome"):  # and does not hold by default
        Finding.from_json({"id": "x", "statement": "It is."})


# ------------------------------------------------------------------------------ the ledger, clocks


def test_what_the_findings_on_clocks_are_worth_together():
    def finding(correlation: float | None, window: str | None = "below 1") -> Finding:
        return Finding("x", "It is.", outcome=HOLDS, window=window, correlation=correlation, n=8)

    correlations = (0.1, 0.6, 0.5, None, 0.9)
    text = ledger._of_clocks([*map(finding, correlations), finding(0.99, None)])
    assert "Decided on a clock: 5 of them." in text
    assert "0.25 of these might be on the wrong side" in text  # 5 at 5 %
    # Independent rounds would show -1/8: of 0.1, 0.6, 0.5 and 0.9 three lie further than 0.5 above.
    assert "in the median finding by 0.55, where independent rounds would show -0.12" in text
    assert "in 3 by more than 0.5 beyond that" in text
    assert ledger._of_clocks([finding(0.9, None)]) == ""
    assert ledger._correlation(-0.001) == "0.00" and ledger._correlation(-0.126) == "-0.13"


def test_how_many_came_out_how():
    outcomes = [HOLDS] * 3 + [UNDECIDED] + [OTHERWISE] * 2 + [NOT_HERE]
    assert ledger.came_out(outcomes) == (
        "3 hold, 1 is undecided, 2 came out otherwise, 1 cannot be measured here"
    )
    assert ledger.came_out([HOLDS]) == "1 holds" and ledger.came_out([]) == ""


def test_the_ledger_has_both_attempts_and_no_value_that_is_not_known():
    attempts = [Attempt(OTHERWISE, None, None, 8), Attempt(HOLDS, 2.0, [1.0, 3.0], 16)]
    finding = Finding("a-lock", "It is.", outcome=HOLDS, attempts=attempts)
    shown = "**holds**<br>attempt 1: otherwise<br>attempt 2: holds, 2"
    assert ledger._outcome(finding) == shown


def test_a_row_of_the_ledger_leads_to_the_sentence_and_the_sentence_to_the_row():
    finding = Finding("a-lock", "It is.", value=2.0, outcome=HOLDS, chapter="11_the_lock")
    page = ledger.claims_page([finding])
    assert '<a href="../notebooks/11_the_lock.html#claim-a-lock">11 the lock</a>' in page
    assert '<span id="claim-a-lock"></span>' in page
    compared = published.Comparison("talk-1", "3 s", "4 s", "differs", "", "live", "02_all")
    page = ledger.published_page({}, [compared])
    assert '<a href="../notebooks/02_all.html#published-talk-1">02 all</a>' in page
    assert '<span id="published-talk-1"></span>' in page
    for kind, ledgers in (("claim", "claims"), ("published", "published")):
        html = Sentence(kind, "a-lock", "It is.", "✓", HOLDS, "", "").html
        assert f'id="{kind}-a-lock"' in html
        assert f'href="../book/{ledgers}.md"' in html  # in a notebook; a page has the anchor, too


# ------------------------------------------------------------------------- the published comparison


def row(value: str, n: str = "10", unit: str = "s", source: str = "001_talk.txt") -> pd.Series:
    number = pd.to_numeric(value, errors="coerce")
    return pd.Series({"id": "x", "value": value, "number": number, "n": n, "unit": unit,
                      "source": source})  # fmt: skip


SAME, DIFFERS = published.REPRODUCED, published.DIFFERS
NOT, NOTHING = published.NOT_REPRODUCED, published.NOT_MEASURED


@pytest.mark.parametrize(
    ("theirs", "measured", "delay_s", "finding", "delays", "outcome"),
    [
        (row("10.0"), None, 1.0, None, 0, NOTHING),
        # In delays: 10 there. Within a quarter of it, both ends included.
        (row("10.0"), 12.5, 1.0, None, 0, SAME),
        (row("10.0"), 7.5, 1.0, None, 0, SAME),
        (row("10.0"), 1.25, 0.1, None, 0, SAME),
        # Ten pages in 12.6 delays: another number, and serial as well. In 7.4, 1.35 at a time, the
        # clock tells neither.
        (row("10.0"), 12.6, 1.0, None, 0, DIFFERS),
        (row("10.0"), 7.4, 1.0, None, 0, NOT),
        (row("10.0"), 1.0, 1.0, None, 0, NOT),
        (row("1.0"), 10.0, 1.0, None, 0, NOT),
        # What the chapter says of the finding goes first.
        (row("10.0"), 12.6, 1.0, False, 0, NOT),
        (row("10.0"), 1.0, 1.0, True, 0, DIFFERS),
        (row("10.0"), 10.0, 1.0, False, 0, SAME),
        # How many pages is not known: nothing tells serial from concurrent.
        (row("10.0", n=""), 12.6, 1.0, None, 0, NOT),
        (row("10.0", n="3-10"), 12.6, 1.0, None, 0, NOT),
        # A source that waited for nothing.
        (row("10.0", source="002_threads.txt"), 12.6, 1.0, None, 0, NOT),
        (row("10.0", source="002_threads.txt"), 12.6, 1.0, True, 0, DIFFERS),
        # Beside ten delays: 2 s there, and 2.4 or 3 s here.
        (row("12.0"), 12.4, 1.0, None, 10, SAME),
        (row("12.0"), 13.0, 1.0, True, 10, DIFFERS),
        (row("12.0"), 3.4, 0.1, None, 10, SAME),
        # Without a delay here.
        (row("10.0"), 10.0, 0.0, None, 0, NOTHING),
        (row("10.0"), 10.0, 0.0, True, 0, DIFFERS),
        (row("10.0"), 10.0, 0.0, False, 0, NOT),
        (row("12.0"), 2.2, 0.0, None, 10, SAME),
        (row("12.0"), 9.0, 0.0, None, 10, NOT),
        (row("12.0"), 9.0, 0.0, True, 10, DIFFERS),
        # Words, ranges and percents are compared as they are.
        (row("slow", unit=""), "serial", 1.0, None, 0, SAME),
        (row("slow", unit=""), "concurrent", 1.0, None, 0, NOT),
        (row("10.0"), "serial", 1.0, None, 0, NOT),
        (row("20-25"), 22.0, 1.0, None, 0, SAME),
        (row("20-25", unit="ms"), 31.25, 1.0, None, 0, SAME),
        (row("20-25", unit="ms"), 31.3, 1.0, None, 0, NOT),
        (row("20-25", unit="ms"), 15.0, 1.0, None, 0, SAME),
        (row("20-25", unit="ms"), 14.9, 1.0, None, 0, NOT),
        (row(">100%", unit=""), 100.0, 1.0, None, 0, NOT),
        (row(">100%", unit=""), 100.1, 1.0, None, 0, SAME),
        (row("80", unit="%"), 200.0, 1.0, None, 0, NOT),
        (row("80", unit="%"), 200.0, 1.0, True, 0, DIFFERS),
        (row("80", unit="%"), 100.0, 1.0, False, 0, SAME),
    ],
)
def test_a_published_number_and_ours(theirs, measured, delay_s, finding, delays, outcome):
    assert published._outcome(theirs, measured, delay_s, finding, delays) == outcome


def test_the_seconds_beside_the_delays():
    assert published._without_delays(row("12.0"), 3.4, 0.1, 10) == pytest.approx((2.0, 2.4))


def test_ours_in_its_unit_and_in_delays():
    assert published._text(1.12, row("11.0"), 0.1) == "1.12 s at a delay of 0.1 s (11.2 delays)"
    assert published._text(1.12, row("11.0"), 1.0) == "1.12 s"
    assert published._text(1.12, row("11.0"), 0.0) == "1.12 s without a delay"
    assert published._text(71.0, row("80", unit="%"), 0.1) == "71.0%"
    assert published._text(340.0, row(">100%", unit=""), 0.1) == "340%"
    assert published._text("serial", row("slow", unit=""), 0.1) == "serial"
    assert published._text(None, row("11.0"), 0.1) == ""


def test_the_delay_behind_a_comparison():
    assert published._delay_s(None) == 1.0
    assert published._delay_s(pd.DataFrame({"delay_s": [0.1, 0.1]})) == 0.1
    with pytest.raises(UsageError, match="the same delay"):
        published._delay_s(pd.DataFrame({"delay_s": [0.1, 0.2]}))


def test_why_something_differs_is_said_where_it_must_be():
    assert published._explained(row("1"), SAME, "") == ""
    assert published._explained(row("1"), NOT, "") == published.UNEXPLAINED
    assert published._explained(row("1"), NOT, "Another kernel.") == "Another kernel."
    with pytest.raises(UsageError, match="Say why in one sentence"):
        published._explained(row("1"), NOTHING, "")
    with pytest.raises(UsageError, match="is none of"):
        published._explained(row("1"), "perhaps", "why")


# ------------------------------------------------------------------------- machines side by side


@pytest.mark.parametrize(
    ("outcomes", "rank"),
    [
        ([HOLDS, OTHERWISE], side_by_side.OPPOSED),
        ([HOLDS, OTHERWISE, UNDECIDED], side_by_side.OPPOSED),
        ([HOLDS, UNDECIDED], side_by_side.DECIDED_ON_ONE),
        ([OTHERWISE, UNDECIDED], side_by_side.DECIDED_ON_ONE),
        ([UNDECIDED, NOT_HERE], side_by_side.NOT_ON_ALL),
        ([HOLDS, NOT_HERE], side_by_side.NOT_ON_ALL),
        ([OTHERWISE, NOT_HERE], side_by_side.NOT_ON_ALL),
        ([HOLDS, HOLDS], side_by_side.ALIKE),
        ([UNDECIDED], side_by_side.ALIKE),
        ([], side_by_side.ALIKE),
    ],
)
def test_how_a_difference_ranks(outcomes, rank):
    assert side_by_side._rank(outcomes) == rank


def test_only_findings_of_several_machines_are_counted():
    def machine(**outcomes: str) -> Machine:
        return Machine("m", {}, [], {id: {"id": id, "outcome": o} for id, o in outcomes.items()})

    both = [machine(a=HOLDS, b=HOLDS, c=HOLDS), machine(a=HOLDS, b=OTHERWISE)]
    assert side_by_side.how_many(side_by_side.findings(both)) == (
        "Of 2 findings that several machines have, 1 came out differently."
    )
    # Two of three are several.
    three = [*both, machine(b=HOLDS, c=OTHERWISE)]
    assert side_by_side.how_many(side_by_side.findings(three)) == (
        "Of 3 findings that several machines have, 2 came out differently."
    )


def test_where_nothing_can_be_told_there_is_no_verdict():
    """A single request, or no delay to speak of, is serial and concurrent alike."""
    rows = [
        ("told", 1, 1.0, "between"), ("told", 10, 1.0, "serial"),
        ("one request", 1, 1.0, "between"), ("short", 10, 0.04, "between"),
        ("just long enough", 2, 0.05, "concurrent"),
    ]  # fmt: skip
    runs = pd.DataFrame(rows, columns=["stack", "n", "delay_s", "verdict"])
    runs = runs.assign(client="grequests", scheme="https", effective_concurrency=1.0)
    assert {way[0]: verdict for way, verdict in side_by_side._verdicts(runs).items()} == {
        "told": "serial", "just long enough": "concurrent"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("unit_ms", "is_unsteady"),
    [([1.0, 1.2, 1.5], True), ([1.0, 1.2, 1.49], False), ([0, 1, 2], False), ([1, 2], False),
     ([], False), ([2.0, 2.5, 2.9], False)],
)  # fmt: skip
def test_a_machine_whose_speed_varied_much(unit_ms, is_unsteady):
    machine = Machine("m", {"unit_ms": unit_ms}, [])
    assert bool(side_by_side.unsteady([machine])) is is_unsteady


@pytest.mark.parametrize(
    ("count", "total", "words_for_it"),
    [
        (2, 2, "both Pythons"),
        (1, 2, "one of the two Pythons"),
        (0, 2, "neither of the two Pythons"),
        (8, 8, "all eight Pythons"),
        (5, 30, "five of the 30 Pythons"),
        (0, 13, "none of the 13 Pythons"),
        (1, 1, "one of the one Pythons"),
    ],
)
def test_a_count_is_said_as_a_person_says_it(count, total, words_for_it):
    assert words.out_of(count, total, "Pythons") == words_for_it
