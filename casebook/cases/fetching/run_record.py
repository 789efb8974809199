"""The record of a run: one process of one stack that fetched n pages.

Every response is checked. One that failed or was not the one asked for is an error that names the
page: such a run is never recorded.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import pandas as pd

from casebook.cases.fetching.analysis import effective_concurrency, verdict
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import elsewhere, measurements
from casebook.words import LIVE

#: What each run counts, from the server and inside the client; None if it cannot be told.
COUNTERS = (
    "connections",
    "handshakes",
    "requests",
    "peak_in_flight",
    "contexts",
    "load_verify_locations",
    "default_loads",
    "loads_before",
    "longest_stall_s",
)


@dataclass(frozen=True)
class Run:
    """One measured run. Times in seconds, memory in KiB; `repeat` counts from 1.

    wall_s, user_s, sys_s and cpu_s (both) are of the fetch alone; process_cpu_s is the CPU of the
    whole process until the fetch was done, with the imports and what they load.

    counters: the keys of COUNTERS. versions: package name -> version, of the stack's own
    environment. source: `live` or `reference`. measured_at: UTC, ISO 8601. provenance: what
    measurements.COLUMNS says of the machine and of how the run was made.
    """

    stack: str
    python: str
    client: str
    n: int
    delay_s: float
    scheme: str
    trust: str
    repeat: int
    wall_s: float
    user_s: float
    sys_s: float
    cpu_s: float
    process_cpu_s: float
    peak_rss_kib: int
    ok: int
    effective_concurrency: float
    verdict: str
    counters: dict[str, Any]
    versions: dict[str, Any]
    measured_at: str
    source: str = LIVE
    provenance: dict[str, Any] = field(default_factory=dict)


_AS_ANSWERED = ("python", "wall_s", "user_s", "sys_s", "process_cpu_s", "peak_rss_kib")

FRAME_COLUMNS = [
    *(f.name for f in fields(Run) if f.name not in ("counters", "versions", "provenance")),
    *(f"counters_{name}" for name in COUNTERS),
    *measurements.COLUMNS,
]


def check(stack: str, n: int, answer: dict[str, Any]) -> None:
    """Refuse a probe's answer in which any response is missing, wrong or not 200.

    Raises RunFailed with the page and the cause.
    """
    if failure := answer["failure"]:
        place = "" if failure["page"] is None else f" at page {failure['page']}"
        message = failure["message"].rstrip(".")
        raise RunFailed(f"{stack}: {failure['type']}{place}: {message}. Nothing was recorded.")
    pages = {response["page"]: response for response in answer["responses"]}
    for page in range(n):
        response = pages.get(page)
        if response is None:
            raise RunFailed(f"{stack}: page {page} is missing. Nothing was recorded.")
        if response["status"] != 200 or response["got_page"] != page:
            raise RunFailed(
                f"{stack}: page {page} came back as status {response['status']}, "
                f"page {response['got_page']}. Nothing was recorded."
            )


def from_answer(
    answer: dict[str, Any], server_counters: dict[str, Any] | None, **parameters: Any
) -> Run:
    """Check a probe's answer and return its run.

    parameters: stack, client, n, delay_s, scheme, trust, repeat. server_counters: what the server
    counted during the run; None for a server that does not count. Raises RunFailed.
    """
    check(parameters["stack"], parameters["n"], answer)
    all_counters = dict(answer["counters"], **(server_counters or {}))
    counters = {name: all_counters.get(name) for name in COUNTERS}
    answered = {name: answer[name] for name in _AS_ANSWERED}
    return Run(
        **parameters,
        **answered,
        **_derived({**parameters, **answered, "counters": counters}),
        ok=len(answer["responses"]),
        counters=counters,
        versions=dict(answer["versions"], openssl=answer["openssl"]),
        measured_at=measurements.now(),
    )


#: What follows from the rest of a run. It is not stored: the code of today says it when it is read.
DERIVED = ("cpu_s", "effective_concurrency", "verdict")


def to_store(run: Run) -> dict[str, Any]:
    """Return what is stored of a run: all but DERIVED and what the store itself adds."""
    left_out = (*DERIVED, "provenance")
    return {name: value for name, value in asdict(run).items() if name not in left_out}


def from_stored(stored: dict[str, Any]) -> Run:
    """Return the run that measurements.stored_or_new gives, with what it says of its making.

    DERIVED is computed now, whatever the code that stored it thought.
    """
    provenance = {name: stored.get(name) for name in measurements.COLUMNS}
    return Run(**measurements.of_class(Run, stored) | _derived(stored) | {"provenance": provenance})


def _derived(figures: dict[str, Any]) -> dict[str, Any]:
    n, delay_s, wall_s = figures["n"], figures["delay_s"], figures["wall_s"]
    peak = figures["counters"].get("peak_in_flight")
    return {
        "cpu_s": round(figures["user_s"] + figures["sys_s"], 6),
        "effective_concurrency": effective_concurrency(n, delay_s, wall_s),
        "verdict": verdict(n, delay_s, wall_s, peak),
    }


def frame(runs: Iterable[Run]) -> pd.DataFrame:
    """Return runs as a tidy frame: one row a run, the columns FRAME_COLUMNS."""
    return pd.DataFrame([row(run) for run in runs], columns=FRAME_COLUMNS)


def row(run: Run) -> dict[str, Any]:
    """Return a run as a row of `frame`."""
    counters = {f"counters_{name}": run.counters.get(name) for name in COUNTERS}
    values = vars(run) | run.provenance | counters
    return {name: values.get(name) for name in FRAME_COLUMNS}


def _runs(answer: dict[str, Any]) -> list[dict[str, Any]]:
    if not {"counters", "scheme", "wall_s"} <= answer.keys():
        return []
    names = {run_field.name for run_field in fields(Run)} - {*DERIVED, "provenance"}
    try:
        run = from_stored({name: answer.get(name) for name in names | {*answer}})
        return [row(run)]
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError, UsageError):
        return []


#: Runs as machine files have them.
RUNS = elsewhere.Kind("runs", _runs, ("n", "delay_s", "repeat", "wall_s", "cpu_s", "process_cpu_s"))
