"""The reference run: what no quick build asks, measured in full mode, as a machine file."""

import os
from collections.abc import Callable
from typing import Any

from casebook import stacks
from casebook.cases import patients
from casebook.cases.bookstore import timed_visits
from casebook.cases.certificates import connection_costs, counts, loading
from casebook.cases.fetching import (
    bindings,
    explorer,
    modes,
    near_limit,
    trust,
    verdicts_under_load,
)
from casebook.cases.fetching.runs import measure_runs, observe
from casebook.cases.many import large
from casebook.cases.patients import working
from casebook.errors import UsageError
from casebook.laboratory import decisions, machine_files, measurements, reference
from casebook.stacks import digests
from casebook.words import LIVE

STAGES_2019 = [f"stage-{stage}-{python}" for python in ("py27", "py37") for stage in (1, 2, 3, 4)]
#: Those of them that take one delay for each page: of 30 pages, one run is enough.
SERIAL_2019 = ["stage-2-py27", "stage-2-py37", "stage-3-py37"]
BY_VERSION = ["requests-2.23-py37", "requests-2.24-py37"]

_LOOKED_INTO = ("stage-1-py27", "stage-2-py27", "stage-3-py27", "stage-3-py37")
_STEPS = (
    ("stage-1-py27", ["urllib3", "patch_all"]),
    ("stage-1-py27", ["patch_all", "urllib3"]),
    ("stage-1-py27", ["urllib3", "requests"]),
    ("stage-2-py27", ["patch_all", "urllib3"]),
    ("stage-2-py27", ["patch_as_grequests", "urllib3", "requests"]),
)
#: What the chapters look at from inside old stacks: arguments of runs.observe. With these a
#: machine without the old interpreters can still build the book
#: (tests/laboratory/test_fallback.py).
OBSERVED: list[dict[str, Any]] = [
    *(dict(name=name, kind="profile", delay_s=1.0) for name in _LOOKED_INTO),
    *(dict(name=name, kind="trace", n=5, delay_s=0.3) for name in _LOOKED_INTO),
    *(dict(name=name, kind="timeline", n=5, delay_s=0.1) for name in STAGES_2019),
    *(dict(name=name, kind="provenance", n=1) for name in STAGES_2019 + BY_VERSION),
    dict(name="stage-1-py27", kind="provenance", n=3, steps=["requests", "grequests"]),
    *(dict(name=name, kind="provenance", n=0, steps=steps) for name, steps in _STEPS),
]

#: The stacks whose plain `requests` client is recorded too.
ONE_AT_A_TIME = ["stage-1-py27", "stage-1-py37", "stage-1-today"]

#: requests through its releases, the oldest first.
TIME_MACHINE = [
    *(f"requests-{version}-py37" for version in ("2.21.0", "2.23.0", "2.24.0")),
    *(f"requests-{version}-today" for version in ("2.31.0", "2.32.2", "2.32.4", "2.32.5")),
    *(f"requests-{version}-today" for version in ("2.33.1", "2.34.2")),
]
#: A urllib3 between two that load the system's certificates for verify=False.
OLD_URLLIB3 = "urllib3-1.24.3-py37"
#: The same work by other libraries.
OF_OTHERS = [
    *("httpx-today", "httpx-each-today", "aiohttp-today", "niquests-today"),
    *("urllib3-shared-today", "pycurl-today", "curl-cffi-today"),
]
CURED = ["cured-today", "preloaded-today", "half-cured-today"]
#: The first case once more, in eventlet: the last release that has it, and the first that has not.
TWIN = ["eventlet-0.33.3-py37", "eventlet-0.34.1-py37"]
NEWEST = "requests-2.34.2-today"

#: Stacks of the first case that have no reference run, and why.
NOT_RECORDED = {
    "stage-0": "it is whatever environment the reader has",
    "requests-first-today": "it ends in an error by design, and an error is no timing",
}

#: Runs of each kind in the matrix, whose verdicts are those of the best. What is decided by rounds
#: has rows of its own.
REPEATS = 3

#: What the file of the reference machine says of itself.
NOTE = (
    "The reference run, in full mode: its answers stand in for what cannot be measured elsewhere."
)


def _loading() -> None:
    """Measure what chapter 13 shows in place of a missing Python, C compiler, valgrind or Linux."""
    frames = {
        "loads": loading.measure(list(loading.RECORDED), loading.RECORDED, decisions.LOOKS[0]),
        "handshakes": connection_costs.measure(repeats=modes.FULL.repeats),
        "instructions": counts.record(),
    }
    for kind, rows in frames.items():
        if set(rows["source"]) != {LIVE}:
            raise UsageError(f"{kind} cannot be recorded here: some rows were recorded elsewhere.")


#: What is measured beside the runs and observations: name -> what measures it.
APART: dict[str, Callable[[], object]] = {
    "loading": _loading,
    "bookstore": timed_visits.record,
    "verdicts": verdicts_under_load.record,
    "bindings": bindings.record,
    "explorer": lambda: explorer.measure(explorer.everything()),
}


def matrix() -> list[str]:
    """Return the stacks of the first case: recorded with grequests, over HTTPS and over HTTP."""
    of_others = {*TIME_MACHINE, OLD_URLLIB3, *CURED, *NOT_RECORDED}
    return [
        stack.name
        for stack in stacks.load().values()
        if stack.client == "grequests" and stack.name not in of_others
    ]


def plan() -> list[tuple[list[str], dict[str, Any]]]:
    """Return what is measured: names of stacks, and the arguments of measure_runs beside them."""
    threads = {"client": "threads", "n": (30,), "delay_s": 0}
    crowd = {"n": modes.FULL.crowd_ns, "repeats": 1, "trust": trust.BUNDLE}
    old = [name for name in matrix() if stacks.get(name).python in ("2.7", "3.7")]
    # What stands in for old interpreters in the quick mode, exactly as it would be asked for.
    rounds = {"n": (3, 5, 10), "repeats": decisions.LOOKS[0]}
    single = {"delay_s": modes.QUICK.delay_s, "repeats": 1}
    quick = {"n": modes.QUICK.ns, "delay_s": modes.QUICK.delay_s, "repeats": modes.QUICK.repeats}
    later = range(modes.QUICK.repeats + 1, decisions.LOOKS[0] + 1)
    return [
        ([*old, *TWIN], {**quick, "scheme": ("https", "http")}),
        (ONE_AT_A_TIME, {"client": "requests", "repeats": REPEATS}),
        # What chapters 1 and 2 decide by rounds, with the delays that they ask for.
        (["stage-1-py37"], {**rounds, "client": "requests", "delay_s": modes.QUICK.delay_s}),
        (["stage-1-py37"], {**rounds, "client": "requests", "delay_s": 0}),
        (["stage-1-py37", "stage-2-py27"], {**quick, "repeats": later}),
        (["stage-1-py37"], {"n": (3, 5, 10), "delay_s": 0.2, "repeats": 1}),
        # n against wall time: the sizes that are not among those of the matrix.
        (["stage-1-py37"], {**single, "n": (1, 30), "client": "requests"}),
        (STAGES_2019, {**single, "n": (1, 5, 30)}),
        (STAGES_2019, {"n": (1,), "repeats": REPEATS}),
        (SERIAL_2019, {"n": (30,), "repeats": 1}),
        # One change at a time, from the old report on.
        (["stage-2-py27"], {**single, "n": (10,), "client": "requests", "scheme": "http"}),
        (matrix(), {"repeats": REPEATS}),
        (matrix(), {"scheme": "http", "n": (10,), "repeats": 1}),  # the control: nothing is slow
        ([*TIME_MACHINE, *CURED], {**threads, "trust": trust.BUNDLE}),
        ([*TIME_MACHINE, OLD_URLLIB3], {**threads, "trust": trust.OFF}),
        ([NEWEST, "cured-today"], {**crowd, "client": ("grequests", "threads")}),
        (OF_OTHERS, {**crowd, "n": (1, 10, 30, 100, 300)}),
    ]


def record(only: list[str] | None = None) -> None:
    """Make the reference run, and write its machine file when all of it is done.

    Parameters:
        only: the names of stacks, of APART, and `go` (the near-limit) to record; what the others
            recorded is then kept, with the commit and the date that each answer bears.

    Takes about half an hour. Raises UsageError when files differ from the commit that each answer
    will name, and as runs.measure.
    """
    if measurements.commit() == "unknown" or measurements.commit().endswith("-dirty"):
        raise UsageError(
            "the reference run names the commit that made it, and this tree differs from its "
            "commit (or git is missing): commit first, then record."
        )
    chosen = [*(only or [*stacks.load(), near_limit.GO, *APART])]
    for name in chosen:
        if name not in (near_limit.GO, *APART):
            stacks.get(name)  # refuses a name that is none, before anything is measured
    began = measurements.utc_now()
    _measure(chosen)
    new = machine_files.of_this_machine()
    answers = [answer for answer in new.answers if answer.get("measured_at", "") >= began]
    answers = [timed_visits.without_many_arrivals(answer) for answer in answers]
    if only:
        answers = [*_older_answers(answers), *answers]
    about = new.about | machine_files.steadiness(answers) | {"mode": modes.FULL.name, "note": NOTE}
    machine_files.save(machine_files.Machine(reference.NAME, about, answers), reference.file())


def complete() -> None:
    """Measure what no quick build does, for a machine file.

    Ten thousand pages, and every program that the doctor's chapter examines. Takes some ten
    minutes; raises what they raise.
    """
    os.environ["CASEBOOK_MODE"] = modes.FULL.name
    large.measure()
    patients.table([*patients.EXAMINED, patients.IN_EXERCISE])
    working.table()
    working.promises()


def _older_answers(new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers of the reference machine to what was not asked again."""
    questions = {digests.digest(answer.get("asked")) for answer in new}
    recorded = machine_files.read(reference.file()).answers if reference.file().exists() else []
    return [answer for answer in recorded if digests.digest(answer.get("asked")) not in questions]


def _measure(chosen: list[str]) -> None:
    """Measure what is planned of these names; the store keeps each answer."""
    for names, parameters in plan():
        if group := [name for name in names if name in chosen]:
            measure_runs(group, mode=modes.FULL, **parameters)
    for observation in OBSERVED:
        if observation["name"] in chosen:
            observe(**observation)
    if near_limit.GO in chosen:
        near_limit.build()  # raises where there is no Go: here, nothing may stand in
        near_limit.measure(modes.FULL.crowd_ns)
    for name, measure in APART.items():
        if name in chosen:
            measure()
