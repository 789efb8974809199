"""What one cProfile sees of many threads, on each Python of this machine."""

import json
import os
import subprocess
from collections.abc import Iterable

import certifi
import pandas as pd

from casebook.errors import RunFailed
from casebook.runs import decisions, measurements
from casebook.runs.bench import PROBES
from casebook.runs.decisions import Question
from casebook.stacks import interpreters
from casebook.words import LIVE

#: Pythons that the book runs on, and that show what cProfile became in 3.12.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
BOUND_S = 60


def by_python(n: int = 30) -> pd.DataFrame:
    """n threads that each load certifi's bundle, under one cProfile, on each Python found here.

    One row for each of PYTHONS that is here, the one that runs this included: python, calls and
    primitive (of load_verify_locations, as the profile counts them), tottime_s, cumtime_s (its
    times there), refused (whether a second profile cannot be started while one runs), source,
    measured_at. Raises RunFailed.
    """
    return _frame([_ask(python, n) for python in _pythons()]).drop(columns="overlaps")


def overlaps(until: Question | Iterable[Question]) -> pd.DataFrame:
    """Two functions that take equally long, beside each other in two threads, under one cProfile.

    On the newest Python found here that keeps one profile for all threads (3.12 and newer); empty
    where there is none. until: what is to be decided. One row per repeat: python, repeat, first_s
    and second_s (the own times that the profile gives to the function that begins and returns
    first, and to the other), own_s (of all functions together), wall_s, source, measured_at.
    Raises RunFailed.
    """
    newer = [python for python in _pythons() if _version(python) >= (3, 12)]
    if not newer:
        return pd.DataFrame()
    questions = [until] if isinstance(until, Question) else list(until)

    def take(chosen: range) -> pd.DataFrame:
        answer = _ask(newer[-1], 0, len(chosen))
        rounds = zip(answer["overlaps"], chosen, strict=True)
        rows = [row | {"python": answer["python"], "repeat": repeat} for row, repeat in rounds]
        return _frame(rows)

    return decisions.until_decided(take, questions)


def _frame(rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(rows).assign(source=LIVE, measured_at=measurements.now())


def _pythons() -> list[interpreters.Interpreter]:
    """One of each of PYTHONS that is here, the oldest first."""
    found: dict[str, interpreters.Interpreter] = {}
    for version in ("today", *PYTHONS):
        interpreter = interpreters.find(version)
        if interpreter:
            found.setdefault(interpreter.version.rpartition(".")[0], interpreter)
    return [found[version] for version in PYTHONS if version in found]


def _version(python: interpreters.Interpreter) -> tuple[int, int]:
    major, minor, *_ = python.version.split(".")
    return int(major), int(minor)


def _ask(python: interpreters.Interpreter, n: int, rounds: int = 0) -> dict:
    script = str(PROBES / "cprofile_and_threads.py")
    command = [str(python.path), script, str(n), certifi.where(), str(rounds)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            env={"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        return json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise RunFailed(
            f"{python.path}: the profile gave no answer ({type(error).__name__}). "
            "Nothing was recorded."
        ) from None
