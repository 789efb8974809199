"""Who comes first over the line: decided by rounds, and said in words."""

import pandas as pd
import pytest

from casebook.cases.bookstore import line
from casebook.cases.bookstore.line import situations
from casebook.cases.fetching import modes

WALLS = {
    "fast": [1.0, 1.1, 1.0, 1.0, 1.1, 1.0, 1.0, 1.1],
    "slow": [2.0, 2.1, 2.2, 2.0, 2.1, 2.3, 2.0, 2.2],
    "alike": [1.05, 1.15, 1.04, 1.05, 1.14, 1.05, 1.05, 1.15],
    "noisy": [0.9, 3.0, 1.0, 2.5, 0.8, 4.0, 1.1, 2.0],
}


def visits(rounds: int = 8) -> pd.DataFrame:
    rows = [
        {"where": where, "label": way, "repeat": i + 1, "wall_s": wall}
        for where in ("near", "far")
        for way, walls in WALLS.items()
        for i, wall in enumerate(walls[:rounds])
        if not (where == "far" and way == "slow")
    ]
    return pd.DataFrame(rows)


def test_each_cell_is_decided_by_its_rounds():
    table = line.standings(visits(), ["where"])
    assert list(table["where"]) == ["near"] * 4 + ["far"] * 3
    near = table[table["where"] == "near"].set_index("way")
    assert dict(near["outcome"]) == {
        "fast": "best", "slow": "longer", "alike": "as good", "noisy": "undecided"
    }  # fmt: skip
    assert set(table["rounds"]) == {8}
    assert near.loc["slow", "low"] > 1.1 and near.loc["alike", "high"] < 1.1


def test_few_rounds_decide_nothing_but_who_has_the_smallest_median():
    table = line.standings(visits(rounds=3), ["where"])
    assert set(table["outcome"]) == {"best", "undecided"}


def test_a_row_says_in_words_who_is_soonest_and_what_was_not_decided():
    told = line.cells(line.standings(visits(), ["where"]), ["where"])
    # By hand. The medians: fast 1.0, alike 1.05, noisy 1.55, slow 2.1 s. Of the rounds, slow takes
    # 1.9 to 2.3 times as long, 2.0 in the middle; alike 1.04 to 1.05; noisy 0.7 to 4.0, which
    # spans 1.1, so no number is said of it.
    both = "alike as good; noisy: the rounds do not agree"
    assert told.to_dict("records") == [
        {"where": "near", "soonest": "fast, 1.00 s", "others": f"{both}; slow 2.0 times as long"},
        {"where": "far", "soonest": "fast, 1.00 s", "others": both},
    ]


def test_of_few_rounds_nothing_is_said_but_who_has_the_smallest_median():
    told = line.cells(line.standings(visits(rounds=3), ["where"]), ["where"])
    assert not told["others"].str.contains(r"\d").any()
    assert told["others"].str.count("too few rounds").tolist() == [3, 2]


def test_the_model_is_said_of_the_visits_that_it_knows():
    rows = [
        {"client": "pipes", "connections": k, "at_once": 1, "window_bytes": 0, "n": 13}
        | {"body_bytes": 0, "latency_ms": 50.0, "lose": lose, "congestion": "reno", "wall_s": 2.0}
        for k, lose in (
            (1, ""), (6, ""), (13, ""), (7, ""), (6, '{"share": 0.01}'),
            (6, '{"connection": 0, "byte": 29000}'),  # one packet: neither a share nor nothing
        )
    ]  # fmt: skip
    found = line.by_model(pd.DataFrame(rows))
    assert list(found["connections"]) == [1, 6, 13]
    assert list(found["model_s"]) == pytest.approx([1.7, 0.8, 0.7])


def test_where_packets_are_lost_the_model_says_what_most_lots_take():
    rows = [
        {"client": "pipes", "connections": 13, "at_once": 1, "window_bytes": 0, "n": 13}
        | {"body_bytes": 27_000, "latency_ms": 35.0, "lose": lose, "congestion": "reno"}
        | {"wall_s": wall_s}
        for lose, wall_s in (('{"share": 0.02}', 0.9), ('{"share": 0.02}', 0.6), ("", 0.66))
    ]
    given = pd.DataFrame(rows)
    found = line.by_lot(given, beside=given)
    # Computing takes a tenth of a second: without it the second is too soon even for no loss.
    assert list(found["way_s"]) == pytest.approx([0.8, 0.5])
    assert list(found["as_most"]) == [True, False]
    assert (found["low_s"] >= 0.56).all() and (found["high_s"] > found["low_s"]).all()


def test_the_model_knows_no_narrow_line():
    row = {"client": "pipes", "connections": 6, "at_once": 1, "window_bytes": 0, "n": 13}
    row |= {"body_bytes": 0, "latency_ms": 50.0, "lose": "", "congestion": "reno", "wall_s": 2.0}
    given = pd.DataFrame([row | {"mbit": 0}, row | {"mbit": 10}])
    assert list(line.by_model(given)["mbit"]) == [0]


def test_the_matrix_leaves_out_what_would_never_end_and_nothing_else(monkeypatch):
    asked = []

    def ask(_, **what):
        asked.append(what)
        return pd.DataFrame({"n": [what["n"]]})

    monkeypatch.setattr(situations, "visit", ask)
    monkeypatch.setenv("CASEBOOK_MODE", "full")
    found, refused = line.matrix()
    assert len(found) == len(asked) and refused == []
    sizes = [each for each in asked if "window_bytes" in each and "lose" not in each]
    kinds = {
        window: {
            (each["n"], each["body_bytes"], each["latency_s"])
            for each in sizes
            if each["window_bytes"] == window
        }
        for window in situations._WINDOWS
    }
    own, wide = (kinds[window] for window in situations._WINDOWS)
    assert len(wide) == 2 * 4 * 3 and own < wide
    assert wide - own == {(200, 27_000, 0.15), (200, 100_000, 0.035), (200, 100_000, 0.15)}


def test_the_matrix_names_what_the_line_cannot_keep_up_with_and_takes_the_rest(monkeypatch):
    def ask(clients, **what):
        if "pipes:100" in clients and what["body_bytes"] == 100_000:
            raise situations.TooMuch("packets came at 90,000 a second")
        return pd.DataFrame({"client": clients})

    monkeypatch.setattr(situations, "visit", ask)
    monkeypatch.setenv("CASEBOOK_MODE", "full")
    found, refused = line.matrix()
    assert len(refused) == 10  # n, distance and window, but two that are left out for their length
    assert all(each.startswith("pipes:100 (n ") and "90,000" in each for each in refused)
    asked = found["client"].value_counts()
    assert asked["pipes:6"] == asked["bare-h2"] == asked["pipes:100"] + 10


def test_a_quick_build_takes_no_matrix(monkeypatch):
    monkeypatch.delenv("CASEBOOK_MODE", raising=False)
    assert modes.current() == modes.QUICK and line.matrix()[0].empty
