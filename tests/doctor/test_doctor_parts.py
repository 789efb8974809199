"""The doctor's one file is what its parts are, and the book quotes it as it speaks."""

import pytest

from casebook import doctor, places
from casebook.the_doctor.__main__ import built


def test_the_file_to_carry_away_is_built_from_the_parts():
    text = "casebook/doctor.py is not what its parts are: run `python -m casebook.the_doctor`"
    assert places.DOCTOR.read_text() == built(), text


@pytest.mark.parametrize(
    ("about", "ill"),
    [
        ("handshakes", doctor.ONE_AT_A_TIME),
        ("loads on the loop", doctor.HELD_UP),
        ("contexts", doctor.ONE_FOR_EACH),
    ],
)
def test_is_this_you_has_the_doctors_own_lines(about, ill):
    page = (places.ROOT / "book" / "is_this_you.md").read_text()
    assert f"*{doctor.QUESTIONS[about]}* {ill.upper()}" in page


def test_is_this_you_has_the_doctors_words_for_memory():
    page = (places.ROOT / "book" / "is_this_you.md").read_text()
    counts = {"on_loop": {}, "queue": None, "alive": 12, "context_mib": 8.1, "loads": 12}
    (line,) = doctor.other_lines("contexts", counts)
    assert "memory grew by 8.1 MiB" in line and "*memory grew by … MiB*" in page
