"""SnakeViz's page of a profile. tests/test_pages.py opens one."""

import cProfile
import json
from pathlib import Path

import pytest

from casebook import places
from casebook.errors import BookFailed, UsageError
from casebook.pages import snakeviz_pages


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "stage-9.prof"
    profiler = cProfile.Profile()
    profiler.runcall(json.dumps, [list(range(500))] * 200, indent=1)
    profiler.dump_stats(path)
    return path


def test_shows_no_path_of_the_machine_that_made_the_profile(profile: Path) -> None:
    text = snakeviz_pages.page_html(profile, "Stage 9")
    assert "json/encoder.py" in text
    assert json.__file__.rpartition("/json/")[0] not in text


def test_in_a_notebook_the_page_itself_is_shown(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casebook.places.ROOT", profile.parent)
    shown = snakeviz_pages.ProfilePage(profile, "Stage 9")
    monkeypatch.delenv("CASEBOOK_BUILD", raising=False)
    assert "<iframe srcdoc=" in shown._repr_mimebundle_()["text/html"]
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    assert 'href="../profiles/stage-9.html"' in shown._repr_mimebundle_()["text/html"]


def test_refuses_what_is_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "text.prof"
    path.write_text("no profile")
    with pytest.raises(BookFailed, match=r"text\.prof cannot be read"):
        snakeviz_pages.page_html(path, "Nothing")


def test_a_missing_profile_is_named_where_it_is_asked_for() -> None:
    with pytest.raises(UsageError, match=r"No profile data/none\.prof; `make record`"):
        snakeviz_pages.ProfilePage(places.DATA / "none.prof", "None")
