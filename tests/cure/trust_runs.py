"""Runs the client scripts beside this file inside stacks' environments."""

import contextlib
import importlib.util
import json
import os
from pathlib import Path

import here
import pytest

from casebook import places
from casebook.cases.reference_run import TIME_MACHINE
from casebook.stacks import installers

#: The releases that load when they are imported.
PRELOADED = ("requests-2.32.2-today", "requests-2.32.4-today")
OLDEST, *_, NEWEST = TIME_MACHINE


def marks(is_typical: bool, is_in_ci: bool) -> object:
    """How often one of many like it is run: in every run, in `make test-all`, or by night."""
    return () if is_typical else pytest.mark.slow if is_in_ci else here.BREADTH


def releases(but=(), typical=(OLDEST, PRELOADED[-1], NEWEST)):
    """Run a test with all of them: the typical ones in every run, three in `make test-all`."""
    in_ci = (OLDEST, PRELOADED[-1], NEWEST)
    return pytest.mark.parametrize(
        "stack",
        [
            pytest.param(name, marks=marks(name in typical, name in in_ci))
            for name in TIME_MACHINE
            if name not in but
        ],
    )


every_release = releases(typical=[NEWEST])
CURE = places.CURE
#: The cure as a module of its own, for the releases that it knows.
_spec = importlib.util.spec_from_file_location("shared_context", CURE)
cure = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cure)
HERE = Path(__file__).parent
#: The scripts that the cure's own tests run, too.
SCRIPTS = places.PRODUCTS / "requests-shared-context" / "tests"


def with_releases(of_requests: str, of_urllib3: str, script: str, cure: Path, **asked) -> dict:
    """What a client script answers beside two releases, with the cure in a folder."""
    # urllib3 before 1.26 does not run with today's Python.
    stack = "stage-2-py37" if of_urllib3 < "1.26" else "stage-2-injected-today"
    python = here.environment(stack).python
    chosen = {"requests": of_requests, "urllib3": of_urllib3}
    if of_requests < "2.26":
        chosen["chardet"] = "4.0.0"  # which newer ones do without
    path = os.pathsep.join([*(installed(*each, python) for each in chosen.items()), str(SCRIPTS)])
    told, variables = json.dumps(asked), {"PYTHONPATH": path}
    file = next(folder / script for folder in (SCRIPTS, HERE) if (folder / script).exists())
    done = here.python_in(stack, file, cure, input=told, variables=variables, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def installed(package: str, release: str, python: Path) -> str:
    """The folder in which a release is installed, once."""
    place = places.LOCAL / "releases" / f"{package}-{release}"
    if not place.exists():
        making = Path(f"{place}.{os.getpid()}")  # another run of the tests may make it too
        install = installers.uv("pip", "install", "--target", making, "--no-deps")
        done = here.run(*install, "--python", python, f"{package}=={release}")
        assert done.returncode == 0, done.stderr
        with contextlib.suppress(OSError):
            making.rename(place)
    return str(place)


def site_packages(stack: str) -> Path:
    """Where a stack's packages are. Skips where its interpreter is missing."""
    [folder] = here.environment(stack).python.parent.parent.glob("lib/python*/site-packages")
    return folder


def run(stack: str, script: str, task: str, world: dict, cure: Path, **asked):
    """What a task of a client script answers, in which no assertion fails.

    `cure` is the folder that holds a copy of shared_context.py.

    variables: more environment variables. beside: a stack whose packages are there too. All else
    goes to the task.
    """
    if "beside" in asked:
        asked["beside"] = str(site_packages(asked["beside"]))
    variables = {
        # verify=False loads the system's certificates in stock requests: a few, then.
        "SSL_CERT_FILE": world["paths"]["other"],
        "SSL_CERT_DIR": world["paths"]["missing"],
    } | asked.pop("variables", {})
    told = json.dumps({"task": task, "world": world, **asked})
    done = here.python_in(stack, HERE / script, cure, input=told, variables=variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
