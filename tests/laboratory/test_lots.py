"""The seed of what is left to chance: one for each build, kept, and named to repeat it."""

import pytest

from casebook.errors import UsageError
from casebook.laboratory import lots


@pytest.fixture(autouse=True)
def own_file(monkeypatch, tmp_path):
    monkeypatch.setattr(lots, "FILE", tmp_path / "runs" / "lots")
    monkeypatch.delenv(lots.VARIABLE, raising=False)
    return tmp_path / "runs"


def test_it_is_drawn_once_and_kept_beside_the_runs(own_file):
    drawn = lots.seed()
    assert {lots.seed() for _ in range(3)} == {drawn}
    assert [path.name for path in own_file.iterdir()] == ["lots"]


def test_a_fresh_build_draws_another(monkeypatch):
    numbers = iter((17, 4))
    monkeypatch.setattr(lots.secrets, "randbelow", lambda most: next(numbers))
    assert lots.seed() == 17
    lots.FILE.unlink()
    assert lots.seed() == 4


def test_the_first_of_two_processes_decides(monkeypatch):
    lots._keep(3)
    lots._keep(5)
    assert lots.seed() == 3


def test_a_build_can_be_repeated(monkeypatch):
    lots._keep(3)
    monkeypatch.setenv(lots.VARIABLE, "12")
    assert lots.seed() == 12
    monkeypatch.setenv(lots.VARIABLE, "a dozen")
    with pytest.raises(UsageError, match="whole number"):
        lots.seed()
