"""Programs beside this one, such as a stack's Python with arguments: run to their end."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from casebook.errors import CasebookError, RunFailed


def run(  # noqa: PLR0913 (what subprocess.run takes, and what an error says)
    command: Sequence[str | os.PathLike[str]],
    label: str,
    within_s: float,
    environ: Mapping[str, str],
    *,
    text: str = "",
    folder: Path | None = None,
    advice: str = "Try again.",
    failed: type[CasebookError] = RunFailed,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit code.

    label: its name in errors. environ: all of its environment variables. text: its standard
    input. folder: where it runs. Raises `failed` if it does not start, or does not end within
    within_s seconds, with advice what to do then; whatever happens, the process is gone.
    """
    try:
        return subprocess.run(
            command, input=text, env=environ, cwd=folder,
            capture_output=True, text=True, timeout=within_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise failed(f"{label} did not end within {within_s:.0f} s. {advice}") from None
    except OSError as error:
        raise failed(f"{label} does not run: {error}.") from None


def output(command: Sequence[str | os.PathLike[str]], label: str, *args: Any, **kwargs: Any) -> str:
    """Return what a program prints. As `run`, but raises `failed` for an exit code other than 0."""
    process = run(command, label, *args, **kwargs)
    if process.returncode:
        failed = kwargs.get("failed", RunFailed)
        raise failed(f"{label} exited with code {process.returncode} ({last_line(process)}).")
    return process.stdout


def last_line(process: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of what a program wrote to standard error."""
    return (process.stderr.strip().splitlines() or ["nothing on standard error"])[-1]
