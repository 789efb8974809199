"""What one cProfile sees of many threads, on each Python of this machine."""

import json
import os
import subprocess

import certifi
import pandas as pd

from casebook import interpreters, measurements, runs
from casebook.bench import PROBES
from casebook.errors import RunFailed

#: Pythons that the book runs on, and that show what cProfile became in 3.12.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
BOUND_S = 60


def by_python(n: int = 30) -> pd.DataFrame:
    """n threads that each load certifi's bundle, under one cProfile, on each Python found here.

    One row for each of PYTHONS that is here, the one that runs this included: python, calls and
    primitive (of load_verify_locations, as the profile counts them), tottime_s, cumtime_s (its
    times there), own_s (the own times of all functions together), wall_s, refused (whether a
    second profile cannot be started while one runs), source, measured_at. Raises RunFailed.
    """
    found = {}
    for version in ("today", *PYTHONS):
        interpreter = interpreters.find(version)
        if interpreter:
            found.setdefault(interpreter.version.rpartition(".")[0], interpreter)
    rows = [_ask(found[version].path, n) for version in PYTHONS if version in found]
    return pd.DataFrame(rows).assign(source=runs.LIVE, measured_at=measurements.now())


def _ask(python, n: int) -> dict:
    command = [str(python), str(PROBES / "one_profile.py"), str(n), certifi.where()]
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
            f"{python}: the profile of {n} threads gave no answer ({type(error).__name__}). "
            "Nothing was recorded."
        ) from None
