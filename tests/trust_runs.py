"""Runs the client scripts beside this file inside stacks' environments."""

import json
import os
from pathlib import Path

import here
import pytest

from casebook import places
from casebook.cases.reference_run import TIME_MACHINE

#: The mark of what is only breadth: for make test-nightly, or any run with CASEBOOK_NIGHTLY=1.
nightly = () if os.environ.get("CASEBOOK_NIGHTLY") == "1" else pytest.mark.nightly

#: The releases that load when they are imported.
PRELOADED = ("requests-2.32.2-today", "requests-2.32.4-today")
OLDEST, *_, NEWEST = TIME_MACHINE
#: Three of them in every run.
every_release = pytest.mark.parametrize(
    "stack",
    [
        pytest.param(name, marks=() if name in (OLDEST, PRELOADED[-1], NEWEST) else nightly)
        for name in TIME_MACHINE
    ],
)
CURE = places.CURE
HERE = Path(__file__).parent


def site_packages(stack: str) -> Path:
    """Where a stack's packages are. Skips where its interpreter is missing."""
    [folder] = here.environment(stack).python.parent.parent.glob("lib/python*/site-packages")
    return folder


def run(stack: str, script: str, task: str, world: dict, cure: Path, **asked):
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
    done = here.python_in(stack, HERE / script, cure, input=told, variables=variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
