"""What the classroom judges, on rows that are written down, and what it keeps of each class."""

import json

import pytest

from casebook.classroom import archive, prediction, whodunit
from casebook.classroom.checks.one_slow_book import Shelf
from casebook.classroom.whodunit import Mark


@pytest.mark.parametrize(
    ("n", "slow", "lanes", "in_order", "before"),
    [
        # Read in the order asked: the nine that stand in front.
        (30, (10,), 100, True, 9),
        # One lane: so does everything on one connection.
        (30, (10,), 1, False, 9),
        # Lanes are left: all that are not slow.
        (30, (10,), 6, False, 29),
        (30, (4, 9), 3, False, 28),
        # Books 4, 9 and 11 hold a lane each; of the ten in front of 11, eight are not slow.
        (30, (4, 9, 11), 3, False, 8),
    ],
)
def test_the_law_of_the_slow_books(n, slow, lanes, in_order, before):
    assert Shelf("kind", "what", "client", n, slow, lanes, in_order).law() == before


MARKS = (
    (Mark("ann", "lock", "lock", ""), True, False),
    (Mark("bob", "lock", "lock", "it does not show"), True, False),
    (Mark("cyd", "none", "none", ""), True, False),
    (Mark("dan", "none", "lock", "it does not show"), False, False),  # she accused nobody
    (Mark("eve", "loads", "none", "it does not show"), False, True),
    (Mark("fay", "loads", "lock", "it does not show"), False, True),
    (Mark("gil", "nothing", "", "there is no answer that can be read"), False, False),
)


@pytest.mark.parametrize(("mark", "is_right", "is_false"), MARKS)
def test_a_mark_is_right_or_wrong_or_an_accusation_of_somebody_else(mark, is_right, is_false):
    assert (mark.is_right, mark.accuses_wrongly) == (is_right, is_false)


def test_a_class_is_added_up():
    lines = whodunit.marks_text([mark for mark, *_ in MARKS]).splitlines()
    assert lines[-1] == "7 answers: 3 right, 2 of them shown by their evidence, 2 false accusations"
    assert [line.endswith(" (a false accusation)") for line in lines] == [
        *(is_false for _, _, is_false in MARKS), False
    ]  # fmt: skip


def test_the_teachers_secret_marks_the_cases_that_were_handed_out(tmp_path):
    archive.whodunits(tmp_path / "whodunit")
    secret = whodunit.secret_of(tmp_path / "whodunit" / "secret")
    lines = (tmp_path / "whodunit" / "culprits.txt").read_text().splitlines()
    assert len(lines) == archive.CASES
    for line in lines:
        name, culprit = line.split()
        case = tmp_path / "whodunit" / "class" / name
        assert whodunit.culprit_of(
            json.loads((case / "case.json").read_text())["seed"], secret
        ) == (culprit)
        whodunit.build(tmp_path / "again" / name, culprit)
        texts = [{path.name: path.read_text() for path in folder.iterdir()}
                 for folder in (case / "program", tmp_path / "again" / name)]  # fmt: skip
        assert texts[0] == texts[1]


def test_the_first_prediction_stays_whatever_is_entered_later(tmp_path):
    submission = tmp_path / "answer.py"
    assert prediction.remember(submission, None) is None
    first = prediction.remember(submission, 30)
    assert first is not None and first["prediction"] == 30
    assert [prediction.remember(submission, later) for later in (1, None)] == [first, first]
