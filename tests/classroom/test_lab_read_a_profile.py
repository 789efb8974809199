"""Read a profile: the right solution, the empty one, and wrong ones, each for its reason."""

import pytest
from graded import changed, graded, missing, right

from casebook.classroom import grading
from casebook.classroom.checks import read_a_profile

LAB = "read-a-profile"


@pytest.fixture(scope="module", autouse=True)
def dumps_once():
    """The new dumps are made for the first submission, and not for each again."""
    made, observed = {}, read_a_profile.observed

    def once(way, n):
        if way not in made:
            made[way] = observed(way, n)
        return made[way]

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(read_a_profile, "observed", once)
        yield


def test_the_right_solution_has_full_points(tmp_path):
    report = graded(LAB, right(LAB), tmp_path)
    assert (report.points, report.total, missing(report)) == (17, 17, {})


def test_the_empty_one_has_nothing_and_with_a_prediction_one_point(tmp_path):
    handed_out = (grading.folder(LAB) / "answer.py").read_text()
    assert graded(LAB, handed_out, tmp_path).points == 0
    text = handed_out.replace("PREDICTION = None", "PREDICTION = 'a'")
    assert graded(LAB, text, tmp_path).points == 1


def test_the_hint_of_an_unanswered_dump_tells_no_answer(tmp_path):
    handed_out = (grading.folder(LAB) / "answer.py").read_text()
    said = graded(LAB, handed_out.replace("PREDICTION = None", "PREDICTION = 'b'"), tmp_path).text()
    assert said.count("you say None") == 6
    assert "called" not in said and "poll" not in said and "%" not in said
    assert "waits in" not in said and "computes" not in said and "stands here once" in said
    report = graded(LAB, right(LAB), tmp_path)
    assert "waits in a.prof, and computes in b.prof" in " ".join(report.text().split())


def test_the_part_that_is_wrong_is_named_first_and_two_right_ones_are_worth_half(tmp_path):
    text = changed(LAB, (RETURNS, RETURNS.replace("counts[1]", "counts[1] + 1")))
    report = graded(LAB, text, tmp_path)
    dumps = [item for item in report.items if "dump" in item.what or "handed" in item.what]
    assert [item.points for item in dumps] == [1] * 6
    assert all(item.measured.startswith("the count is wrong: you say ") for item in dumps)
    assert all("primitive" in item.hint for item in dumps)


def test_a_forgotten_prediction_costs_its_point_and_no_more(tmp_path):
    report = graded(LAB, changed(LAB, ('PREDICTION = "b"', "PREDICTION = None")), tmp_path)
    assert report.points == 16 and {*missing(report)} == {"a prediction is entered"}


def test_the_dumps_that_are_handed_out_say_nothing_of_where_they_were_made():
    for name in "ab":
        rows = read_a_profile.rows_of(grading.folder(LAB) / f"{name}.prof")
        assert not [row["file"] for row in rows if row["file"].startswith("/")]
        assert read_a_profile.kind(read_a_profile.longest(rows)) == {
            "a": "waits", "b": "computes",
        }[name]  # fmt: skip


RETURNS = 'return ["waits" if waiting else "computes", place[2], counts[1]]'
LOADS, WAIT = "a new dump: loads of a bundle", "a new dump: pyOpenSSL's wait"

#: What is wrong: the change that makes it so, an item that has to go, and what it has to say.
WRONG = {
    "a hard-coded verdict": ((RETURNS, 'return ["waits", place[2], counts[1]]'), LOADS, "'waits'"),
    "the answer stands in the file's name": (
        (RETURNS, 'return ["computes" if "/b.prof" in path else "waits", place[2], counts[1]]'),
        LOADS,
        "'waits'",
    ),
    "the clock of the whole in the place of its own": (
        ("line[1][2]", "line[1][3]"),
        WAIT,
        "the line is ~:0(<method 'poll'",
    ),
    "a thousand calls": ((RETURNS, RETURNS.replace("counts[1]", "1000")), LOADS, ", 1000]"),
    "a time in the place of a count": (
        (RETURNS, RETURNS.replace("counts[1]", "counts[2]")),
        LOADS,
        "called",
    ),
    "the processor's friend": (('FREE_LOOP = "a.prof"', 'FREE_LOOP = "b"'), "FREE_LOOP", "'b'"),
}


@pytest.mark.parametrize("how", WRONG)
def test_wrong_ones_fail_for_their_reason(how, tmp_path):
    change, what, words = WRONG[how]
    found = missing(graded(LAB, changed(LAB, change), tmp_path))
    assert any(item.startswith(what) and words in said for item, said in found.items()), found
