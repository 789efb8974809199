"""What one cProfile sees of many threads, on each Python of this machine."""

import json
import os

import certifi
import pandas as pd

from casebook import places
from casebook.laboratory import measurements, rounds
from casebook.mistakes import check_range, for_readers
from casebook.stacks import commands, interpreters
from casebook.stacks.interpreters import Interpreter
from casebook.words import LIVE

#: Pythons that the book runs on, and that show what cProfile became in 3.12.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_ONE_FOR_ALL_THREADS = PYTHONS[1:]
_WITHIN_S = 60


@for_readers
def by_python(n: int = 30) -> pd.DataFrame:
    """Profile n threads that each load certifi's bundle, by one cProfile, on each Python here.

    One row for each of PYTHONS that is here, the one that runs this included: python, calls and
    primitive (of load_verify_locations, as the profile counts them), tottime_s, cumtime_s (its
    times there), refused (whether a second profile cannot be started while one runs), source,
    measured_at. Raises UsageError, RunFailed.
    """
    check_range("n", n, 1, 1000)
    return _frame([_run_probe(python, n) for python in _pythons().values()]).drop(
        columns="overlaps"
    )


@rounds.takes_until
def overlaps(repeats: int | range = 1) -> pd.DataFrame:
    """Profile two functions that take equally long, at once in two threads, by one cProfile.

    On the newest Python found here that keeps one profile for all threads (3.12 and newer); empty
    if there is none. until, looks: what is to be decided (laboratory/rounds.py). One row per
    repeat: python, repeat, first_s and second_s (the own times that the profile gives to the
    function that begins and returns first, and to the other), own_s (of all functions together),
    wall_s, source, measured_at. Raises RunFailed.
    """
    newer = [python for version, python in _pythons().items() if version in _ONE_FOR_ALL_THREADS]
    if not newer:
        return pd.DataFrame()
    chosen = rounds.numbers(repeats)
    answer = _run_probe(newer[-1], 0, len(chosen))
    rows = zip(answer["overlaps"], chosen, strict=True)
    return _frame([row | {"python": answer["python"], "repeat": repeat} for row, repeat in rows])


def _frame(rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(rows).assign(source=LIVE, measured_at=measurements.utc_now())


def _pythons() -> dict[str, Interpreter]:
    """Return one interpreter of each of PYTHONS that is here, the oldest first.

    If possible, it is the running one.
    """
    interpreters_found = {version: interpreters.find(version) for version in PYTHONS}
    running = interpreters.find("today")
    if running and running.version.rpartition(".")[0] in interpreters_found:
        interpreters_found[running.version.rpartition(".")[0]] = running
    return {version: python for version, python in interpreters_found.items() if python}


def _run_probe(python: Interpreter, n: int, times: int = 0) -> dict:
    script = str(places.PROBES / "cprofile_and_threads.py")
    command = [str(python.path), script, str(n), certifi.where(), str(times)]
    environ = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
    return json.loads(commands.output(command, f"the profile of {python.path}", _WITHIN_S, environ))
