"""Programs beside this one, such as a stack's Python with arguments: run to their end."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from casebook.errors import CasebookError, RunFailed


def run(
    command: Sequence[str | os.PathLike[str]],
    called: str,
    within_s: float,
    environ: Mapping[str, str],
    *,
    text: str = "",
    folder: Path | None = None,
    advice: str = "Try again.",
    failed: type[CasebookError] = RunFailed,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit code.

    called: what errors name it. environ: all of its environment variables. text: its standard
    input. folder: where it runs. Raises `failed` when it does not start, or not end in within_s
    seconds, with advice what to do then; whatever happens, the process is gone.
    """
    try:
        return subprocess.run(
            command, input=text, env=environ, cwd=folder,
            capture_output=True, text=True, timeout=within_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise failed(f"{called} did not end within {within_s:.0f} s. {advice}") from None
    except OSError as error:
        raise failed(f"{called} does not run: {error}.") from None


def output(command: Sequence[str | os.PathLike[str]], called: str, *how: Any, **more: Any) -> str:
    """What a program prints. As `run`; raises `failed` also for an exit code other than 0."""
    done = run(command, called, *how, **more)
    if done.returncode:
        failed = more.get("failed", RunFailed)
        raise failed(f"{called} left with exit code {done.returncode} ({last_line(done)}).")
    return done.stdout


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """The last line of what a program said on standard error."""
    return (done.stderr.strip().splitlines() or ["nothing on standard error"])[-1]
