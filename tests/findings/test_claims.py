"""Claims: shown, recorded, glued, checked. The notebook is executed by a real kernel."""

import json
import re
import tempfile
from dataclasses import replace

import nbformat
import numpy as np
import pandas as pd
import pytest
from jupyter_client.manager import AsyncKernelManager
from myst_nb.core.variables import format_plain_text
from myst_nb.ext.glue import extract_glue_data_cell
from nbclient import NotebookClient

from casebook import places
from casebook.errors import UsageError
from casebook.findings import claims, media, sentences
from casebook.findings.finding import Finding, Rounds
from casebook.laboratory.decisions import Window, decide

DATA = {
    "stack": ["stage-2-py27", "stage-2-py27", "stage-1-py27"],
    "wall_s": [10.2, 10.4, 1.2],
    "source": ["live", "live", "reference"],
    "key": ["k1", "k2", None],
}

CELLS = [
    "from casebook import claim\nfrom casebook.findings.published import compare\n"
    f"import numpy as np, pandas as pd\nRUNS = pd.DataFrame({DATA})",
    'claim("slower", "It takes {value:.1f} times as long.", np.float64(9.5712345), True,\n'
    '      runs=RUNS)\nclaim("verdict", "Stage 2 is {value}.", "serial", np.bool_(True))',
    'claim("bundle", "A load takes {value:.1f} ms.", None, False, unit="ms",\n'
    '      not_here="the system has no default bundle")',
    'claim("recorded", "It took {value} s.", 1.2, False, runs=RUNS[RUNS["source"] != "live"])',
    'claim("reversed", "Stage 2 is faster: {value:.2f} s.", 10.4, RUNS["wall_s"].max() < 1,\n'
    '      unit="s", runs=RUNS)',
    'compare("talk-serial-3", 3.1)',
    "from casebook.laboratory.decisions import Window, decide\n"
    "above = Window(low=1.1)\nclear, noisy = [1.2, 1.3] * 4, [1.0, 1.3] * 4\n"
    'claim("clear", "It is {value:.2f} times.", decide(clear, above), unit="times", runs=RUNS)\n'
    'claim("noisy", "It is {value:.2f} times.", decide(noisy, above))\n'
    'claim("counted-too", "It is {value:.2f} times.", decide(clear, above), holds=False)\n'
    'claim("both", "It is {value:.2f}.", decide(clear, above), also=[decide(noisy, above)])\n'
    'claim("few", "It is {value:.2f} times.", decide(clear[:7], above))',
]


@pytest.fixture(scope="module")
def cells():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    # No ports: between choosing and using one, another program may take it.
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        kernel = AsyncKernelManager(transport="ipc", connection_file=f"{folder}/kernel.json")
        NotebookClient(notebook, km=kernel, timeout=60).execute(cwd=str(places.ROOT))
    return notebook.cells


def records(cell) -> list[dict]:
    return list(media.records({"cells": [cell]}, media.CLAIM))


def test_a_claim_leaves_a_complete_record(cells):
    slower, verdict = records(cells[1])
    # A part of it was not measured here.
    assert slower == {
        "id": "slower", "statement": "It takes 9.6 times as long.", "value": 9.5712345, "unit": "",
        "n": 3, "spread": [1.2, 10.4], "interval": None, "window": None, "decided": None,
        "correlation": None, "outcome": "holds",
        "holds": True, "because": "", "live": True, "keys": ["k1", "k2"], "attempts": [],
        "source": "reference", "stack": "stage-2-py27, stage-1-py27", "on": "", "chapter": "",
    }  # fmt: skip
    assert verdict["value"] == "serial" and verdict["holds"] is True
    assert verdict["source"] == "live" and verdict["n"] == 0 and verdict["spread"] is None
    assert Finding.from_json(json.loads(json.dumps(slower))).as_json() == slower


def test_each_field_of_a_finding_goes_into_a_record_and_comes_back(cells):
    for record in (record for cell in cells for record in records(cell)):
        assert Finding.from_json(record).as_json() == record
    clear, *_, both, _ = map(Finding.from_json, records(cells[6]))
    assert both.decided == Rounds(1.15, 8, [1.0, 1.3], "above 1.1") and clear.decided is None


def test_a_claim_is_a_sentence_with_a_mark_at_its_end(cells):
    shown = cells[1].outputs[0]["data"]
    assert '<p class="cb cb-finding cb-yes" id="claim-slower"' in shown["text/html"]
    assert ">It takes 9.6 times as long. <a " in shown["text/html"]
    assert said(shown) == "It takes 9.6 times as long. ✓ holds, partly recorded"
    assert "1 of 3 runs recorded on another machine" in shown["text/html"]
    assert shown["text/plain"] == (
        "It takes 9.6 times as long. [✓ holds, partly recorded; claim slower]"
    )


def said(shown: dict) -> str:
    """What a finding's paragraph says, without its looks."""
    return re.sub(r"<[^>]+>", "", re.sub(r"<style>.*?</style>", "", shown["text/html"]))


def test_the_mark_leads_to_the_ledger_and_in_a_notebook_to_what_it_means(monkeypatch):
    mark = sentences.Sentence("claim", "x", "It `is`.", "✓", "holds", "live", "measured here")
    monkeypatch.delenv("CASEBOOK_BUILD", raising=False)
    assert 'href="../book/claims.md"' in mark.html and "<code>is</code>" in mark.html
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    assert 'href="../book/claims.html#claim-x"' in mark.html


def test_a_claim_glues_its_value_for_prose(cells):
    glued = dict(extract_glue_data_cell(cells[1]))
    assert set(glued) == {"slower", "verdict"}
    text = glued["slower"]["data"]["text/plain"]
    assert float(text) == 9.5712345  # unrounded, so that its format does not round a second time
    assert format_plain_text(text, ".2f") == "9.57"
    assert format_plain_text(glued["verdict"]["data"]["text/plain"], "s") == "serial"


def test_what_this_machine_cannot_decide_says_why(cells):
    (record,) = records(cells[2])
    assert record["holds"] == "not here" and record["outcome"] == "not-here"
    assert record["value"] is None
    assert record["because"] == "the system has no default bundle"
    assert record["statement"] == "A load takes … ms."
    assert said(cells[2].outputs[0]["data"]) == (
        "A load takes … ms. – not here Not on this machine: the system has no default bundle."
    )


@pytest.mark.parametrize(
    ("cell", "live", "origin"), [(3, False, "recorded"), (4, True, "partly recorded")]
)
def test_what_came_out_otherwise_raises_nothing_and_says_so(cells, cell, live, origin):
    (record,) = records(cells[cell])
    assert (record["outcome"], record["holds"], record["live"]) == ("otherwise", False, live)
    assert record["source"] == "reference"
    shown = cells[cell].outputs[0]["data"]
    assert f". ✗ otherwise, {origin} It came out otherwise here" in said(shown)
    assert "cb-no" in shown["text/html"]


def test_a_finding_on_a_clock_is_decided_by_its_interval(cells):
    clear, noisy, counted_too, both, few = records(cells[6])
    assert clear["outcome"] == "holds" and clear["holds"] is True
    assert clear["interval"] == [1.2, 1.3] and clear["window"] == "above 1.1" and clear["n"] == 8
    assert noisy["outcome"] == "undecided" and noisy["holds"] is None
    assert counted_too["outcome"] == "otherwise"  # a count is no noise
    assert both["outcome"] == "undecided"  # as its worst part
    assert clear["correlation"] == pytest.approx(-7 / 8)  # every second round is the dearer one
    # Its own interval lies in its window: what is shown is the one that decided.
    assert both["interval"] == [1.2, 1.3] and both["decided"]["interval"] == [1.0, 1.3]
    assert few["outcome"] == "undecided" and few["interval"] is None
    shown = [each["data"] for each in cells[6].outputs if "text/plain" in each.get("data", {})]
    assert 'machine; 1.2 to 1.3 in 8 rounds, asked: above 1.1"' in shown[0]["text/html"]
    assert said(shown[0]) == "It is 1.25 times. ✓ holds, partly recorded"
    assert "Undecided here: 1 to 1.3 in 8 rounds, asked: above 1.1. A " in said(shown[1])
    assert "looks=(64,)" in said(shown[1])
    assert "here: what was counted beside the clock is not as it was asked." in said(shown[2])
    of_both = (
        "here: of what it rests on, one figure is 1.15, 1 to 1.3 in 8 rounds, asked: above 1.1."
    )
    assert of_both in said(shown[3]) and "1.2 to 1.3 in" not in said(shown[3])
    assert "7 rounds are too few to say" in said(shown[-1])


@pytest.mark.parametrize(
    ("values", "window", "shown"),
    [
        ([20, 30], Window(low=1), "It is 25.0 (20.0 to 30.0) times."),
        ([1.9, 2.3], Window(low=1), "It is 2.1 times."),  # the window says nearly as much
        ([0.02, 0.04], Window(high=0.1), "It is 0.0 times."),  # as the number does
        ([2, 3], Window(0, 9), "It is 2.5 times."),  # two ends say how large it may be
        ([2, 30], Window(low=5), "It is 16.0 times."),  # undecided: the remark has it
    ],
)
def test_a_sentence_gives_the_interval_where_the_window_says_little(values, window, shown, capsys):
    claims.claim("on-a-clock", "It is {value:.1f} times.", decide(values * 4, window))
    assert capsys.readouterr().out.startswith(shown + " [")


@pytest.mark.parametrize("beside", [False, True])
def test_a_second_attempt_among_the_rounds_shows_both(beside, monkeypatch):
    """Where the rounds were taken, and without executing anything twice."""

    def recorded(value, also=()):
        claims.claim("on-a-clock", "{value:.1f} times.", value, also=also)
        return shown.pop()

    shown: list[dict] = []
    monkeypatch.setattr(claims, "_show", lambda finding, _: shown.append(finding.as_json()))
    window = Window(low=1.1)
    first, second = decide([0.8, 0.9] * 4, window), decide([1.2, 1.3] * 8, window)
    decision = replace(second, first=first)
    value, also = (second, (decision,)) if beside else (decision, ())
    record = recorded(value, also)
    assert record["outcome"] == "holds" and record["n"] == 16
    assert [each["outcome"] for each in record["attempts"]] == ["otherwise", "holds"]
    assert [each["n"] for each in record["attempts"]] == [8, 16]
    # What the first rounds of another decision showed says nothing of this value.
    own = None if beside else pytest.approx(0.85)
    assert [each["value"] for each in record["attempts"]] == [own, 1.25]
    assert record["attempts"][0]["interval"] == (None if beside else [0.8, 0.9])
    assert recorded(second)["attempts"] == []
    # What is undecided stays so, and says that it was tried twice.
    open_ = replace(decide([1.0, 1.3] * 8, window), first=first)
    assert recorded(open_)["outcome"] == "undecided"


def test_a_comparison_leaves_its_record_beside_its_sentence(cells):
    (output,) = cells[5].outputs
    assert output["data"][media.COMPARISON] == {
        "id": "talk-serial-3", "published": "3.30 s", "measured_text": "3.10 s",
        "outcome": "reproduced", "why": "", "source": "live", "chapter": "",
    }  # fmt: skip
    row = '<p class="cb cb-finding cb-yes cb-row cb-quiet" id="published-talk-serial-3"'
    assert row in output["data"]["text/html"]
    assert said(output["data"]).endswith("published 3.30 s, here 3.10 s ✓ reproduced, live")


@pytest.mark.parametrize("id", ["", "Slow", "a b", "a--b", "a_b"])
def test_an_id_is_made_of_small_letters_digits_and_dashes(id):
    with pytest.raises(UsageError, match="small letters"):
        claims.claim(id, "{value}", 1, True)


@pytest.mark.parametrize(
    ("statement", "value", "holds", "why"),
    [
        ("It is {value}.", 2, None, "say with holds= what has to be true"),
        ("It is {value:.1f}.", "serial", True, "cannot take 'serial'"),
        ("It is {wall}.", 1.0, True, "cannot take 1.0"),
        *(
            ("It is {value}.", value, True, "claim refused: ")
            for value in (float("nan"), np.float64("inf"), None, [1], pd.Series([1.0, 2.0]))
        ),
    ],
)
def test_what_is_no_finding_is_refused(statement, value, holds, why):
    with pytest.raises(UsageError, match=why):
        claims.claim("refused", statement, value, holds)


@pytest.mark.parametrize(
    ("value", "made"),
    [(np.int64(3), 3), (np.bool_(True), True), (np.float32(0.5), 0.5), (np.str_("a"), "a")],
)
def test_values_become_plain_python(value, made):
    assert claims.plain(value, "it") == made and type(claims.plain(value, "it")) is type(made)


@pytest.mark.parametrize(
    ("value", "said"),
    [(10.04812, 10.05), (9.5712345, 9.571), (123.456, 123.46), (0.00412345, 0.004123)],
)
def test_prose_gets_four_digits_and_at_least_two_decimals(value, said):
    assert claims.rounded(value) == said
