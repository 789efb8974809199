"""The doctor's one file is what its parts are."""

from casebook import places
from casebook.the_doctor.__main__ import built


def test_the_file_to_carry_away_is_built_from_the_parts():
    text = "casebook/doctor.py is not what its parts are: run `python -m casebook.the_doctor`"
    assert places.DOCTOR.read_text() == built(), text
