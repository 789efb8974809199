"""Claims: shown, recorded, glued, checked. The notebook is executed by a real kernel."""

import json
import os

import nbformat
import numpy as np
import pandas as pd
import pytest
from myst_nb.core.variables import format_plain_text
from myst_nb.ext.glue import extract_glue_data_cell
from nbclient import NotebookClient

from casebook import claims, media, places
from casebook.errors import ClaimReversed, UsageError

DATA = {
    "stack": ["stage-2-py27", "stage-2-py27", "stage-1-py27"],
    "wall_s": [10.2, 10.4, 1.2],
    "source": ["live", "live", "reference"],
}

CELLS = [
    "from casebook.claims import claim\nfrom casebook.published import compare\n"
    f"import numpy as np, pandas as pd\nRUNS = pd.DataFrame({DATA})",
    'claim("slower", "It takes {value:.1f} times as long.", np.float64(9.5712345), True,\n'
    '      runs=RUNS)\nclaim("verdict", "Stage 2 is {value}.", "serial", np.bool_(True))',
    'claim("bundle", "A load takes {value:.1f} ms.", None, False, unit="ms",\n'
    '      not_here="the system has no default bundle")',
    'claim("recorded", "It took {value} s.", 1.2, False, runs=RUNS[RUNS["source"] != "live"])',
    'claim("slower", "It takes {value:.1f} times as long.", 9.57, True)',
    'claim("slower", "It takes something else.", 9.57, True)',
    'claim("twice", "{value}", 1, True)\nclaim("twice", "{value}", 1, True)',
    'claim("reversed", "Stage 2 is faster: {value:.2f} s.", 10.4, RUNS["wall_s"].max() < 1,\n'
    '      unit="s", runs=RUNS)',
    'compare("talk-serial-3", 3.1)',
]


@pytest.fixture(scope="module")
def cells():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    environ = os.environ | {"CASEBOOK_CHAPTER": "02_all_at_once"}
    client = NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True)
    client.execute(env=environ, cwd=str(places.ROOT))
    return notebook.cells


def records(cell) -> list[dict]:
    return [
        output["data"][media.CLAIM]
        for output in cell.outputs
        if media.CLAIM in output.get("data", {})
    ]


def error(cell) -> str:
    return next((o["evalue"] for o in cell.outputs if o["output_type"] == "error"), "")


def test_a_claim_leaves_a_complete_record(cells):
    slower, verdict = records(cells[1])
    assert slower == {
        "id": "slower",
        "statement": "It takes 9.6 times as long.",
        "value": 9.5712345,
        "unit": "",
        "n": 3,
        "spread": [1.2, 10.4],
        "holds": True,
        "because": "",
        "source": "reference",  # a part of it was not measured here
        "stack": "stage-2-py27, stage-1-py27",
        "chapter": "02_all_at_once",
    }
    assert verdict["value"] == "serial" and verdict["holds"] is True
    assert verdict["source"] == "live" and verdict["n"] == 0 and verdict["spread"] is None
    assert json.loads(json.dumps(slower)) == slower


def test_a_claim_is_shown_as_one_sentence(cells):
    shown = cells[1].outputs[0]["data"]
    assert "<strong>Claim</strong> <code>slower</code> · It takes 9.6 times" in shown["text/html"]
    assert "1 of 3 runs from the reference machine, not measured now" in shown["text/html"]
    assert 'id="claim-slower"' in shown["text/html"]
    assert shown["text/plain"].startswith("Claim slower · It takes 9.6 times as long. · holds")


def test_a_claim_glues_its_value_for_prose(cells):
    glued = dict(extract_glue_data_cell(cells[1]))
    assert set(glued) == {"slower", "verdict"}
    text = glued["slower"]["data"]["text/plain"]
    assert format_plain_text(text, "s") == "9.571"
    assert format_plain_text(text, ".2f") == "9.57"
    assert format_plain_text(glued["verdict"]["data"]["text/plain"], "s") == "serial"


def test_what_this_machine_cannot_decide_says_why(cells):
    (record,) = records(cells[2])
    assert record["holds"] == "not here" and record["value"] is None
    assert record["because"] == "the system has no default bundle"
    assert record["statement"] == "A load takes … ms."
    assert not error(cells[2])


def test_a_recorded_claim_says_so_and_stops_nothing(cells):
    (record,) = records(cells[3])
    assert record["holds"] is False and record["source"] == "reference" and record["n"] == 1
    assert "(from the reference machine, not measured now)" in str(cells[3].outputs)
    assert not error(cells[3])


def test_an_id_is_used_once_but_a_cell_may_run_again(cells):
    assert not error(cells[4])
    assert "claim 'slower' is made twice" in error(cells[5])
    assert "claim 'twice' is made twice" in error(cells[6])


def test_a_reversed_claim_raises_and_names_itself(cells):
    message = error(cells[7])
    assert cells[7].outputs[-1]["ename"] == "ClaimReversed"
    for part in ("reversed", "Stage 2 is faster: 10.40 s.", "(value: 10.4 s)"):
        assert part in message


def test_a_comparison_leaves_its_record_beside_its_sentence(cells):
    (output,) = cells[8].outputs
    record = output["data"][media.COMPARISON]
    assert record["outcome"] == "reproduced" and record["chapter"] == "02_all_at_once"
    assert 'id="published-talk-serial-3"' in output["data"]["text/html"]


def test_a_reversed_claim_fails_the_build():
    bad = nbformat.v4.new_code_cell(
        'from casebook.claims import claim\nclaim("x", "One is {value}.", 2, 2 == 1)'
    )
    notebook = nbformat.v4.new_notebook(cells=[bad])
    with pytest.raises(Exception, match="claim x does not hold on this machine: One is 2"):
        NotebookClient(notebook, timeout=60, kernel_name="python3").execute(cwd=str(places.ROOT))


@pytest.mark.parametrize(
    "value", [float("nan"), np.float64("inf"), None, [1], pd.Series([1.0, 2.0])]
)
def test_what_is_no_value_is_refused(value):
    with pytest.raises(UsageError, match="claim no-value"):
        claims.claim("no-value", "It is {value}.", value, True)


@pytest.mark.parametrize(
    ("value", "made"),
    [(np.int64(3), 3), (np.bool_(True), True), (np.float32(0.5), 0.5), (np.str_("a"), "a")],
)
def test_values_become_plain_python(value, made):
    assert claims.plain(value, "it") == made and type(claims.plain(value, "it")) is type(made)


@pytest.mark.parametrize("id", ["", "Slow", "a b", "a--b", "a_b"])
def test_an_id_is_made_of_small_letters_digits_and_dashes(id):
    with pytest.raises(UsageError, match="small letters"):
        claims.claim(id, "{value}", 1, True)


def test_a_statement_that_does_not_fit_its_value_is_named():
    with pytest.raises(UsageError, match=r"misfit.*cannot take 'serial'"):
        claims.claim("misfit", "It is {value:.1f}.", "serial", True)
    with pytest.raises(UsageError, match="other-name"):
        claims.claim("other-name", "It is {wall}.", 1.0, True)


def test_outside_a_notebook_a_claim_is_a_line_of_text(capsys):
    claims.claim("in-a-terminal", "It took {value:.1f} s.", 1.25, True, unit="s")
    assert capsys.readouterr().out == "Claim in-a-terminal · It took 1.2 s. · holds\n"
    with pytest.raises(ClaimReversed):
        claims.claim("in-a-terminal-too", "It took {value:.1f} s.", 1.25, False)
    assert "does not hold" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "said"),
    [(10.04812, 10.05), (9.5712345, 9.571), (123.456, 123.46), (0.00412345, 0.004123)],
)
def test_prose_gets_four_digits_and_at_least_two_decimals(value, said):
    assert claims.rounded(value) == said
