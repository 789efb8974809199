"""What stands in for the line on a machine that can have none."""

from dataclasses import replace

from casebook.cases.bookstore.line import feasibility, visits


def test_what_chapters_17_and_18_ask_of_the_line_has_been_recorded(monkeypatch):
    lacking = replace(visits._OVER, lacks=lambda: "there can be no line here")
    monkeypatch.setattr(visits, "_OVER", lacking)
    both = visits.visit(["pipes:6", "bare-h2"], n=13, latency_s=[0.004, 0.035], repeats=8)
    loss = {"lose": visits.loss(29_000), "n": 60, "latency_s": 0.07, "repeats": 8}
    lossy = visits.visit(["bare-h2", "pipes:6"], **loss)
    assert len(both) == 32 and len(lossy) == 16 and lossy["repair_ms"].gt(100).all()
    for frame in (both, lossy):
        assert (
            set(frame["source"]) == {"reference"} and frame["instead"].str.startswith("on ").all()
        )


def test_without_a_line_the_flood_is_another_machines_or_none(monkeypatch):
    why = "there can be no line here"
    monkeypatch.setattr(feasibility, "not_here", lambda: why)
    monkeypatch.setattr(feasibility, "_FLOOD", replace(feasibility._FLOOD, lacks=lambda: why))
    floods = feasibility.flood()
    assert list(floods.columns) == feasibility.COLUMNS
    assert set(floods["source"]) <= {"reference"}
