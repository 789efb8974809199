"""When the doctor is called right, from reports that are written down here: nothing is examined."""

import re

import nbformat
import pandas as pd
import pytest

from casebook import places
from casebook.cases import patients
from casebook.cases.patients import working


def row_of(monkeypatch, question, said, found=None, counters=None):
    """A job's row, of which the doctor said this, and that came to that without it."""
    report = {
        "verdicts": {question: said}, "counts": {"loads": 9, "handshakes": 8, "share": 7.5},
        "exit_status": 1,
    }  # fmt: skip
    found = {"loads": 1, "peak": 5, "alive": 1} | (found or {})
    counters = {"peak_in_flight": 5, "handshakes": 6} | (counters or {})

    def run(job, examined, *_):
        return (report, {}) if examined else (found, counters)

    monkeypatch.setattr(working, "_run", run)
    job = next(each for each in working.JOBS if each.question == question)
    return working._measure_row(job)


@pytest.mark.parametrize(
    ("question", "said", "found", "counters", "measured", "wrong"),
    [
        (working.LOADS, "repeated", {"loads": 4}, {}, "repeated", ""),
        (working.LOADS, "repeated", {"loads": 3}, {}, "not repeated", "false alarm"),
        (working.LOADS, "not repeated", {"loads": 4}, {}, "repeated", "miss"),
        (working.LOADS, "nothing seen", {"loads": 4}, {}, "repeated", ""),  # it cannot tell
        (working.LOOP, "blocked", {}, {"peak_in_flight": 1}, "blocked", ""),
        (working.LOOP, "free", {}, {"peak_in_flight": 1}, "blocked", "miss"),
        (working.LOOP, "blocked", {"loads": 9}, {}, "free", "false alarm"),
        (working.LOOP, "does not apply", {}, {}, "free", ""),
        (working.HANDSHAKES, "one at a time", {"peak": 1}, {}, "one at a time", ""),
        (working.HANDSHAKES, "at once", {"peak": 2, "loads": 9}, {}, "at once", ""),
        (working.CONTEXTS, "few", {"alive": 4}, {}, "one for each client", "miss"),
        (working.CONTEXTS, "few", {"alive": 3, "loads": 9}, {}, "few", ""),
    ],
)
def test_a_verdict_is_wrong_where_what_was_measured_says_otherwise(
    monkeypatch, question, said, found, counters, measured, wrong
):
    row = row_of(monkeypatch, question, said, found, counters)
    assert (row["measured"], row["wrong"]) == (measured, wrong)
    unusual = {"nothing seen": "cannot tell", "does not apply": working.VERDICTS[question][1]}
    assert row["doctor"] == unusual.get(said, said)


def test_a_job_is_told_with_the_doctors_counts_and_with_those_of_another_run(monkeypatch):
    row = row_of(monkeypatch, working.LOADS, "repeated", {"loads": 5})
    assert (row["loads_doctor"], row["loads_measured"]) == (9, 5)
    assert (row["connections_doctor"], row["connections_measured"]) == (8, 6)
    assert (row["share_doctor"], row["exit_status"]) == (7.5, 1)


def test_the_doctor_is_right_where_it_is_not_wrong_and_could_tell():
    def rows(question, *those):
        columns = ["doctor", "wrong"]
        return pd.DataFrame(those, columns=columns).assign(question=question)

    loads = rows(
        working.LOADS, ("repeated", ""), ("repeated", "false alarm"), ("not repeated", "miss"),
        ("not repeated", "miss"), ("cannot tell", ""),
    )  # fmt: skip
    of_jobs = rows(working.LOOP, ("blocked", ""))
    of_patients = rows(working.LOOP, ("free", ""), ("cannot tell", ""))
    told = working.accuracy(of_patients, pd.concat([loads, of_jobs])).to_dict("records")
    first, second = told
    assert first == {
        "question": working.LOOP, "programs": 3, "right": 2, "miss": 0, "false alarm": 0,
        "cannot tell": 1,
    }  # fmt: skip
    assert second == {
        "question": working.LOADS, "programs": 5, "right": 1, "miss": 2, "false alarm": 1,
        "cannot tell": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "measured", "doctor", "wrong"),
    [
        ("blocked", "serial", "serial", ""),
        ("blocked", "concurrent", "serial", "false alarm"),
        ("free", "serial", "concurrent", "miss"),
        ("cannot tell", "serial", "cannot tell", ""),
        ("does not apply", "no event loop", "no event loop", ""),
    ],
)
def test_a_patient_is_judged_by_what_its_requests_did(monkeypatch, said, measured, doctor, wrong):
    rows = [
        {"imported": False, "error": None, "by_connection": [9, 9, 9], "made": 9},
        {"imported": True, "error": "why", "by_connection": [9, 9, 9], "made": 9},
        {"imported": True, "error": None, "by_connection": [1, 2, 4], "made": 5},
    ]
    report = {
        "verdicts": {"event loop": said}, "loads": rows, "clients": [], "exit_status": 0,
        "advice": [{"what": "do this"}],
    }  # fmt: skip
    monkeypatch.setattr(patients, "examine", lambda patient: report)
    monkeypatch.setattr(patients, "measured_of", lambda patient: (measured, 10))
    row = patients._measure_row(next(iter(patients.all_patients().values())))
    assert (row["doctor"], row["measured"], row["wrong"]) == (doctor, measured, wrong)
    # The session's own, the first connection's, and nine times what a later one loads.
    assert (row["loads_doctor"], row["loads_measured"]) == (5 + 1 + 9 * 3, 10)
    assert row["why"] == ("why" if said == "cannot tell" else "")


def test_a_complete_machine_file_has_each_patient_that_the_chapter_asks_for() -> None:
    cells = nbformat.read(places.NOTEBOOKS / "a_doctor.ipynb", as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert re.findall(r"patients\.table\((.*?)\)", code) == ["names", f'["{patients.IN_EXERCISE}"]']
    assert "names = list(patients.EXAMINED)\n" in code
