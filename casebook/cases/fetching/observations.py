"""What one run looked like from inside: profile, call trace, timeline, turns, provenance.

Observed runs carry instruments and are slower for it, so they are never timings.
"""

import marshal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, stacks
from casebook.cases.fetching import trust as trusts
from casebook.errors import CasebookError, RunFailed, UsageError
from casebook.laboratory import machine_files, measurements, recorded_rows
from casebook.laboratory.experiment import Experiment, Measurement
from casebook.mistakes import for_readers
from casebook.words import REFERENCE

_COLUMNS = {
    "profile": ["file", "line", "function", "calls", "tottime_s", "cumtime_s", "pcalls"],
    "trace": ["t_s", "greenlet", "depth", "function", "file", "line", "event"],
    "timeline": ["page", "event", "start_s", "end_s"],
    "turns": ["t_s", "event", "greenlet", "to", "function", "file", "line"],
    "provenance": ["step", "name", "class", "module_file"],
}
KINDS = tuple(_COLUMNS)

#: What a profile's rows call their counts and times, and what frames do.
COUNTS = {"nc": "calls", "cc": "pcalls", "tt": "tottime_s", "ct": "cumtime_s"}


@dataclass(frozen=True)
class Observation:
    """One observed run of a stack.

    kind: profile, trace, timeline, turns or provenance. steps: what was done before the fetch, with
    spaces between. source: live or reference. measured_at: UTC, ISO 8601. answer: what the probe
    reported. key: its name in the store. instead: how a recorded one differs from what was asked.
    """

    stack: str
    kind: str
    n: int
    delay_s: float
    python: str
    steps: str
    measured_at: str
    source: str
    answer: dict[str, Any]
    key: str = ""
    instead: str = ""

    @classmethod
    def from_answer(
        cls, stack: str, steps: Iterable[str], parameters: Mapping[str, Any], answer: dict[str, Any]
    ) -> "Observation":
        """Return the observation of a probe's answer, which is not dated."""
        n, delay_s, kind = parameters["n"], parameters["delay_s"], parameters["gather"]
        python, taken = answer["python"], " ".join(steps)
        return cls(stack, kind, n, delay_s, python, taken, "", REFERENCE, answer)

    @property
    def frame(self) -> pd.DataFrame:
        """Return what was gathered, one row each.

        profile: file, line, function, calls, pcalls (primitive), tottime_s, cumtime_s, by
        descending cumtime_s. trace: t_s, greenlet, depth, function, file, line, event.
        timeline: page, event (connect, handshake, send, wait, receive), start_s, end_s.
        turns: t_s, event, greenlet, to, function, file, line (fetching/turns.py reads them).
        provenance: step, name, class, module_file.
        """
        rows = self.answer[self.kind]
        if self.kind == "profile":
            rows = [
                {COUNTS.get(name, name): value for name, value in row.items()}
                for row in sorted(rows, key=lambda row: -row["ct"])
            ]
        return pd.DataFrame(rows, columns=_COLUMNS[self.kind])

    @property
    def heartbeats(self) -> pd.Series:
        """Return when the event loop ran its heartbeat, in seconds from the start of the fetch."""
        return pd.Series(self.answer.get("heartbeats") or [], name="t_s", dtype=float)


def as_stats(observation: Observation) -> dict[tuple[str, int, str], tuple]:
    """Convert an observed profile to the table that pstats keeps in `Stats.stats`."""
    stats = {}
    for row in observation.answer["profile"]:
        callers = {
            (file, line, function): (nc, cc, tt, ct)  # cProfile keeps callers in this order
            for file, line, function, cc, nc, tt, ct in row["callers"]
        }
        key = (row["file"], row["line"], row["function"])
        stats[key] = (row["cc"], row["nc"], row["tt"], row["ct"], callers)
    return stats


def dump_profile(observation: Observation, path: Path) -> Path:
    """Write an observed profile as a cProfile dump that pstats and SnakeViz read.

    Whatever Python made the profile, the dump is in the format of the running one: Python 3
    cannot read Python 2.7's dumps as they are. Nothing of this project reads one back.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(marshal.dumps(as_stats(observation)))
    return path


def question_parts(
    targets: Sequence[Any], parameters: dict[str, Any], _repeat: Any
) -> Sequence[Any]:
    """Return the parts of the question, in the form that machine files have: Experiment.form.

    What is observed in rounds has their number among its parameters.
    """
    scheme = parameters.pop("scheme")
    return *targets, parameters, scheme


def figures(parameters: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that follow from an answer.

    Raises RunFailed if it cannot be shown: if it has not the rows of its kind, or text where
    numbers belong.
    """
    observation = Observation.from_answer("", (), parameters, answer)
    rows, beats = observation.frame, answer.get("heartbeats") or []
    numbers = {"profile": _COLUMNS["profile"][3:], "timeline": ["start_s"]}
    if observation.kind == "profile":
        as_stats(observation)
    if (
        isinstance(observation.python, str)
        and all(map(machine_files.is_number, beats))
        and all(
            rows.empty or pd.api.types.is_numeric_dtype(rows[name])
            for name in numbers.get(observation.kind, ())
        )
    ):
        return {"python": observation.python}
    raise RunFailed(f"this is no {observation.kind}. Nothing was recorded.")


#: Observations as machine files have them, and as a stack's own experiment (bench.fetching), too.
OBSERVED = Experiment(
    places.PROBES / "fetch.py", figures, nearest=("n", "delay_s"), form=question_parts
)


def from_measurement(measurement: Measurement) -> Observation:
    """Return the observation of a measurement. One that was recorded has no key of this store."""
    [stack], provenance = measurement.stacks, measurement.provenance
    observation = Observation.from_answer(
        stack.name, stack.steps, measurement.parameters, measurement.answer
    )
    return replace(
        observation,
        measured_at=provenance["measured_at"],
        source=provenance["source"],
        key="" if provenance["source"] == REFERENCE else provenance["key"],
        instead=provenance["instead"],
    )


def _observations(stored: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an answer of a machine file as an observation, if it is one that can be shown."""
    try:
        script, [stack, *steps], parameters, scheme = stored["asked"]
        if script != OBSERVED.script.stem or "gather" not in parameters:
            return []
        answer = measurements.answer_in(stored)
        figures(parameters, answer)
        observation = Observation.from_answer(stack, steps, parameters, answer)
        fetching = {name: parameters[name] for name in ("client", "trust")}
        moment = stored.get("measured_at", "")
        if not isinstance(moment, str):
            return []
    except (AttributeError, LookupError, TypeError, ValueError, CasebookError):
        return []
    return [vars(observation) | fetching | {"scheme": scheme, "measured_at": moment}]


#: Observations as machine files have them.
OBSERVATIONS = recorded_rows.Kind(
    "observations", _observations, ("n", "delay_s"), parts=("answer",)
)


def recorded(
    stack: str, kind: str, steps: Iterable[str], n: int, delay_s: float, **options: str
) -> Observation | None:
    """Find what a machine of data/machines/ observed of a stack after these steps; None: nothing.

    options: client, scheme and trust, if they are not grequests, "https" and trust.AUTHORITY. If
    the machine had another n or delay, or was not the reference machine, `instead` says so.
    """
    parameters: dict[str, Any] = {"n": n, "delay_s": delay_s, "gather": kind}
    parameters |= {"client": "grequests", "scheme": "https", "trust": trusts.AUTHORITY}
    parameters |= options
    target = replace(stacks.get(stack), steps=tuple(steps))
    return next(map(from_measurement, OBSERVED.recorded([target], parameters)), None)


@for_readers
def recorded_profile(stack: str) -> Observation:
    """Find the profile that the reference machine recorded of a stack. Raises UsageError."""
    observations = recorded_rows.of_reference(OBSERVATIONS)
    profiles = (
        observations[(observations["stack"] == stack) & (observations["kind"] == "profile")]
        if len(observations)
        else observations
    )
    if profiles.empty:
        stacks.get(stack)
        raise UsageError(f"no profile of {stack} is recorded; `make record` makes one")
    return Observation(**measurements.of_class(Observation, profiles.to_dict("records")[0]))
