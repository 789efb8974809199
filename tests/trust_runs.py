"""Runs the client scripts beside this file inside stacks' environments."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from casebook import places, stacks
from casebook.cases.reference_run import TIME_MACHINE
from casebook.errors import MissingInterpreter
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
CURE = places.ROOT / "casebook" / "shared_context.py"
HERE = Path(__file__).parent


def environment(version: str) -> environments.Environment:
    """The environment of a requests version, or a stack. Skips where its interpreter is missing."""
    of_release = [name for name in TIME_MACHINE if name.startswith(f"requests-{version}-")]
    [name] = of_release or [version]
    stack = stacks.get(name)
    try:
        return environments.ensure(stack)
    except MissingInterpreter as error:
        if stack.python in environments.required():
            raise
        pytest.skip(str(error))


def run(version: str, script: str, task: str, world: dict, cure: Path, **asked) -> dict:
    """What a task answers. `cure` is the folder that holds a copy of shared_context.py.

    More keyword arguments go to the task, but for `variables`, more environment variables.
    """
    place = environment(version)
    variables = {
        # verify=False loads the system's certificates in stock requests: a few, then.
        "SSL_CERT_FILE": world["paths"]["other"],
        "SSL_CERT_DIR": world["paths"]["missing"],
        **asked.pop("variables", {}),
    }
    done = subprocess.run(
        [place.python, HERE / script, cure],
        input=json.dumps({"task": task, "world": world, **asked}),
        env=environments.clean_environ(place) | variables,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
