"""The attacks of trust_attacks.py, beside six releases of urllib3."""

import re

import pytest
from here import BREADTH
from trust_runs import SCRIPTS, with_releases

ATTACKS = re.findall(
    r"^def (an?_\w+|one_\w+)\(\):", (SCRIPTS / "trust_attacks.py").read_text(), re.M
)
#: One more than the package's own tests try in each run, which have the newest; and all by night.
RELEASES = [
    pytest.param("2.34.0", "2.6.3", marks=pytest.mark.slow),
    *(
        pytest.param(*pair, marks=BREADTH)
        for pair in (
            ("2.34.2", "2.8.0"), ("2.33.1", "2.7.0"), ("2.32.5", "2.5.0"), ("2.31.0", "2.2.3"),
            ("2.30.0", "2.0.7"), ("2.28.2", "1.26.20"), ("2.24.0", "1.25.11"), ("2.21.0", "1.24.3"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("of_requests", "of_urllib3"), RELEASES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_comes_to_nothing(world, cure, attack, of_requests, of_urllib3):
    stats = with_releases(
        of_requests, of_urllib3, "trust_attacks.py", cure, world=world, attack=attack
    )
    assert stats["unknown"] == ""


def test_all_attacks_are_found():
    assert len(ATTACKS) == 24
