"""The evening before a lesson, and laptops without a network."""

import subprocess
import tarfile
from pathlib import Path

import nbformat
import pytest

from casebook import places
from casebook.classroom import laptops, ready
from casebook.errors import EnvironmentFailed, UsageError
from casebook.pages.contents import Book

BOOK = Book(places.ROOT)


def written(folder: Path, *cells: str) -> Path:
    """A notebook of these cells, as a chapter."""
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)])
    notebook.metadata = nbformat.read(places.ROOT / "start.ipynb", as_version=4).metadata
    path = folder / "01_own.ipynb"
    nbformat.write(notebook, path)
    return path


def test_chapters_are_chosen_by_their_numbers():
    assert [path.stem for path in ready.chapters(BOOK, ["2", "05"])] == [
        "02_all_at_once", "05_reading_the_profile",
    ]  # fmt: skip
    assert len(ready.chapters(BOOK, [])) == 24
    with pytest.raises(UsageError, match="no chapter '77'; choose 1 to 24"):
        ready.chapters(BOOK, ["77"])


def test_a_chapter_is_ready_once_a_cell_showed_something_and_no_cell_runs_after_it(tmp_path):
    path = written(tmp_path, "a = 1", "print('no result')", "a", "open('ran', 'w')")
    [(is_ready, line)] = ready.lines(BOOK, [path])
    assert is_ready and line.startswith("01_own: ready, its first output after ")
    assert not (tmp_path / "ran").exists()


def test_what_is_not_ready_says_why(tmp_path, monkeypatch):
    [(is_ready, line)] = ready.lines(BOOK, [written(tmp_path, "1 / 0")])
    assert not is_ready and line == "01_own: not ready. ZeroDivisionError: division by zero"

    def ensure(*_, **__):
        raise EnvironmentFailed("environment stage-1-today cannot be made: no network\nand more")

    monkeypatch.setattr(ready.environments, "is_there", lambda stack: False)
    monkeypatch.setattr(ready.environments, "ensure", ensure)
    [(is_ready, line)] = ready.lines(BOOK, [written(tmp_path, '"stage-1-today"')])
    assert not is_ready
    assert line == "01_own: not ready. environment stage-1-today cannot be made: no network"


def test_the_archive_for_laptops_has_this_folder_and_the_pythons_at_their_places(
    tmp_path, monkeypatch
):
    root, python = tmp_path / "book", tmp_path / "pythons" / "3.7"
    kept = ("Makefile", ".venv/bin/python", ".casebook/envs/a/bin/python", "_build/html/index.html")
    for file in (*kept, ".git/HEAD", ".casebook/runs/1.json", "a/__pycache__/b.pyc"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    (python / "bin").mkdir(parents=True)
    (python / "bin" / "python3.7").touch()
    monkeypatch.setattr(places, "ROOT", root)
    monkeypatch.setattr(places, "LOCAL", root / ".casebook")
    monkeypatch.setattr(laptops, "prefixes", lambda: ([python], [Path("/usr")]))
    said = laptops.pack(tmp_path / "class.tar.gz")
    assert "Each laptop needs the Python in /usr" in said and f"cd {root} && make lab" in said
    subprocess.run(["tar", "-xzf", tmp_path / "class.tar.gz", "-C", tmp_path], check=True)
    copy = tmp_path / str(root).lstrip("/") / kept[0]
    assert copy.stat().st_mtime_ns == (root / kept[0]).stat().st_mtime_ns
    with tarfile.open(tmp_path / "class.tar.gz") as tar:
        names = {"/" + name for name in tar.getnames() if tar.getmember(name).isfile()}
    assert names == {*(f"{root}/{name}" for name in kept), f"{python}/bin/python3.7"}
    with pytest.raises(UsageError, match="is there already"):
        laptops.pack(tmp_path / "class.tar.gz")
    with pytest.raises(UsageError, match="would be in the folder"):
        laptops.pack(root / "class.tar.gz")


def test_pythons_outside_of_the_system_are_taken_along():
    own, of_system = laptops.prefixes()
    for prefix in [*own, *of_system]:
        assert list((prefix / "bin").glob("python*")), prefix
    assert not any(prefix.is_relative_to("/usr") for prefix in own)
    assert subprocess.run(["tar", "--version"], capture_output=True).returncode == 0
