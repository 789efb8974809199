"""Runs the client scripts beside this file inside stacks' environments."""

import json
import os
from pathlib import Path

import here
import pytest

from casebook import places
from casebook.cases.reference_run import TIME_MACHINE
from casebook.stacks import environments

#: The mark of what is only breadth: for make test-nightly, or any run with CASEBOOK_NIGHTLY=1.
nightly = () if os.environ.get("CASEBOOK_NIGHTLY") == "1" else pytest.mark.nightly

#: The time machine, without what each name ends with: those of every run, and those between them.
OLDEST, PRELOADING, NEWEST = "2.21.0", "2.32.4", "2.34.2"
BETWEEN = ["2.23.0", "2.24.0", "2.31.0", "2.32.2", "2.32.5", "2.33.1"]
every_version = pytest.mark.parametrize(
    "version",
    [OLDEST, PRELOADING, NEWEST, *(pytest.param(version, marks=nightly) for version in BETWEEN)],
)
CURE = places.CURE
HERE = Path(__file__).parent
#: The releases that load when they are imported.
PRELOADED = ("2.32.2", "2.32.4")


def stack_of(version: str) -> str:
    """The stack of a requests version; a stack's name is its own."""
    of_release = [name for name in TIME_MACHINE if name.startswith(f"requests-{version}-")]
    return of_release[0] if of_release else version


def environment(version: str) -> environments.Environment:
    """The environment of a requests version, or a stack. Skips where its interpreter is missing."""
    return here.environment(stack_of(version))


def site_packages(version: str) -> Path:
    """Where its packages are."""
    [folder] = environment(version).python.parent.parent.glob("lib/python*/site-packages")
    return folder


def run(version: str, script: str, task: str, world: dict, cure: Path, **asked):
    """What a task of a client script answers, in which no assertion fails. `cure` is the folder
    that holds a copy of shared_context.py.

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
    done = here.python_in(stack_of(version), HERE / script, cure, input=told, variables=variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
