"""requests' own tests, from its source distribution, come out with the cure as without it."""

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as xml
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from here import run
from trust_runs import nightly

from casebook import places, stacks
from casebook.stacks import environments, installers

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


class Suite:
    """A run of the suite in a folder of its own, in a process for each of its parts.

    source: its archive. packages: folders of packages, beside the stack's. more: options of pytest.
    """

    def __init__(self, source: Path, folder: Path, packages: list[Path], *more: str):
        self.folder, self.processes = folder, {}
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        [unpacked] = folder.glob("requests-*")
        options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", *more]
        options += [f"--deselect=tests/test_requests.py::{test}" for test in BEYOND]
        place = environments.ensure(STACK)
        variables = environments.clean_environ(place)
        variables["PYTHONPATH"] = os.pathsep.join(map(str, packages))
        for part, tests in PARTS.items():
            command = [place.python, "-m", "pytest", *tests, *options]
            with open(folder / f"{part}.log", "w") as log:
                self.processes[part] = subprocess.Popen(
                    [*command, f"--junitxml={folder / part}.xml"], cwd=unpacked,
                    env=variables | {"SHARED": str(folder / f"{part}.shared")},
                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                )  # fmt: skip

    def outcomes(self) -> dict[str, str]:
        """Test to "passed", "failed", "error" or "skipped", when all have run."""
        found = {}
        for part, process in self.processes.items():
            code = process.wait(timeout=600)
            assert code in (0, 1), (self.folder / f"{part}.log").read_text()[-3000:]
            for case in xml.parse(self.folder / f"{part}.xml").iter("testcase"):
                tags = {child.tag for child in case} & {"failure", "error", "skipped"}
                name = f"{case.get('classname')}::{case.get('name')}".replace(str(self.folder), "")
                assert name not in found
                found[name] = next(iter(tags), "passed")
        return found

    def shared(self) -> int:
        """How many connections had a shared context."""
        return sum(int((self.folder / f"{part}.shared").read_text()) for part in PARTS)

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


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
    curing, plugin = [*packages, cure, Path(__file__).parent / "plugins"], "cured_by_default"
    suite = partial(Suite, sdist(release))
    with (
        closing(suite(tmp_path / "stock", packages)) as without,
        closing(suite(tmp_path / "cured", curing, "-p", plugin)) as cured,
    ):
        stock = without.outcomes()
        assert cured.outcomes() == stock
        assert list(stock.values()).count("passed") > 600
        assert cured.shared() > 1
