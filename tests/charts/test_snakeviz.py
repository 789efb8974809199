"""SnakeViz's page of a profile. tests/pages/test_pages.py opens one."""

import json
from pathlib import Path
from pstats import Stats

import pytest

from casebook.cases.fetching.observations import dump_profile, recorded_profile
from casebook.charts import snakeviz
from casebook.errors import BookFailed, UsageError


def test_shows_no_path_of_the_machine_that_made_the_profile(profile: Path) -> None:
    text = snakeviz.page_html(profile, "Stage 9")
    assert "json/encoder.py" in text
    assert json.__file__.rpartition("/json/")[0] not in text


def test_in_a_notebook_the_page_itself_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = snakeviz.ProfilePage(recorded_profile("stage-2-py27"), "Stage 9")
    monkeypatch.delenv("CASEBOOK_BUILD", raising=False)
    assert "<p>Stage 9</p><iframe srcdoc=" in shown._repr_mimebundle_()["text/html"]
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    assert 'href="../profiles/stage-2-py27.html"' in shown._repr_mimebundle_()["text/html"]


def test_refuses_what_is_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "text.prof"
    path.write_text("no profile")
    with pytest.raises(BookFailed, match=r"text\.prof cannot be read"):
        snakeviz.page_html(path, "Nothing")


def test_a_missing_profile_is_named_where_it_is_asked_for() -> None:
    with pytest.raises(UsageError, match=r"no profile of stage-0 is recorded; `make record`"):
        recorded_profile("stage-0")


def test_opens_where_the_time_is_and_not_where_greenlets_were_started(tmp_path: Path) -> None:
    seen = recorded_profile("stage-2-py27")
    dump = dump_profile(seen, tmp_path / "stage-2.prof")
    way = [function for _, _, function in snakeviz.way_to_the_time(Stats(str(dump)))]
    assert way[0] == "<built-in method poll>" and {"do_poll", "wait_for_read", "recv"} < set(way)
    assert "map" not in way and "get" not in way
    text = snakeviz.page_html(seen, "Stage 2")
    assert text == snakeviz.page_html(dump, "Stage 2")
    assert f"begins with <code>{way[-1]}</code>" in text
    assert f'({way[-1]})";\n' in text  # the root that the script draws
    assert "<code>&lt;built-in method poll&gt;</code>, 10.0" in text


def test_a_changed_page_of_snakeviz_is_noticed(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = snakeviz._packaged
    monkeypatch.setattr(
        snakeviz, "_packaged", lambda name: packaged(name).replace("sv_find_root", "other")
    )
    with pytest.raises(BookFailed, match="no longer holds"):
        snakeviz.page_html(profile, "Stage 9")
