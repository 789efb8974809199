"""The cure as a distribution, and beside a requests that it does not know."""

import tarfile

import pytest
from here import environment, python_in, run
from trust_runs import CURE, NEWEST, OLDEST

from casebook.stacks import installers

#: For an environment into which the distribution was installed.
OF_WHEEL = """
import sys
from pathlib import Path
import requests, requests_shared_context as installed
installed.install()
for _ in range(3):
    assert requests.get(sys.argv[1], verify=sys.argv[2]).status_code == 200
assert installed.stats()["shared"] == 3 and installed.stats()["loads"] == 1
assert installed.logger.name == "requests_shared_context"
place = Path(installed.__file__)
assert place.with_name("py.typed").exists()
assert place.read_bytes() == Path(sys.argv[3]).read_bytes()
[metadata] = place.parents[1].glob("requests_shared_context-*.dist-info/METADATA")
written = metadata.read_text().splitlines()
assert "Version: " + installed.__version__ in written and "Requires-Dist: requests>=2.21" in written
assert any(line.startswith("Requires-Dist: urllib3") for line in written)
assert "License-Expression: MIT" in written and any(line.startswith("Author") for line in written)
assert list(metadata.parent.rglob("LICENSE"))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with what `make dist` builds."""
    folder = tmp_path_factory.mktemp("dist")
    # This run has its environment: make is not to make it again.
    done = run("make", "-o", ".venv/book.stamp", "dist", f"DIST={folder}")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("stack", [OLDEST, NEWEST])
def test_the_distribution_works_when_it_is_installed(built, world, tmp_path, stack):
    [wheel] = built.glob("requests_shared_context-*.whl")
    install = installers.uv("pip", "install", "--target", tmp_path, "--no-deps", "--offline")
    done = run(*install, "--python", environment(stack).python, wheel)
    assert done.returncode == 0, done.stderr
    told = [world["urls"]["valid"], world["paths"]["file"], CURE]
    path = {"PYTHONPATH": str(tmp_path)}
    done = python_in(stack, "-c", OF_WHEEL, *told, variables=path)
    assert done.returncode == 0, done.stderr


def test_the_source_distribution_holds_the_one_file_that_the_repository_has(built):
    [path] = built.glob("requests_shared_context-*.tar.gz")
    with tarfile.open(path) as archive:
        [name] = [path for path in archive.getnames() if path.endswith("/__init__.py")]
        assert archive.extractfile(name).read() == CURE.read_bytes()
        inside = {each.partition("/")[2] for each in archive.getnames()}
        assert {"LICENSE", "CHANGELOG.md", "SECURITY.md", "tests/trust_attacks.py"} <= inside


def test_a_requests_that_is_too_old_stays_as_it_is_and_that_is_said(cure, tmp_path):
    run(*installers.uv("pip", "install", "--target", tmp_path, "--no-deps"), "requests==2.20.1")
    path = {"PYTHONPATH": f"{tmp_path}:{cure}"}
    command = "import shared_context; print(shared_context.stats()['unknown'])"
    done = python_in("requests-2.24.0-py37", "-c", command, variables=path)
    assert done.stdout.startswith("requests 2.20.1 with urllib3"), done.stderr
    assert "RuntimeWarning" in done.stderr and "requests stays as it is" in done.stderr
