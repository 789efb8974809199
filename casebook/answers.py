"""What a probe answers that measures something other than a fetch of pages: checked, and kept."""

import hashlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from casebook import environments, runs, scripts, trust
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
    answer = scripts.ask(environment, PROBES / probe, spec, PATIENCE_S, variables=variables)
    if answer["failure"]:
        raise RunFailed(f"{environment.stack.name}: {answer['failure']}. Nothing was recorded.")
    return answer


def kept(stack: Stack, parameters: dict, made_by: Iterable[Path], take: Callable[[], dict]) -> dict:
    """A stored measurement in a build of the book; otherwise a new one, stored.

    made_by: the files and folders that the measurement depends on, beside the counters and the
    bundle. What comes back has the moment of the measurement as `measured_at`.
    """
    bundle = hashlib.sha256("".join(trust.certificates()).encode()).hexdigest()
    key = runs.digest(
        *(Path(module.__file__) for module in (sys.modules[__name__], scripts, trust)),
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
