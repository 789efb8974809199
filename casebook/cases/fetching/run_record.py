"""The record of a run: one process of one stack that fetched n pages.

Every response is checked. One that failed or was not the one asked for is an error that names the
page: such a run is never recorded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import pandas as pd

from casebook import places
from casebook.cases.fetching.analysis import effective_concurrency, verdict
from casebook.errors import CasebookError, RunFailed
from casebook.laboratory import machine_files, measurements, recorded_rows
from casebook.laboratory.experiment import Experiment, Measurement
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


#: The fields of a run that are no column of their own.
_APART = ("counters", "versions", "provenance")
#: What is stored of a run: what the probe measured, what was counted, and how many responses came.
STORED = (
    *("python", "wall_s", "user_s", "sys_s", "process_cpu_s", "peak_rss_kib"),
    *("ok", "counters", "versions"),
)
#: What was asked of it.
_ASKED = ("client", "n", "delay_s", "scheme", "trust")
#: The columns that must be finite numbers.
NUMBERS = ("n", "delay_s", "wall_s", "cpu_s", "process_cpu_s")

FRAME_COLUMNS = [
    *(f.name for f in fields(Run) if f.name not in _APART),
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


def to_store(
    stack: str, n: int, answer: dict[str, Any], server_counters: dict[str, Any] | None
) -> dict[str, Any]:
    """Check a probe's answer, and return what is stored of it: raw, and without the pages.

    Parameters:
        stack: who is named in an error.
        n: the number of pages that were asked for.
        answer: of the probe.
        server_counters: what the server counted meanwhile; None if it does not count.

    Raises RunFailed.
    """
    check(stack, n, answer)
    counters = dict(answer["counters"], **(server_counters or {}))
    further = {
        "ok": len(answer["responses"]),
        "counters": {name: counters.get(name) for name in COUNTERS},
        "versions": dict(answer["versions"], openssl=answer["openssl"]),
    }
    return {name: further.get(name, answer.get(name)) for name in STORED}


def question_parts(
    targets: Sequence[Any], parameters: dict[str, Any], repeat: Any
) -> Sequence[Any]:
    """Return the parts of the question, in the form that machine files have: Experiment.form."""
    scheme = parameters.pop("scheme")
    return *targets, parameters | {"repeat": repeat}, scheme


def figures(parameters: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a run that follow from its answer. Raises RunFailed if it is none."""
    values = _values(parameters, answer)
    values |= {f"counters_{name}": values["counters"].get(name) for name in COUNTERS}
    columns = {name: values[name] for name in FRAME_COLUMNS if name in values}
    for name in NUMBERS:
        if not machine_files.is_number(number := columns.get(name)):
            raise RunFailed(
                f"{name} is {number!r}; a run needs a finite number. Nothing was recorded."
            )
    if not recorded_rows.is_plain(columns, ()):
        raise RunFailed("a run has a list or a table in a column. Nothing was recorded.")
    return columns


#: Runs as machine files have them, and as a stack's own experiment (bench.fetching) has them, too.
FETCHES = Experiment(places.PROBES / "fetch.py", figures, form=question_parts)


def from_measurement(measurement: Measurement, stack: str = "") -> Run:
    """Return the run of a measurement. The code of today says what follows from its answer.

    stack: what it is called, if it is of none.
    """
    provenance = measurement.provenance
    return Run(
        stack=measurement.stacks[0].name if measurement.stacks else stack,
        repeat=measurement.repeat or 1,
        measured_at=provenance["measured_at"],
        source=provenance["source"],
        provenance={name: provenance[name] for name in measurements.COLUMNS},
        **_values(measurement.parameters, measurement.answer),
    )


def _values(parameters: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a run that were asked for, that were answered, and that follow."""
    asked = {name: parameters[name] for name in _ASKED}
    answered: dict[str, Any] = {name: answer.get(name) for name in STORED}
    n, delay_s, wall_s = asked["n"], asked["delay_s"], answered["wall_s"]
    peak = answered["counters"].get("peak_in_flight")
    return {
        **asked,
        **answered,
        "cpu_s": round(answered["user_s"] + answered["sys_s"], 6),
        "effective_concurrency": effective_concurrency(n, delay_s, wall_s),
        "verdict": verdict(n, delay_s, wall_s, peak),
    }


def frame(runs: Iterable[Run]) -> pd.DataFrame:
    """Return runs as a tidy frame: one row a run, the columns FRAME_COLUMNS."""
    return pd.DataFrame([row(run) for run in runs], columns=FRAME_COLUMNS)


def frame_of(measured: Iterable[Measurement], stack: str = "") -> pd.DataFrame:
    """Return the runs of measurements as `frame` does, with one column more, `instead`."""
    rows = [
        row(from_measurement(measurement, stack)) | {"instead": measurement.provenance["instead"]}
        for measurement in measured
    ]
    return pd.DataFrame(rows, columns=[*FRAME_COLUMNS, "instead"])


def row(run: Run) -> dict[str, Any]:
    """Return a run as a row of `frame`."""
    counters = {f"counters_{name}": run.counters.get(name) for name in COUNTERS}
    values = vars(run) | run.provenance | counters
    return {name: values.get(name) for name in FRAME_COLUMNS}


def _rows_of_answer(stored: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the row of a machine file's answer; none if it is no run, or no longer one."""
    try:
        script, [stack, *_], asked, scheme = stored["asked"]
        if script != FETCHES.script.stem or "gather" in asked:
            return []
        columns = figures(asked | {"scheme": scheme}, measurements.answer_in(stored))
        provenance = {name: stored.get(name) for name in ("measured_at", *measurements.COLUMNS)}
        return [{"stack": stack, "repeat": asked["repeat"]} | columns | provenance]
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, CasebookError):
        return []


#: Recorded runs: rows of what machine files have.
RUNS = recorded_rows.Kind("runs", _rows_of_answer, (*NUMBERS, "repeat"))
