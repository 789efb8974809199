"""The reference run: everything measured in full mode on one machine, kept under data/."""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, stacks
from casebook.cases.bookstore import visits
from casebook.cases.certificates import counts, handshakes, loading
from casebook.cases.fetching import (
    explorer,
    modes,
    near_limit,
    observations,
    run_record,
    trust,
    verdicts_under_load,
)
from casebook.cases.fetching.measure import measure_runs, observe
from casebook.errors import UsageError
from casebook.laboratory import decisions, machines, measurements, reference
from casebook.stacks import digests, environments
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
#: What the chapters look at from inside old stacks: arguments of measure.observe. With these a
#: machine without the old interpreters can still build the book (tests/test_fallback.py).
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

#: The stacks of the bookstore's recorded clients and stores.
_OF_THE_BOOKSTORE = (
    *("hyper-py37", "twisted-16.3-py37", "requests-2.10.0-py37", "requests-2.31.0-py37"),
)


def _loading(folder: Path) -> None:
    """What of chapter 10 has to stand in where a Python, a C compiler, valgrind or Linux is
    missing."""
    frames = {
        "loads": loading.measure(list(loading.RECORDED), loading.RECORDED, decisions.LOOKS[0]),
        "handshakes": handshakes.measure(repeats=modes.FULL.repeats),
        "instructions": counts.record(),
    }
    for kind, rows in frames.items():
        if set(rows["source"]) != {LIVE}:
            raise UsageError(f"{kind} cannot be recorded here: some would be read, not measured.")
        reference.save(rows, folder / f"{kind}.csv")


#: What is recorded into files of its own: name -> what writes them into a folder.
APART: dict[str, Callable[[Path], None]] = {
    "loading": _loading,
    "bookstore": visits.record,
    "verdicts": verdicts_under_load.record,
    "explorer": lambda folder: reference.save(explorer.record(), folder / "explorer.jsonl"),
}


def matrix() -> list[str]:
    """The stacks of the first case: recorded with grequests, over HTTPS and over HTTP."""
    of_others = {*TIME_MACHINE, OLD_URLLIB3, *CURED, *NOT_RECORDED}
    return [
        stack.name
        for stack in stacks.load().values()
        if stack.client == "grequests" and stack.name not in of_others
    ]


def plan() -> list[tuple[list[str], dict[str, Any]]]:
    """What is measured: names of stacks, and the arguments of measure_runs beside them."""
    threads = {"client": "threads", "n": (30,), "delay_s": 0}
    crowd = {"n": modes.FULL.crowd_ns, "repeats": 1, "trust": trust.BUNDLE}
    old = [name for name in matrix() if stacks.get(name).python in ("2.7", "3.7")]
    # What stands in for old interpreters in the quick mode, exactly as it would be asked for.
    rounds = {"n": (3, 5, 10), "repeats": decisions.LOOKS[0]}
    once = {"delay_s": modes.QUICK.delay_s, "repeats": 1}
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
        (["stage-1-py37"], {**once, "n": (1, 30), "client": "requests"}),
        (STAGES_2019, {**once, "n": (1, 5, 30)}),
        (STAGES_2019, {"n": (1,), "repeats": REPEATS}),
        (SERIAL_2019, {"n": (30,), "repeats": 1}),
        # One change at a time, from the old report on.
        (["stage-2-py27"], {**once, "n": (10,), "client": "requests", "scheme": "http"}),
        (matrix(), {"repeats": REPEATS}),
        (matrix(), {"scheme": "http", "n": (10,), "repeats": 1}),  # the control: nothing is slow
        ([*TIME_MACHINE, *CURED], {**threads, "trust": trust.BUNDLE}),
        ([*TIME_MACHINE, OLD_URLLIB3], {**threads, "trust": trust.OFF}),
        ([NEWEST, "cured-today"], {**crowd, "client": ("grequests", "threads")}),
        (OF_OTHERS, {**crowd, "n": (1, 10, 30, 100, 300)}),
    ]


def describe_machine(versions: dict[str, dict]) -> dict[str, Any]:
    """What has to be known of the machine and the stacks to read the figures.

    versions: stack name -> package versions.
    """
    return machines.describe() | {"recorded_at": measurements.now(), "stacks": versions}


def record(only: list[str] | None = None) -> None:
    """Make the reference run; it replaces what data/reference/ held when all of it is done.

    only: the names of stacks, of APART, and `go` (the near-limit) to record; what the others
    recorded is then kept, with the commit and the date that each row bears.
    Takes about half an hour. Raises UsageError when files differ from the commit that each row will
    name, and as measure.measure.
    """
    if measurements.commit() == "unknown" or measurements.commit().endswith("-dirty"):
        raise UsageError(
            "the reference run names the commit that made it, and this tree differs from its "
            "commit (or git is missing): commit first, then record."
        )
    apart = [name for name in APART if not only or name in only]
    chosen = [name for name in only or [*stacks.load(), near_limit.GO] if name not in APART]
    for name in chosen:
        if name != near_limit.GO:
            stacks.get(name)  # refuses a name that is none, before anything is measured
    table, versions = _measured(chosen)
    if only:
        versions = reference.machine()["stacks"] | versions

    def and_others(kind: str, rows: pd.DataFrame) -> pd.DataFrame:
        before = reference.rows(kind) if only else pd.DataFrame()
        others = before[~before["stack"].isin(chosen)] if len(before) else before
        return pd.concat([each for each in (others, rows) if len(each)], ignore_index=True)

    with tempfile.TemporaryDirectory(prefix="casebook-") as draft:
        new, dumps = Path(draft), Path(draft, observations.folder().name)
        those = (observe(**what) for what in OBSERVED if what["name"] in chosen)
        seen = pd.DataFrame([observations.kept(each, dumps) for each in those])
        reference.save(and_others("observations", seen), new / "observations.jsonl")
        reference.save(and_others("runs", table), new / "runs.csv")
        machine = json.dumps(describe_machine(versions), indent=1, sort_keys=True)
        (new / "machine.json").write_text(machine + "\n")
        for name in apart:
            APART[name](new)
        if not only:
            shutil.rmtree(observations.folder(), ignore_errors=True)
        shutil.copytree(new, places.DATA / "reference", dirs_exist_ok=True)


def _measured(chosen: list[str]) -> tuple[pd.DataFrame, dict[str, dict]]:
    """What is planned of these names: the runs, and the versions of each stack's packages."""
    measured = []
    for names, how in plan():
        if those := [name for name in names if name in chosen]:
            measured += measure_runs(those, mode=modes.FULL, **how)
    versions = {run.stack: run.versions for run in measured}
    versions |= {name: environments.ensure(stacks.get(name)).versions for name in _OF_THE_BOOKSTORE}
    table = run_record.frame(measured)
    if near_limit.GO in chosen:
        near_limit.build()  # raises where there is no Go: here, nothing may stand in
        limit = near_limit.measure(modes.FULL.crowd_ns).drop(columns="instead")
        table = pd.concat([table, limit]) if measured else limit
        versions[near_limit.GO] = {"go": digests.tool("go")}
    return table.assign(key=""), versions


def reference_machine() -> machines.Machine:
    """The reference machine (data/reference/) as one like the others: its runs, and no findings,
    because it recorded none."""
    counted = [f"counters_{name}" for name in run_record.COUNTERS]
    known = reference.rows("runs")
    plain = known.astype(object).where(known.notna(), None).to_dict("records")
    answers = [
        {name: value for name, value in row.items() if name not in counted}
        | {"counters": {name: row[f"counters_{name}"] for name in run_record.COUNTERS}}
        for row in plain
    ]
    about = {name: said for name, said in reference.machine().items() if name in machines.ABOUT}
    return machines.Machine("reference", about | machines.steadiness(answers), answers)
