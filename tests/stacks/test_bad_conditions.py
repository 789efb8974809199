"""A home that cannot be written, no git, a full disk, no packages.

Each ends in a measurement, in a recorded one that says so, or in a sentence.

(A proxy that breaks TLS with an authority of its own is in test_installers.py, a machine with
nothing but Python and make in .ci/bare.)
"""

import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from here import environment, run

from casebook import listings, measure, places, stacks
from casebook.errors import EnvironmentFailed
from casebook.laboratory import experiment
from casebook.stacks import environments, installation

#: A command of casebook, with its own folder for what it makes.
CASEBOOK = """
import sys
from pathlib import Path
from casebook import cli, places
places.LOCAL = Path(sys.argv[1])
places.ENVIRONMENTS = places.LOCAL / "envs"
sys.exit(cli.main(sys.argv[2:]))
"""
MEASURE = ("measure", "stage-1-today", "--n", "3", "--delay", "0.05", "--repeats", "1")


def casebook(local: Path, *arguments: object, before: tuple[object, ...] = (), **environ: str):
    """What a command says. before: of the Python that runs it. environ: variables that differ."""
    kept = {key: value for key, value in os.environ.items() if key != "UV_CACHE_DIR"}
    command = (*before, sys.executable, "-c", CASEBOOK, local, *arguments)
    return run(*command, env=kept | environ)


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    """The environment is made and measured; packages are kept beside it, not in that home."""
    done = casebook(tmp_path, *MEASURE, HOME="/dev/null/home")
    assert done.returncode == 0 and "stage-1-today" in done.stdout, done.stderr
    assert (tmp_path / "uv-cache").is_dir()


def test_without_git(tmp_path: Path) -> None:
    """Nor anything else on the PATH."""
    environment("stage-1-today")
    done = run(sys.executable, "-m", "casebook", *MEASURE, env=os.environ | {"PATH": str(tmp_path)})
    assert done.returncode == 0 and "stage-1-today" in done.stdout, done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> tuple[object, ...]:
    """What a command is run by, so that it finds a disk of two megabytes at tmp_path."""
    alone = ("unshare", "-Urm")
    if not shutil.which("unshare") or run(*alone, "mount", "-t", "tmpfs", "t", tmp_path).returncode:
        pytest.skip("unshare(1) cannot give a process a disk of its own here")
    mount = f'mount -t tmpfs -o size=2m small "{tmp_path}" && exec "$@"'
    return (*alone, "sh", "-c", mount, "sh")


def test_an_environment_on_a_full_disk(tmp_path: Path, small_disk) -> None:
    cache = str(Path.home() / ".cache" / "uv")
    done = casebook(tmp_path, *MEASURE, before=small_disk, UV_CACHE_DIR=cache)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "the environment of stage-1-today could not be made" in done.stderr
    assert "No space left on device" in done.stderr


def test_a_file_on_a_full_disk(tmp_path: Path, small_disk) -> None:
    """Whatever a command writes: here a machine file of zeros, larger than the disk."""
    zeros = """
import sys
from casebook import cli
cli.machine.save = lambda options: options.file.write_bytes(bytes(4_000_000))
sys.exit(cli.main(["machine", "save", sys.argv[1]]))
"""
    done = run(*small_disk, sys.executable, "-c", zeros, tmp_path / "zeros.jsonl.xz")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("casebook: No space left on device") and "make room" in line


# No packages: a lock names an index at a port that nobody listens to


@pytest.fixture
def without_packages(tmp_path: Path, monkeypatch) -> Iterator[Path]:
    """Two stacks whose packages cannot be had. The folder of environments, which is empty."""
    monkeypatch.setattr(places, "ENVIRONMENTS", tmp_path / "envs")
    monkeypatch.setattr(places, "ENV", tmp_path / "env")
    monkeypatch.setattr(experiment, "_reported", set())
    for name in ("CASEBOOK_REQUIRE", "CASEBOOK_BUILD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    shutil.copytree(stacks.TABLE.parent, places.ENV)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        index = f"--index-url http://127.0.0.1:{closed.getsockname()[1]}/simple\n"
        for lock in ("stage-1-today", "stage-2-today"):
            file = places.ENV / "locks" / f"{lock}.txt"
            file.write_text(index + file.read_text())
        yield tmp_path / "envs"


def last_try(folder: Path) -> int:
    """When stage-1-today was tried last, ns: the installer's log begins anew each time."""
    [log] = folder.glob("stage-1-today*.log")
    return log.stat().st_mtime_ns


def test_a_cell_shows_what_was_recorded_and_says_so_in_one_line(
    without_packages: Path, capsys
) -> None:
    def cell() -> list[str]:
        frame = measure("stage-1-today", n=3, repeats=1)
        assert set(frame["source"]) == {"reference"} and len(frame)
        return [line for line in capsys.readouterr().err.splitlines() if "stand in" in line]

    [line] = cell()
    assert line.startswith("the environment of stage-1-today could not be made (exit code")
    assert "recorded runs stand in" in line and "stacks --make" in line
    first = last_try(without_packages)
    assert cell() == []  # said once, and not tried again in each cell
    shown = listings.source("stage-1-today", "requests.sessions", "Session.send").text
    assert shown.startswith("Not shown here") and str(without_packages) not in shown
    assert last_try(without_packages) == first


def test_what_is_not_recorded_is_an_error_that_says_why(without_packages: Path) -> None:
    with pytest.raises(EnvironmentFailed, match="Connection refused"):
        measure("stage-1-today", n=3, repeats=1, trust="off-hidden", client="requests")


def test_it_is_tried_again_after_a_while_on_request_and_by_another_process(
    without_packages: Path, monkeypatch
) -> None:
    stack = stacks.get("stage-1-today")

    def tried(again: bool = False) -> bool:
        before = last_try(without_packages)
        time.sleep(0.01)
        with pytest.raises(EnvironmentFailed):
            environments.ensure(stack, retry=again)
        return last_try(without_packages) != before

    with pytest.raises(EnvironmentFailed):
        environments.ensure(stack)
    assert not tried() and tried(again=True)
    monkeypatch.setattr(installation, "AGAIN_AFTER_S", 0.0)
    assert tried()
    monkeypatch.setenv("CASEBOOK_BUILD", "1")  # its beginning has tried
    assert not tried()
    monkeypatch.delenv("CASEBOOK_BUILD")
    monkeypatch.setattr(installation, "AGAIN_AFTER_S", 60.0)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert tried()


def test_what_is_mended_is_measured(without_packages: Path, monkeypatch) -> None:
    """And a page that showed what was recorded is made again: its stamp is another one."""
    from casebook.pages import staleness

    stack = stacks.get("stage-1-today")
    assert not experiment.can_run(stack)
    monkeypatch.setattr(installation, "AGAIN_AFTER_S", 0.0)  # as in a build that takes its time
    before = staleness._of_stack(stack)
    file = stack.lock_file
    file.write_text(file.read_text().partition("\n")[2])
    assert experiment.can_run(stack)
    assert set(measure("stage-1-today", n=3, repeats=1)["source"]) == {"live"}
    assert before == "" and staleness._of_stack(stack)


def test_whoever_accepts_no_fallback_gets_none(without_packages: Path, monkeypatch) -> None:
    monkeypatch.setenv("CASEBOOK_REQUIRE", "chromium")
    with pytest.raises(EnvironmentFailed):
        measure("stage-1-today", n=3, repeats=1)


def test_those_that_cannot_be_made_are_named_and_the_others_are_made(
    without_packages: Path,
) -> None:
    wanted = [stacks.get(f"stage-{i}-today") for i in (1, 2)] + [stacks.get("stage-0")]
    with pytest.raises(EnvironmentFailed) as error:
        environments.ensure_all(wanted, lambda line: None)
    said = str(error.value)
    assert "Connection refused" in said and "1 more, whose logs are" in said
    assert all(f"the environment of stage-{i}-today could not be made" in said for i in (1, 2))
