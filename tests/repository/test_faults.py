"""Faults that got through once: tests/faults.toml has them, and each has to be caught tonight.

Each is put into a copy of the files, never into this checkout, and the tests that it names run
there. That they pass without it is tried first: a test that fails anyway notices nothing.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from copies import copy_to

from casebook import places

FAULTS = tomllib.loads((places.ROOT / "tests" / "faults.toml").read_text(encoding="utf-8"))["fault"]
#: What pytest leaves with where tests ran and failed, and nothing else went wrong.
SOME_FAILED = 1


def name_of(fault: dict[str, Any]) -> str:
    return f"{Path(fault['file']).stem}-{fault['replacement'].split(chr(10))[0].strip()[:40]}"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all files, in which a fault can be put."""
    return copy_to(tmp_path_factory.mktemp("faults") / "book")


def make_products(copy: Path) -> None:
    """Make the single files of the copy from its sources, as `make products` does."""
    products = copy / "packages"
    builder = products / "tls-doctor" / "single_file.py"
    subprocess.run([sys.executable, builder, copy / "doctor.py"], check=True)
    cure = products / "requests-shared-context" / "src" / "requests_shared_context" / "__init__.py"
    shutil.copyfile(cure, copy / "shared_context.py")


def outcome(copy: Path, tests: list[str]) -> tuple[int, str]:
    """What pytest leaves with in the copy, and what it prints."""
    # The copy goes before the checkout in which this package is installed.
    environ = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-m", "", *tests]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"], cwd=copy, env=environ, capture_output=True, text=True,
        timeout=1500,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_the_place_of_a_fault_is_still_there(fault: dict[str, Any]) -> None:
    """What was rewritten has its fault written anew."""
    assert set(fault) == {"file", "text", "replacement", "tests", "effect"} and fault["tests"]
    content = (places.ROOT / fault["file"]).read_text(encoding="utf-8")
    assert content.count(fault["text"]) == 1 and fault["text"] != fault["replacement"]
    for test in fault["tests"]:
        file, *functions = test.partition("[")[0].split("::")
        text = (places.ROOT / file).read_text(encoding="utf-8")
        assert all(f"def {function}(" in text for function in functions), test


@pytest.mark.nightly
@pytest.mark.breadth
@pytest.mark.timeout(1800)
def test_without_a_fault_their_tests_pass(copy: Path) -> None:
    every = dict.fromkeys(test for fault in FAULTS for test in fault["tests"])
    code, printed = outcome(copy, list(every))
    assert code == 0, printed[-5000:]


@pytest.mark.nightly
@pytest.mark.breadth
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_no_fault_gets_through_again(copy: Path, fault: dict[str, Any]) -> None:
    file = copy / fault["file"]
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(fault["text"], fault["replacement"]), encoding="utf-8")
    try:
        make_products(copy)
        code, printed = outcome(copy, fault["tests"])
    finally:
        file.write_text(text, encoding="utf-8")
        make_products(copy)
    assert code == SOME_FAILED, f"{fault['effect']}\n{printed[-3000:]}"
