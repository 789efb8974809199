"""requests' own test-suite, from its source distribution, run with and without the cure."""

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as xml
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from casebook import environments, places, stacks

STACK = stacks.get("requests-own-tests-today")
SDISTS = places.LOCAL / "sdists"
PIP = "pip==26.3"

#: Tests that ask addresses beyond this machine, to see a time-out or a name that does not exist.
BEYOND = (
    "TestTimeout::test_connect_timeout",
    "TestTimeout::test_total_timeout_connect",
    "TestRequests::test_errors[http://doesnotexist.google.com-ConnectionError]",
)


@dataclass
class Suite:
    """A run of the suite that goes on in the background."""

    process: subprocess.Popen
    folder: Path

    def outcomes(self) -> dict[str, str]:
        """Test to "passed", "failed", "error" or "skipped", when all have run."""
        code = self.process.wait(timeout=900)
        assert code in (0, 1), (self.folder / "log").read_text()[-3000:]
        found = {}
        for case in xml.parse(self.folder / "junit.xml").iter("testcase"):
            tags = {child.tag for child in case} & {"failure", "error", "skipped"}
            name = f"{case.get('classname')}::{case.get('name')}".replace(str(self.folder), "")
            found[name] = next(iter(tags), "passed")
        return found

    def shared(self) -> int:
        """How many contexts the cure shared."""
        return int((self.folder / "shared").read_text())


def sdist() -> Path:
    """The source distribution of the stack's requests, downloaded once."""
    version = STACK.packages["requests"]
    path = SDISTS / f"requests-{version}.tar.gz"
    if not path.exists():
        download = [find_uv_bin(), "tool", "run", "--no-python-downloads"]
        download += ["--python", Path(sys.executable).resolve(), "--from", PIP, "pip", "download"]
        download += ["--quiet", "--no-deps", "--no-binary", ":all:", "--dest", SDISTS]
        done = subprocess.run([*download, f"requests=={version}"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return path


def start(folder: Path, cure: Path | None) -> Suite:
    """Start the suite in a folder of its own; `cure` holds a copy of shared_context.py."""
    environment = environments.ensure(STACK)
    folder.mkdir()
    with tarfile.open(sdist()) as archive:
        archive.extractall(folder, filter="data")
    [source] = folder.glob("requests-*")
    command = [environment.python, "-m", "pytest", "tests", "-q", "-p", "no:cacheprovider"]
    command += ["-o", "addopts=", "--junitxml", folder / "junit.xml"]
    for test in BEYOND:
        command += ["--deselect", f"tests/test_requests.py::{test}"]
    variables = {"SHARED": str(folder / "shared")}
    if cure:
        command += ["-p", "cured_by_default"]
        variables["PYTHONPATH"] = os.pathsep.join(
            [str(Path(__file__).parent / "plugins"), str(cure)]
        )
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(
            command, cwd=source, env=environments.clean_environ(environment) | variables,
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    return Suite(process, folder)
