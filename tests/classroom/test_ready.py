"""The evening before a lesson, and laptops without a network."""

import shutil
import subprocess
import tarfile
from argparse import Namespace
from pathlib import Path

import nbformat
import psutil
import pytest
from here import needs, run

from casebook import places
from casebook.classroom import laptops, ready
from casebook.cli import ready as command
from casebook.errors import CasebookError, EnvironmentFailed, UsageError
from casebook.findings import media
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
    numbered = [path for path in BOOK.notebooks() if path.name[0].isdigit()]
    assert ready.chapters(BOOK, []) == numbered and len(numbered) > 20
    last = int(numbered[-1].stem.partition("_")[0])
    for wrong in ("77", "0", "a", "1.5", ""):
        with pytest.raises(UsageError, match=f"no chapter {wrong!r}; choose 1 to {last}"):
            ready.chapters(BOOK, [wrong])


def test_a_chapter_is_ready_once_a_cell_showed_something_and_no_cell_runs_after_it(tmp_path):
    path = written(tmp_path, "a = 1", "print('no result')", "a", "open('ran', 'w')")
    [(is_ready, line)] = ready.lines([path])
    assert is_ready and line.startswith("01_own: ready, its first output after ")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("cell", ["'shown'", "1 / 0", "print('nothing shown')"])
def test_no_kernel_is_left_of_a_chapter(tmp_path, cell):
    """Twenty-three of them would fill the memory of a small machine."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    list(ready.lines([written(tmp_path, cell)]))
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before


def test_what_is_not_ready_says_why(tmp_path, monkeypatch):
    [(is_ready, line)] = ready.lines([written(tmp_path, "1 / 0")])
    assert not is_ready and line == "01_own: not ready. ZeroDivisionError: division by zero"

    def ensure(*_, **__):
        raise EnvironmentFailed("environment stage-1-today cannot be made: no network\nand more")

    monkeypatch.setattr(ready.environments, "is_there", lambda stack: False)
    monkeypatch.setattr(ready.environments, "ensure", ensure)
    [(is_ready, line)] = ready.lines([written(tmp_path, '"stage-1-today"')])
    assert not is_ready
    assert line == "01_own: not ready. environment stage-1-today cannot be made: no network"


@needs("gzip")
@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ("tar: a/b: file changed as we read it\ntar: more", "tar: a/b: file changed as we read it. "
         "Something writes into it: close JupyterLab, let builds end, and try again"),
        ("tar: a/b: Cannot open", "tar: a/b: Cannot open"),
        ("", "tar: failed"),
    ],
)  # fmt: skip
def test_what_tar_says_is_one_sentence_and_no_half_archive_is_left(
    told: str, sentence: str, tmp_path: Path, monkeypatch
) -> None:
    def fail(command, **_):
        (tmp_path / "class.tar.gz").touch()
        return subprocess.CompletedProcess(command, 1, "", told)

    root = tmp_path / "book"
    (root / ".casebook" / "pythons").mkdir(parents=True)
    for name, path in {"ROOT": "", "LOCAL": ".casebook", "PYTHONS": ".casebook/pythons"}.items():
        monkeypatch.setattr(places, name, root / path)
    monkeypatch.setattr(laptops.subprocess, "run", fail)
    monkeypatch.setattr(laptops, "prefixes", lambda: ([], []))
    with pytest.raises(CasebookError) as caught:
        laptops.pack(tmp_path / "class.tar.gz")
    assert str(caught.value) == sentence and not (tmp_path / "class.tar.gz").exists()


@needs("gzip")
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
    monkeypatch.setattr(places, "PYTHONS", root / ".casebook" / "pythons")
    monkeypatch.setattr(laptops, "prefixes", lambda: ([python], [Path("/usr")]))
    said = laptops.pack(tmp_path / "class.tar.gz")
    assert "Each laptop needs the Python in /usr" in said and f"cd {root} && make lab" in said
    subprocess.run(["tar", "-xzf", tmp_path / "class.tar.gz", "-C", tmp_path], check=True)
    copy = tmp_path / str(root).lstrip("/") / kept[0]
    assert copy.stat().st_mtime_ns == (root / kept[0]).stat().st_mtime_ns
    with tarfile.open(tmp_path / "class.tar.gz") as tar:
        names = {"/" + name for name in tar.getnames() if tar.getmember(name).isfile()}
    listed = root / ".casebook/pythons/brought"
    assert names == {*(f"{root}/{name}" for name in kept), f"{python}/bin/python3.7", str(listed)}
    assert listed.read_text() == f"{python}\n"
    with pytest.raises(UsageError, match="is there already"):
        laptops.pack(tmp_path / "class.tar.gz")
    with pytest.raises(UsageError, match="would be in the folder"):
        laptops.pack(root / "class.tar.gz")


def test_a_machine_without_gzip_is_told_what_to_install(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "gzip" else f"/bin/{name}")
    with pytest.raises(CasebookError, match="install gzip and try again"):
        laptops.pack(tmp_path / "class.tar.gz")
    assert not (tmp_path / "class.tar.gz").exists()


def test_pythons_outside_of_the_system_are_taken_along():
    own, of_system = laptops.prefixes()
    for prefix in [*own, *of_system]:
        assert list((prefix / "bin").glob("python*")), prefix
    assert not any(prefix.is_relative_to("/usr") for prefix in own)
    assert subprocess.run(["tar", "--version"], capture_output=True).returncode == 0


#: Whether namespaces can be had: without a network, and with mounts of their own.
CUT = ("unshare", "-Urnmpf", "--kill-child", "--mount-proc")
#: What a laptop does: there is nothing but the loopback, and each Python is the unpacked one.
#: JupyterLab ends with this shell, which is the first process of its namespace.
ON_THE_LAPTOP = """
set -e
ip link set lo up
for python in $PYTHONS; do mount --bind "$UNPACKED$python" "$python"; done
.venv/bin/python -c 'import socket; print(socket.if_nameindex())'
.venv/bin/python -m casebook ready 1 2
.venv/bin/python -m jupyter execute --inplace notebooks/01_one_at_a_time.ipynb
make lab ARGS="--allow-root --no-browser --port 0" > lab.log 2>&1 &
for _ in $(seq 600); do grep -m1 "is running at" lab.log && exit; sleep 1; done
cat lab.log
exit 1
"""


@pytest.mark.nightly
@pytest.mark.timeout(2400)
@needs("unshare")
@pytest.mark.skipif(
    bool(shutil.which("unshare")) and run(*CUT, "true").returncode != 0,
    reason="no namespaces can be had here",
)
def test_a_laptop_with_the_network_cut_runs_a_lesson(tmp_path):
    """The archive is made of a checkout that is gone when it is unpacked.

    The home is another one, in which there is nothing.
    """
    book, unpacked, home = (tmp_path / name for name in ("book", "unpacked", "home"))
    ignore = shutil.ignore_patterns(".git", ".venv", ".casebook", "_build", "__pycache__")
    shutil.copytree(places.ROOT, book, symlinks=True, ignore=ignore)
    own = {"cwd": book, "timeout": 900, "check": True}
    run("make", ".venv/book.stamp", **own)
    run(".venv/bin/python", "-m", "casebook", "ready", "1", "2", **own)
    run(".venv/bin/python", "-m", "casebook", "laptops", tmp_path / "class.tar.gz", **own)
    pythons = (book / ".casebook/pythons/brought").read_text().split()
    shutil.rmtree(book)
    unpacked.mkdir()
    run("tar", "-xzf", tmp_path / "class.tar.gz", "-C", unpacked, check=True)
    shutil.move(unpacked / str(book).lstrip("/"), book)
    home.mkdir()
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(home),
               "PYTHONS": " ".join(pythons), "UNPACKED": str(unpacked)}  # fmt: skip
    laptop = run(*CUT, "sh", "-c", ON_THE_LAPTOP, cwd=book, env=environ, timeout=1200)
    assert laptop.returncode == 0, laptop.stdout + laptop.stderr
    network, *lines, lab = laptop.stdout.splitlines()
    assert network == "[(1, 'lo')]" and "is running at" in lab
    assert [line.partition(",")[0] for line in lines] == [
        "01_one_at_a_time: ready", "02_all_at_once: ready",
    ]  # fmt: skip
    executed = nbformat.read(book / "notebooks" / "01_one_at_a_time.ipynb", as_version=4)
    outcomes = [*media.records(executed, media.CLAIM)]
    assert len(outcomes) > 3 and all(record["live"] for record in outcomes)


@pytest.mark.parametrize(
    ("are_ready", "missing"), [([False, True], 1), ([True, False, False], 2), ([True, True], 0)]
)
def test_a_machine_is_ready_where_all_of_its_chapters_are(are_ready, missing, monkeypatch, capsys):
    rows = [(is_ready, f"chapter {number}") for number, is_ready in enumerate(are_ready)]
    monkeypatch.setattr(ready, "lines", lambda _: iter(rows))
    if missing:
        with pytest.raises(CasebookError, match=f"^{missing} not ready: the lines above say why"):
            command.run(Namespace(chapter=["1"]))
    else:
        command.run(Namespace(chapter=["1"]))
    assert capsys.readouterr().out.splitlines() == [line for _, line in rows]
