"""requests' own tests, from its source distribution, come out with the cure as without it."""

import os
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest
from here import BREADTH, python_in, run

from casebook import places, stacks
from casebook.stacks import installers

STACK = stacks.get("requests-own-tests-today")
#: The release of the stack, and the two before it.
NEWEST, BEFORE = STACK.packages["requests"], ["2.34.1", "2.34.0"]
SDISTS = places.LOCAL / "sdists"
PIP = "pip==26.3"

#: Tests that ask addresses beyond this machine, to see a time-out or a name that does not exist.
BEYOND = (
    "TestTimeout::test_connect_timeout",
    "TestTimeout::test_total_timeout_connect",
    "TestRequests::test_errors[http://doesnotexist.google.com-ConnectionError]",
)


def outcomes(archive: Path, folder: Path, packages: list[Path], *more: str) -> dict[str, str]:
    """Unpack a source distribution and run its suite.

    Returns test to "passed", "failure", "error" or "skipped".

    packages: folders beside the stack's. more: options of pytest.
    """
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    [source] = folder.glob("requests-*")
    report = folder / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", *more, f"--junitxml={report}"]
    options += [f"--deselect=tests/test_requests.py::{test}" for test in BEYOND]
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, packages)),
        "SHARED": str(folder / "shared"),
    }
    how = {"variables": variables, "cwd": source, "timeout": 600, "stdin": subprocess.DEVNULL}
    done = python_in(STACK.name, "-m", "pytest", "tests", *options, **how)
    assert done.returncode in (0, 1), done.stdout[-3000:]
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        tags = {child.tag for child in case} & {"failure", "error", "skipped"}
        name = f"{case.get('classname')}::{case.get('name')}".replace(str(folder), "")
        assert name not in found
        found[name] = next(iter(tags), "passed")
    return found


def sdist(release: str) -> Path:
    """The source distribution of a release, downloaded once."""
    path = SDISTS / f"requests-{release}.tar.gz"
    if not path.exists():
        download = installers.uv("tool", "run", "--no-python-downloads")
        download += ["--python", Path(sys.executable).resolve(), "--from", PIP, "pip", "download"]
        download += ["--quiet", "--no-deps", "--no-binary", ":all:", "--dest", SDISTS]
        done = run(*download, f"requests=={release}")
        assert done.returncode == 0, done.stderr
    return path


@pytest.mark.nightly  # another program's whole suite
@pytest.mark.breadth
@pytest.mark.parametrize(
    "release", [NEWEST, *(pytest.param(release, marks=BREADTH) for release in BEFORE)]
)
def test_requests_own_tests_come_out_alike(release, tmp_path, cure):
    packages = []
    if release != NEWEST:
        packages = [tmp_path / "packages"]
        install = installers.uv("pip", "install", "--target", *packages, "--no-deps")
        run(*install, f"requests=={release}", check=True)
    curing = [*packages, cure, Path(__file__).parent / "plugins"]
    kinds = {"stock": [packages], "cured": [curing, "-p", "cured_by_default"]}
    with ThreadPoolExecutor(len(kinds)) as threads:  # nearly all of their time is waiting
        running = [
            threads.submit(outcomes, sdist(release), tmp_path / kind, *how)
            for kind, how in kinds.items()
        ]
    stock, cured = (each.result() for each in running)
    assert cured == stock
    assert list(stock.values()).count("passed") > 600
    assert int((tmp_path / "cured" / "shared").read_text()) > 1
