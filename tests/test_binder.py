"""What Binder would make of this repository, as repo2docker tells without building it."""

import shutil
import sys
from pathlib import Path

import pytest
from here import run

from casebook import places

FILES = ("requirements.txt", "runtime.txt", "postBuild")


@pytest.fixture(scope="module")
def dockerfile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Dockerfile for the files that Binder reads."""
    root: Path = tmp_path_factory.mktemp("binder") / "repository"
    root.mkdir()
    for name in FILES:
        shutil.copy(places.ROOT / name, root)
    said = run(sys.executable, "-m", "repo2docker", "--no-build", "--debug", root)
    assert said.returncode == 0, said.stderr
    return said.stdout + said.stderr


def test_binder_reads_our_files(dockerfile: str) -> None:
    assert 'pip install --no-cache-dir -r "requirements.txt"' in dockerfile
    assert "RUN ./postBuild" in dockerfile


def test_binder_uses_the_python_of_runtime_txt(dockerfile: str) -> None:
    version = (places.ROOT / "runtime.txt").read_text().strip().removeprefix("python-")
    assert f"Building conda environment for python={version}" in dockerfile


def test_nothing_hides_our_files_from_binder() -> None:
    for name in ("binder", ".binder", "environment.yml", "Pipfile", "setup.py"):
        assert not (places.ROOT / name).exists()
