"""Machine files with numbers that are written down: saved and read, summed up, chosen among."""

import json
import os
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casebook import places
from casebook.laboratory import machine_files, recorded_rows, reference
from casebook.laboratory.machine_files import Machine

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="/\\"), max_size=12)
NUMBERS = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXT, inside, max_size=3),
    max_leaves=8,
)
ANSWERS = st.lists(
    st.dictionaries(TEXT, JSON, max_size=4).map(lambda its: its | {"asked": ["fetch", its]}),
    min_size=1, max_size=3,
)  # fmt: skip
WORDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 .()-]{0,20}[A-Za-z0-9.)]", fullmatch=True).map(
    lambda text: " ".join(text.split())
)
ABOUT = st.fixed_dictionaries(
    {"processor": WORDS},
    optional={"cores": st.integers(1, 512), "openssl": WORDS, "steal_s": st.floats(0, 1e6),
              "unit_ms": st.lists(st.floats(0.1, 9), min_size=3, max_size=3),
              "pythons": st.dictionaries(WORDS, WORDS, max_size=3)},
)  # fmt: skip
FINDINGS = st.fixed_dictionaries(
    {"id": st.from_regex(r"[a-z0-9]{1,9}(-[a-z0-9]{1,9})?", fullmatch=True), "outcome": WORDS},
    optional={"value": st.one_of(st.integers(-99, 99), st.floats(-9, 9), WORDS, st.booleans()),
              "interval": st.lists(st.floats(0, 9), min_size=2, max_size=2),
              "n": st.integers(0, 99),
              "window": WORDS, "others": st.lists(WORDS, max_size=3)},
)  # fmt: skip


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(about=ABOUT, answers=ANSWERS, findings=st.lists(FINDINGS, max_size=3))
def test_what_is_saved_and_read_is_the_same(tmp_path, monkeypatch, about, answers, findings):
    nobody = machine_files.Own("/nowhere/at/all", (), ())
    monkeypatch.setattr(machine_files.Own, "of_this_machine", classmethod(lambda cls: nobody))
    file = tmp_path / f"some-machine{machine_files.SUFFIX}"
    its = {each["id"]: each for each in findings}
    saved = Machine("some-machine", about, answers, its)
    assert machine_files.save(saved, file) == file.stat().st_size
    assert machine_files.read(file) == saved


def test_how_steady_a_machine_was():
    answers = [
        {"measured_at": f"2026-11-2{n % 3}T00:00:0{n % 10}Z", "unit_ms": 1.0 + n, "steal_s": 0.25}
        for n in range(11)
    ]
    found = machine_files.steadiness(
        [*answers, {"unit_ms": None, "steal_s": "much"}, {"steal_s": True}]
    )
    # Of 1 to 11, the first, the fifth and the ninth decile; eleven quarters of a second.
    assert (found["unit_ms"], found["steal_s"]) == ([2.0, 6.0, 10.0], 2.75)
    assert found["measured_from"] == "2026-11-20T00:00:00Z"
    assert found["measured_to"] == "2026-11-22T00:00:08Z"
    assert set(machine_files.steadiness([])) == {"saved_at"}
    assert "unit_ms" not in machine_files.steadiness([{"unit_ms": 1.0}])


def test_of_two_answers_to_a_question_the_newer_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "RUNS", tmp_path)
    rows = [("a", ["x"], "2026-02"), ("b", ["x"], "2026-03"), ("c", ["x"], "2026-01"),
            ("d", ["y"], "2026-02"), ("e", None, "2025"), ("f", None, "2024")]  # fmt: skip
    for name, asked, moment in rows:
        answer = {"name": name, "measured_at": moment} | ({"asked": asked} if asked else {})
        (tmp_path / f"{name}.json").write_text(json.dumps(answer))
    (tmp_path / "g.json").write_text("{half")
    # The oldest first; what says no question is of its own.
    assert [each["name"] for each in machine_files.stored_answers()] == ["f", "e", "d", "b"]


def test_findings_are_those_of_this_machines_runs():
    claims = [
        {"id": "a", "source": "live", "value": 0, "unit": "", "because": None, "keys": ["k"]},
        {"id": "b", "source": "reference", "value": 1},
    ]
    assert machine_files.findings_of(claims) == {"a": {"id": "a", "value": 0}}


@pytest.mark.parametrize(
    ("about", "label"),
    [
        ({"processor": "A chip", "cores": 2, "openssl": "OpenSSL 3.0.19 27 Jan 2026"},
         "A chip, 2 cores, OpenSSL 3.0.19"),
        ({"processor": "A chip", "cores": 1}, "A chip, 1 core"),
        ({"cores": 4}, "4 cores"),
        ({}, ""),
    ],
)  # fmt: skip
def test_a_machine_in_a_few_words(about, label):
    assert machine_files.label(about) == label
    assert Machine("its-file", about, []).label == (label or "its-file")


def test_the_machine_most_like_this_one(monkeypatch):
    here = {"architecture": "arm64", "openssl": "OpenSSL 3.0.19 27 Jan", "cores": 4}
    monkeypatch.setattr(machine_files, "describe", lambda: here)
    there = {
        "same": here,
        "twice the cores": here | {"cores": 8},
        "a quarter of the cores": here | {"cores": 1},
        "other openssl": here | {"openssl": "OpenSSL 3.5.0 8 Apr"},
        "other architecture": here | {"architecture": "x86_64"},
        "nothing said": {},
    }
    order = sorted(there, key=lambda name: machine_files.unlikeness(there[name]))
    assert order == ["same", "twice the cores", "a quarter of the cores", "other openssl",
                     "other architecture", "nothing said"]  # fmt: skip
    assert machine_files.unlikeness(here | {"openssl": "OpenSSL 3.0.19 9 Sep"}) == (False, False, 0)


@pytest.mark.parametrize(
    ("value", "is_number"),
    [(1, True), (0.5, True), (True, False), ("1", False), (None, False), (float("nan"), False),
     (float("inf"), False), (10**400, False), (-(10**30), True)],
)  # fmt: skip
def test_a_number(value, is_number):
    assert machine_files.is_number(value) is is_number


@pytest.mark.parametrize(("depth", "is_deep"), [(100, False), (101, True)])
@pytest.mark.parametrize("around", [lambda value: {"x": value, "y": 1}, lambda value: [1, value]])
def test_how_deep_an_answer_may_be(depth, is_deep, around):
    value: object = {}
    for _ in range(depth - 1):
        value = around(value)
    assert machine_files._is_deep(value) is is_deep


@pytest.fixture
def recorded(monkeypatch):
    """Writes what machines answered, and asks what stands in: n, round, value, and what differs.

    The files are told apart by name, the nearest machine first: near, then the reference, far.
    """
    answers: dict[str, list] = {}

    def machine(name: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, label=f"the {name} one", answers=answers[name])

    def likeness(name: str) -> int:
        return ["near", reference.NAME, "far"].index(name)

    monkeypatch.setattr(reference, "unlikeness", likeness)
    monkeypatch.setattr(
        reference.machine_files, "all_recorded", lambda: map(machine, sorted(answers))
    )

    def add(name: str, stack: str, n: object, repeat: int, value: float, **further) -> None:
        asked = ["x", [stack, "step"], {"n": n}, repeat]
        answers.setdefault(name, []).append({"asked": asked, "value": value, **further})

    def ask(stack: str, *wanted: int) -> list[list]:
        question = ["x", [stack, "step"], {"n": reference.unknown("n")}, reference.unknown("round")]
        matches = reference.stand_ins(
            question, {"n": wanted}, lambda values, answer: answer["value"] >= 0
        )
        return [
            [each.values["n"], each.values["round"], each.answer["value"], each.instead]
            for each in matches
        ]

    return SimpleNamespace(add=add, ask=ask)


def test_what_stands_in_is_of_one_machine_and_says_which(recorded):
    recorded.add(reference.NAME, "a", 10, 1, 0)
    recorded.add("near", "a", 5, 1, 1)
    recorded.add("far", "a", 10, 1, 2)
    recorded.add("far", "b", 3, 1, 3)
    # The near one was not asked exactly this.
    assert recorded.ask("a", 10) == [[10, 1, 0, ""]]
    assert recorded.ask("a", 7) == [[5, 1, 1, "on the near one; n = 5 instead of 7"]]
    assert recorded.ask("b", 10, 20) == [[3, 1, 3, "on the far one; n = 3 instead of 10, 20"]]
    # One of those that are wanted is there: it needs no other in the place of the rest.
    assert recorded.ask("b", 3, 20) == [[3, 1, 3, "on the far one"]]
    assert recorded.ask("c", 10) == []
    # No value is wanted: whatever the nearest machine has.
    assert recorded.ask("a") == [[5, 1, 1, "on the near one"]]


def test_all_rounds_come_from_the_machine_that_has_the_question(recorded):
    recorded.add("near", "a", 3, 1, 0)
    recorded.add("far", "a", 3, 1, 1)
    recorded.add("far", "a", 3, 2, 2)
    # Of the second round it has none, and another machine's would be no second round of its.
    assert recorded.ask("a", 3) == [[3, 1, 0, "on the near one"]]


def test_what_failed_what_is_wrong_and_what_has_no_number_stands_in_for_nothing(recorded):
    recorded.add("near", "a", 3, 1, 0, failed=["RunFailed", "why"])
    recorded.add("near", "a", 3, 2, -1)
    recorded.add("near", "a", "many", 3, 0)
    recorded.add("near", "a", [3], 3, 0)
    assert recorded.ask("a", 3) == []
    recorded.add("far", "a", 4, 1, 2)
    assert recorded.ask("a", 3) == [[4, 1, 2, "on the far one; n = 4 instead of 3"]]


@pytest.mark.parametrize(
    ("asked", "values"),
    [
        (["x", {"n": 3}, 1], {"n": 3}),
        (["x", {"n": None}, 1], {"n": None}),
        (["y", {"n": 3}, 1], None),
        (["x", {"n": 3}, 2], None),
        (["x", {"n": 3, "m": 1}, 1], None),
        (["x", {"m": 3}, 1], None),
        (["x", [3], 1], None),
        (["x", {"n": 3}], None),
        ({"x": 3}, None),
        (None, None),
    ],
)
def test_a_question_with_an_unknown_part_is_only_the_same_question(asked, values):
    assert reference._values(["x", {"n": reference.unknown("n")}, 1], asked) == values


@pytest.mark.parametrize(
    ("there", "wanted", "nearest"),
    [([3, 100], [10], 3), ([3, 30], [10], 30), ([1, 10], [4], 10), ([0.0, 1.0], [0.01], 0.0)],
)
def test_the_nearest_number_is_nearest_in_its_ratio(there, wanted, nearest):
    """From 10 to 3 it is 3.3 times, and to 30 three times."""
    assert min(there, key=lambda each: reference._distance(each, wanted)) == nearest


def test_rows_of_the_reference_machine_are_those_of_its_file_as_it_is_now(tmp_path, monkeypatch):
    """An answer of a stack that is not ours, or with text in the place of a number, has none."""
    monkeypatch.setattr(machine_files, "folder", lambda: tmp_path)
    kind = recorded_rows.Kind("numbers", lambda answer: answer["rows"], ("wall_s",))
    assert recorded_rows.of_reference(kind).empty
    for changed, wall_s in enumerate((0.5, 0.25), 1):
        rows = [
            {"stack": stack, "wall_s": value}
            for stack, value in (
                ("stage-1-py37", wall_s), ("a-strangers", 1), ("stage-2-py27", "text"),
            )
        ]  # fmt: skip
        answers = [{"asked": ["fetch"], "rows": rows}]
        saved = Machine(reference.NAME, {"processor": "A chip"}, answers, {})
        machine_files.save(saved, reference.file())
        os.utime(reference.file(), ns=(changed, changed))
        frame = recorded_rows.of_reference(kind)
        assert frame.to_dict("records") == [
            {"stack": "stage-1-py37", "wall_s": wall_s, "source": "reference", "instead": ""}
        ]
        frame["wall_s"] = 0  # which is the reader's own
        assert recorded_rows.of_reference(kind)["wall_s"].tolist() == [wall_s]
