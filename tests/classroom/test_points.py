"""The grader's points, item by item, on reports that are written down."""

import pytest

from casebook.classroom import grade_report
from casebook.classroom.grade_report import ANOTHER, Item, Report, Task


def graded() -> Report:
    own = Report("a lab")
    own.add("right", True, 3, "as it has to be", "look again")
    own.add("wrong", False, 4, "something else", "look there")
    own.add("a part", 2, 5, "two of five", "look here")
    own.leave("cannot", 6, "Python 2.7")
    return own


def test_a_task_has_the_number_that_was_drawn_in_its_title():
    task = Task("all {n} books are there", 3)
    assert task.of(7) == Task("all 7 books are there", 3)
    assert task.of(ANOTHER) == Task("all another number of books are there", 3)


def test_points_are_those_of_what_is_right():
    own = graded()
    assert [(item.points, item.of, item.graded) for item in own.items] == [
        (3, 3, True), (0, 4, True), (2, 5, True), (0, 6, False)
    ]  # fmt: skip
    assert (own.points, own.total, own.not_graded) == (5, 12, 6)
    assert own.score() == "5 of 12 points; 6 more could not be graded here"
    own.items.pop()
    assert own.score() == "5 of 12 points" and Report("none").score() == "0 of 0 points"


def test_a_grading_as_json_has_all_of_it():
    own = Report("a lab", notes=["a note"], stopped="it took too long")
    own.add("a part", 2, 5, "two of five", "look here")
    own.leave("cannot", 6, "Python 2.7")
    said = "not graded here: your code has to run in Python 2.7, which this machine cannot"
    assert own.as_json() == {
        "lab": "a lab", "notes": ["a note"], "stopped": "it took too long", "text": own.text(),
        "points": 2, "of": 5, "not_graded": 6,
        "items": [
            {"what": "a part", "points": 2, "of": 5, "measured": "two of five",
             "hint": "look here", "graded": True},
            {"what": "cannot", "points": 0, "of": 6, "measured": said, "hint": "",
             "graded": False},
        ],
    }  # fmt: skip


def test_who_waits_is_told_of_each_item_with_what_it_counts():
    told = []
    own = Report("a lab", progress=told.append)
    own.add("right", True, 3, "as it has to be", "")
    own.add("a part", 2, 5, "two of five", "look here")
    assert told == [3, 5]


def test_a_hint_is_for_what_is_missing():
    assert [item.hint for item in graded().items] == ["", "look there", "look here", ""]
    own = Report("a lab")
    own.add("all parts", 5, 5, "five of five", "look here")
    assert own.items == [Item("all parts", 5, 5, "five of five")]


def test_what_was_measured_elsewhere_says_so_and_long_words_end():
    own = Report("a lab")
    own.add("a", True, 1, "x" * 1000, "")
    own.add("b", True, 1, "x" * 1001, "", machine="A chip, 2 cores")
    assert own.items[0].measured == "x" * 1000
    assert own.items[1].measured == (
        "x" * 1000 + " … and so on\nof A chip, 2 cores, not measured here"
    )
    assert grade_report.machine_note("A chip") == " (of A chip, not measured here)"
    assert grade_report.machine_note("") == ""


def test_a_grading_as_text():
    own = graded()
    own.notes.append("Rows to pick from.")
    own.stopped = "it took too long"
    assert own.text().splitlines() == [
        "a lab",
        "",
        "  3 of 3   right",
        "           as it has to be",
        "  0 of 4   wrong",
        "           something else",
        "           Hint: look there",
        "  2 of 5   a part",
        "           two of five",
        "           Hint: look here",
        "  – of 6   cannot",
        "           not graded here: your code has to run in Python 2.7, which this machine cannot",
        "",
        "Rows to pick from.",
        "",
        "Your program was stopped: it took too long.",
        "",
        "5 of 12 points; 6 more could not be graded here",
    ]
    assert grade_report.with_warning(own).startswith(own.text() + "\n\n")
    warning = grade_report.with_warning(own).removeprefix(own.text() + "\n\n")
    assert " ".join(warning.split()) == " ".join(grade_report.NOT_STOPPED.split())
    assert not any(line.startswith(" ") for line in warning.splitlines())


@pytest.mark.parametrize(
    ("said", "picked"),
    [
        (["a", "c"], {"a", "c"}),
        ("ac", {"a", "c"}),
        ([], set()),
        (["a", "a"], set()),  # picking everything twice earns nothing
        ("aba", set()),
        (None, set()),
        ({"a": 1}, set()),
        (["a", 1], set()),
        (7, set()),
    ],
)
def test_the_letters_that_somebody_picked(said, picked):
    assert grade_report.picked(said) == picked


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        # Eleven spaces, and 85 characters: 96.
        ("x" * 40 + " " + "y" * 44, ["x" * 40 + " " + "y" * 44]),
        ("x" * 40 + " " + "y" * 45, ["x" * 40, "y" * 45]),
        ("see " + "/folder" * 15, ["see", "/folder" * 15]),  # which can still be copied
    ],
)
def test_long_lines_are_broken_between_words(said, lines):
    own = Report("a lab")
    own.add("a", True, 1, said, "")
    assert own.text().splitlines()[3:-3] == [" " * 11 + line for line in lines]
