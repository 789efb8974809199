"""Both products as a stranger installs them: by pip, with each Python that is here."""

import os
import re
import shutil
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from here import another_python, run

from casebook import places
from casebook.stacks import installers

#: The cure asks for 3.7; the doctor's file, which also runs on 2.7, is tried in tests/doctor.
PYTHONS = ("3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")

USED = """
import warnings
warnings.simplefilter("error")
import requests, requests_shared_context as cure
cure.install()
cure.preload()
print(cure.stats()["loads"], cure.stats()["unknown"] or "known")
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> list[Path]:
    """What `make dist` builds: uv makes each wheel of its source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    # This run has its environment: make is not to make it again.
    done = run("make", "-o", ".venv/book.stamp", "dist", f"DIST={folder}")
    assert done.returncode == 0, done.stderr
    return sorted(folder.glob("*.whl"))


@pytest.mark.parametrize("version", PYTHONS)
def test_both_are_installed_agree_and_run(wheels: list[Path], version: str, tmp_path: Path) -> None:
    python, folder = another_python(version), tmp_path / "venv"
    for command in (
        installers.uv("venv", "--python", python, folder),
        installers.uv("pip", "install", "--python", folder, *wheels),
        installers.uv("pip", "check", "--python", folder),
    ):
        done = run(*command)
        assert done.returncode == 0, done.stderr
    done = run(folder / "bin" / "python", "-c", USED, cwd=tmp_path)
    assert done.stdout.split() == ["1", "known"], done.stderr
    (tmp_path / "program.py").write_text(USED)
    done = run(folder / "bin" / "tls-doctor", "run", "--", "program.py", cwd=tmp_path)
    assert f"Python {version}." in done.stdout and "1 known" in done.stderr, done.stdout


def test_each_says_what_an_index_shows_of_it(wheels: list[Path]) -> None:
    assert len(wheels) == 2
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            assert any(name.endswith("/py.typed") for name in archive.namelist())
            [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
            told = message_from_bytes(archive.read(name))
        assert told["Description-Content-Type"] == "text/markdown"
        assert told["License-Expression"] == "MIT" and told["Requires-Python"] and told["Summary"]
        # A page on an index has no folder beside it.
        assert "](../" not in told.get_payload() and "](book/" not in told.get_payload()


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", ["the book's", "3.13", "3.14"])
@pytest.mark.parametrize("name", ["tls-doctor", "requests-shared-context"])
def test_its_tests_need_no_book(name: str, version: str, tmp_path: Path) -> None:
    """Its folder alone, with what its test group names."""
    folder, venv = tmp_path / name, tmp_path / "venv"
    python = sys.executable if version == "the book's" else another_python(version)
    shutil.copytree(places.ROOT / "packages" / name, folder)
    for command in (
        installers.uv("venv", "--python", python, venv),
        installers.uv("pip", "install", "--python", venv, "--group", "test", "."),
    ):
        done = run(*command, cwd=folder)
        assert done.returncode == 0, done.stderr
    tests = [venv / "bin" / "python", "-m", "pytest", "-q", "-c", "pyproject.toml", "tests"]
    environ = {"PATH": os.defpath, "HOME": str(tmp_path), "PYTHONPATH": "src"}
    done = run(*tests, cwd=folder, env=environ)
    assert done.returncode == 0, done.stdout[-2000:]
    end = done.stdout[-200:]
    assert re.search(r"^\d+ passed(, \d skipped)? in", end, re.MULTILINE), end
