"""The book quotes the doctor as it speaks."""

import pytest
import tls_doctor

from casebook import places


@pytest.mark.parametrize(
    ("about", "ill"),
    [
        ("handshakes", tls_doctor.basis.ONE_AT_A_TIME),
        ("loads on the loop", tls_doctor.basis.HELD_UP),
        ("contexts", tls_doctor.basis.ONE_FOR_EACH),
    ],
)
def test_is_this_you_has_the_doctors_own_lines(about, ill):
    page = (places.ROOT / "book" / "is_this_you.md").read_text()
    assert f"*{tls_doctor.report.QUESTIONS[about]}* {ill.upper()}" in page


def test_is_this_you_has_the_doctors_words_for_memory():
    page = (places.ROOT / "book" / "is_this_you.md").read_text()
    counts = {"on_loop": {}, "queue": None, "alive": 12, "context_mib": 8.1, "loads": 12}
    (line,) = tls_doctor.report.other_lines("contexts", counts)
    assert "memory grew by 8.1 MiB" in line and "*memory grew by … MiB*" in page
