"""A script inside a stack's environment: one JSON object in (standard input), one out."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from casebook.errors import CasebookError, RunFailed
from casebook.stacks import commands, environments
from casebook.stacks.environments import Environment


def answer_of(
    environment: Environment,
    script: Path,
    spec: dict[str, Any],
    within_s: float = 300,
    **options: Any,
) -> dict[str, Any]:
    """Run a script as `run_script` does, and return its answer alone."""
    return run_script(environment, script, spec, within_s, **options)[0]


def run_script(  # noqa: PLR0913  options of a run, most given by name
    environment: Environment,
    script: Path,
    spec: dict[str, Any],
    within_s: float,
    *,
    called: str = "",
    advice: str = "Try less of it.",
    failed: type[CasebookError] = RunFailed,
    variables: dict[str, str] | None = None,
    beside: Iterable[Path] = (),
) -> tuple[dict[str, Any], str]:
    """Run a script with the environment's Python.

    Returns its answer, which is not yet checked, and what it wrote to standard error. Raises
    `failed` where there is no answer.

    Parameters:
        environment: of the stack whose Python runs the script.
        script: a file that reads one JSON object and writes one.
        spec: what the script reads; paths become text.
        within_s: seconds after which the script is ended.
        called: who is named in an error, by default the stack.
        advice: what to do when the time is over.
        failed: the error to raise when there is no answer.
        variables: further environment variables.
        beside: folders whose modules the script imports beside those of its own folder.
    """
    called = called or environment.stack.name
    importable = {"PYTHONPATH": os.pathsep.join(map(str, beside))} if beside else {}
    process = commands.run(
        [environment.python, script], called, within_s,
        environments.clean_environ(environment) | importable | (variables or {}),
        text=json.dumps(spec, default=os.fspath),
        advice=f"Nothing was recorded. {advice}", failed=failed,
    )  # fmt: skip
    try:
        return json.loads(process.stdout), process.stderr
    except ValueError:
        raise failed(
            f"{called}: {script.name} exited with code {process.returncode} and no answer "
            f"({commands.last_line(process)}). Nothing was recorded."
        ) from None
