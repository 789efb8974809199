"""The record of a run: one process of one stack that fetched n pages.

Every response is checked. One that failed or was not the one asked for is an error that names the
page: such a run is never recorded.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import pandas as pd

from casebook.errors import RunFailed
from casebook.runs import measurements
from casebook.runs.analysis import effective_concurrency, verdict
from casebook.words import LIVE

#: What each run counts, from the server and inside the client; None where it cannot be told.
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
    environment. source: `live` or `reference`. measured_at: UTC, ISO 8601. made: what
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
    made: dict[str, Any] = field(default_factory=dict)


_AS_ANSWERED = ("python", "wall_s", "user_s", "sys_s", "process_cpu_s", "peak_rss_kib")

FRAME_COLUMNS = [
    *(f.name for f in fields(Run) if f.name not in ("counters", "versions", "made")),
    *(f"counters_{name}" for name in COUNTERS),
    *measurements.COLUMNS,
]


def check(stack: str, n: int, answer: dict[str, Any]) -> None:
    """Refuse a probe's answer in which any response is missing, wrong or not 200.

    Raises RunFailed with the page and the cause.
    """
    if failure := answer["failure"]:
        where = "" if failure["page"] is None else f" at page {failure['page']}"
        said = failure["message"].rstrip(".")
        raise RunFailed(f"{stack}: {failure['type']}{where}: {said}. Nothing was recorded.")
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
    answer: dict[str, Any], server_counters: dict[str, Any] | None, **asked: Any
) -> Run:
    """The checked run behind a probe's answer.

    asked: stack, client, n, delay_s, scheme, trust, repeat. server_counters: what the server
    counted during the run; None for a server that does not count. Raises RunFailed.
    """
    check(asked["stack"], asked["n"], answer)
    seen = dict(answer["counters"], **(server_counters or {}))
    n, delay_s, wall_s = asked["n"], asked["delay_s"], answer["wall_s"]
    return Run(
        **asked,
        **{name: answer[name] for name in _AS_ANSWERED},
        cpu_s=round(answer["user_s"] + answer["sys_s"], 6),
        ok=len(answer["responses"]),
        effective_concurrency=effective_concurrency(n, delay_s, wall_s),
        verdict=verdict(n, delay_s, wall_s, seen.get("peak_in_flight")),
        counters={name: seen.get(name) for name in COUNTERS},
        versions=dict(answer["versions"], openssl=answer["openssl"]),
        measured_at=measurements.now(),
    )


def from_stored(found: dict[str, Any]) -> Run:
    """The run that measurements.stored_or_new gives, with what it says of how it was made."""
    made = {name: found.get(name) for name in measurements.COLUMNS}
    return Run(**measurements.of_class(Run, found) | {"made": made})


def frame(runs: Iterable[Run]) -> pd.DataFrame:
    """Runs as a tidy frame: one row a run, the columns FRAME_COLUMNS."""
    rows = [
        vars(run) | run.made | {f"counters_{name}": run.counters.get(name) for name in COUNTERS}
        for run in runs
    ]
    return pd.DataFrame(rows, columns=FRAME_COLUMNS)
