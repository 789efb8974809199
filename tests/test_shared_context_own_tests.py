"""requests' own tests, from its source distribution, come out with the cure as without it."""

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from here import python_in, run
from trust_runs import nightly

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
#: Nearly all of the suite's time is waiting, in these places. So each has a process of its own.
WAITING = {
    "testserver": "tests/test_testserver.py",
    "lowlevel": "tests/test_lowlevel.py",
    "read_timeout": "tests/test_requests.py::TestTimeout::test_read_timeout",
    "stream_timeout": "tests/test_requests.py::TestTimeout::test_stream_timeout",
}
OTHERS = ["tests", *(f"--deselect={place}" for place in WAITING.values())]
PARTS = {**{name: [place] for name, place in WAITING.items()}, "others": OTHERS}


def outcomes(part: str, source: Path, packages: list[Path], *more: str) -> dict[str, str]:
    """Run a part of the suite, in a process of its own: test to "passed", "failure", "error" or
    "skipped".

    source: the suite's folder. packages: folders beside the stack's. more: options of pytest.
    """
    report = source.with_name(f"{part}.xml")
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", *more, f"--junitxml={report}"]
    options += [f"--deselect=tests/test_requests.py::{test}" for test in BEYOND]
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, packages)),
        "SHARED": str(report.with_suffix(".shared")),
    }
    how = {"variables": variables, "cwd": source, "timeout": 600, "stdin": subprocess.DEVNULL}
    done = python_in(STACK.name, "-m", "pytest", *PARTS[part], *options, **how)
    assert done.returncode in (0, 1), done.stdout[-3000:]
    found = {}
    for case in xml.parse(report).iter("testcase"):
        tags = {child.tag for child in case} & {"failure", "error", "skipped"}
        name = f"{case.get('classname')}::{case.get('name')}".replace(str(source.parent), "")
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


@pytest.mark.parametrize(
    "release", [NEWEST, *(pytest.param(release, marks=nightly) for release in BEFORE)]
)
def test_requests_own_tests_come_out_alike(release, tmp_path, cure):
    packages = []
    if release != NEWEST:
        packages = [tmp_path / "packages"]
        install = installers.uv("pip", "install", "--target", *packages, "--no-deps")
        run(*install, f"requests=={release}", check=True)
    curing = [*packages, cure, Path(__file__).parent / "plugins"]
    kinds = {"stock": [packages], "cured": [curing, "-p", "cured_by_default"]}
    running = {}
    with ThreadPoolExecutor(len(kinds) * len(PARTS)) as threads:
        for kind, how in kinds.items():
            with tarfile.open(sdist(release)) as archive:
                archive.extractall(tmp_path / kind, filter="data")
            [source] = (tmp_path / kind).glob("requests-*")
            running[kind] = [threads.submit(outcomes, part, source, *how) for part in PARTS]
    stock, cured = ([part.result() for part in running[kind]] for kind in kinds)
    assert cured == stock
    assert sum(list(part.values()).count("passed") for part in stock) > 600
    shared = [int(path.read_text()) for path in (tmp_path / "cured").glob("*.shared")]
    assert len(shared) == len(PARTS) and sum(shared) > 1
