"""What a probe answers that measures something other than a fetch of pages: checked, and stored."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from casebook import places
from casebook.runs import measurements, trust
from casebook.stacks import Stack, commands, digests, environments, scripts
from casebook.stacks.environments import Environment

#: Seconds after which a probe is ended.
PATIENCE_S = 300


def ask(
    environment: Environment,
    probe: str,
    spec: dict[str, Any],
    variables: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Run a probe of casebook/probes inside a stack's environment: its answer.

    spec: what the probe reads. variables: further environment variables. Raises RunFailed, with
    the probe's last words, when it gives no answer.
    """
    return scripts.ask(environment, places.PROBES / probe, spec, PATIENCE_S, variables=variables)


def digest(stack: Stack, made_by: list[Path], *parameters: object) -> str:
    """The digest of everything that makes a measurement in a stack what it is.

    made_by: the files that it executes, beside those with which every script is run.
    """
    return digests.of(
        measurements.SCHEMA,
        digests.files(scripts, commands, trust),
        made_by,
        environments.fingerprint(stack),
        [stack.name, list(stack.steps), stack.patch],
        *parameters,
    )


def stored_or_new(
    stack: Stack,
    parameters: dict[str, Any],
    made_by: Iterable[Path],
    measure: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """A stored measurement in a build of the book; otherwise a new one, stored.

    made_by: the files that the measurement depends on, beside the certificates: its module, and
    its probe with what that imports. What comes back says how it was made (measurements.COLUMNS).
    """
    executed = [
        path for each in made_by for path in ([each] if each.is_dir() else digests.executed(each))
    ]
    certificates = digests.of("".join(trust.certificates()))
    key = digest(stack, executed, certificates, parameters)
    return measurements.stored_or_new(key, measure)
