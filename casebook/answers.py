"""What a probe answers that measures something other than a fetch of pages: checked, and kept."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from casebook import environments, runs, trust
from casebook.bench import PROBES, may_reuse
from casebook.environments import Environment
from casebook.errors import RunFailed
from casebook.stacks import Stack

#: Seconds after which a probe is ended.
PATIENCE_S = 300


def ask(
    environment: Environment, probe: str, spec: dict, variables: dict[str, str] | None = None
) -> dict:
    """Run a probe of casebook/probes inside a stack's environment: its answer.

    spec: what the probe reads. variables: further environment variables. A probe says what went
    wrong in it as `failure`: that, or no answer, raises RunFailed.
    """
    name = environment.stack.name
    try:
        done = subprocess.run(
            [environment.python, PROBES / probe],
            input=json.dumps(spec),
            env=environments.clean_environ(environment) | (variables or {}),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise RunFailed(
            f"{name}: no answer within {PATIENCE_S} s, so the run was ended. Nothing was "
            "recorded. Try less of it."
        ) from None
    except ValueError:
        said = done.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
        raise RunFailed(
            f"{name}: the probe left with exit code {done.returncode} and no answer "
            f"({said[0]}). Nothing was recorded."
        ) from None
    if answer["failure"]:
        raise RunFailed(f"{name}: {answer['failure']}. Nothing was recorded.")
    return answer


def kept(stack: Stack, parameters: dict, made_by: Iterable[Path], take: Callable[[], dict]) -> dict:
    """A stored measurement in a build of the book; otherwise a new one, stored.

    made_by: the files and folders that the measurement depends on, beside the counters and the
    bundle. What comes back has the moment of the measurement as `measured_at`.
    """
    bundle = hashlib.sha256("".join(trust.certificates()).encode()).hexdigest()
    key = runs.digest(
        *(Path(module.__file__) for module in (sys.modules[__name__], trust)),
        PROBES / "counting.py",
        *made_by,
        environments.fingerprint(stack),
        asdict(stack),
        bundle,
        parameters,
    )
    store = runs.Store()
    found = store.load(key) if may_reuse() else None
    if found is None:
        found = take() | {"measured_at": runs.now()}
        store.save(key, found)
    return found
