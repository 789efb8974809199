"""requests' own test-suite, from its source distribution, run without the cure and with it."""

import contextlib
import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from here import run

from casebook import places, stacks
from casebook.stacks import environments, installers

STACK = stacks.get("requests-own-tests-today")
#: The three newest releases; the first is the one of the stack.
RELEASES = ["2.34.2", "2.34.1", "2.34.0"]
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


@dataclass
class Suite:
    """A run of the suite, in a process for each of its parts."""

    processes: dict[str, subprocess.Popen]
    folder: Path

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


@contextlib.contextmanager
def both(release: str, folder: Path, cure: Path) -> Iterator[tuple[Suite, Suite]]:
    """The suites of a release of requests, without the cure and with it, beside each other.

    `folder` is an empty one for what they need, `cure` holds a copy of shared_context.py.
    """
    packages = None if release == STACK.packages["requests"] else folder / "packages"
    if packages:
        install = installers.uv("pip", "install", "--target", packages, "--no-deps")
        run(*install, f"requests=={release}", check=True)
    source = _sdist(release)
    suites = [
        _start(source, folder / kind, [packages, *more])
        for kind, more in (("stock", []), ("cured", [cure, Path(__file__).parent / "plugins"]))
    ]
    try:
        yield tuple(suites)
    finally:
        for process in (process for suite in suites for process in suite.processes.values()):
            process.kill()
            process.wait()


def _sdist(release: str) -> Path:
    """The source distribution of a release, downloaded once."""
    path = SDISTS / f"requests-{release}.tar.gz"
    if not path.exists():
        download = installers.uv("tool", "run", "--no-python-downloads")
        download += ["--python", Path(sys.executable).resolve(), "--from", PIP, "pip", "download"]
        download += ["--quiet", "--no-deps", "--no-binary", ":all:", "--dest", SDISTS]
        done = run(*download, f"requests=={release}")
        assert done.returncode == 0, done.stderr
    return path


def _start(source: Path, folder: Path, packages: list[Path | None]) -> Suite:
    """Start the suite in a folder of its own, with more folders of packages before the stack's."""
    environment = environments.ensure(STACK)
    folder.mkdir()
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    [unpacked] = folder.glob("requests-*")
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts="]
    options += [f"--deselect=tests/test_requests.py::{test}" for test in BEYOND]
    if folder.name == "cured":
        options += ["-p", "cured_by_default"]
    path = os.pathsep.join(str(each) for each in packages if each)
    processes = {}
    for part, tests in PARTS.items():
        command = [environment.python, "-m", "pytest", *tests, *options]
        variables = {"PYTHONPATH": path, "SHARED": str(folder / f"{part}.shared")}
        with open(folder / f"{part}.log", "w") as log:
            processes[part] = subprocess.Popen(
                [*command, f"--junitxml={folder / part}.xml"], cwd=unpacked,
                env=environments.clean_environ(environment) | variables,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
    return Suite(processes, folder)
