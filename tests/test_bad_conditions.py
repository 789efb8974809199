"""A home that cannot be written, no git, a full disk: each ends in a measurement or in a sentence.

(A proxy that breaks TLS with an authority of its own is in tests/test_installers.py, a machine with
nothing but Python and make in .ci/bare.)
"""

import os
import shutil
import sys
from pathlib import Path

import pytest
from here import environment, run

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
cli._machine_save = lambda options: options.file.write_bytes(bytes(4_000_000))
sys.exit(cli.main(["machine", "save", sys.argv[1]]))
"""
    done = run(*small_disk, sys.executable, "-c", zeros, tmp_path / "zeros.jsonl.xz")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("casebook: No space left on device") and "make room" in line
