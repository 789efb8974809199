"""Ten students at once: nobody's verdict is wrong, nobody waits for ever."""

import crowd_of_students
import pytest


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_ten_students_at_once_find_what_there_is():
    crowd = crowd_of_students.play(10)
    assert len(crowd.students) == 10
    assert [each.verdicts for each in crowd.students] == [crowd_of_students.VERDICTS] * 10
    assert [each.points for each in crowd.students] == [each.of for each in crowd.students]
    # What the instructors' page promises.
    assert max(each.waited_s for each in crowd.students) < 300
    assert crowd.peak_mb < 10 * 300
