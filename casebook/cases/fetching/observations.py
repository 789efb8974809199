"""What one run looked like from inside: profile, call trace, timeline, turns, provenance.

Observed runs carry instruments and are slower for it, so they are never timings.
"""

import marshal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from casebook.cases.fetching import trust as trusts
from casebook.errors import UsageError
from casebook.laboratory import elsewhere, machine_files, measurements, reference

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


def _observations(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an answer of a machine file as an observation, if it is one that can be shown."""
    try:
        _, (_, *_), parameters, scheme = answer["asked"]
        fields = measurements.of_class(Observation, answer | {"key": "", "instead": ""})
        observation = Observation(**fields)
        if observation.kind != parameters["gather"] or not _can_be_shown(observation):
            return []
        fetching = {name: parameters[name] for name in ("client", "trust")}
    except (AttributeError, LookupError, TypeError, ValueError):
        return []
    return [vars(observation) | fetching | {"scheme": scheme}]


def _can_be_shown(observation: Observation) -> bool:
    """Say whether an observation has the rows of its kind, with numbers where numbers belong."""
    frame, numbers = (
        observation.frame,
        {"profile": _COLUMNS["profile"][3:], "timeline": ["start_s"]},
    )
    beats = observation.answer.get("heartbeats") or []
    texts = (observation.stack, observation.python, observation.steps, observation.measured_at)
    if observation.kind == "profile":
        as_stats(observation)
    return (
        all(isinstance(text, str) for text in texts)
        and all(map(machine_files.is_number, beats))
        and all(
            pd.api.types.is_numeric_dtype(frame[name]) for name in numbers.get(observation.kind, ())
        )
    )


#: Observations as machine files have them.
OBSERVATIONS = elsewhere.Kind("observations", _observations, ("n", "delay_s"), parts=("answer",))


def recorded(
    stack: str,
    kind: str,
    steps: Iterable[str],
    n: int,
    delay_s: float,
    client: str = "grequests",
    scheme: str = "https",
    trust: str = trusts.AUTHORITY,
) -> Observation | None:
    """Find what a machine of data/machines/ observed of a stack after these steps; None: nothing.

    If it had another n or delay, or was not the reference machine, `instead` says so.
    """
    match = {"stack": stack, "kind": kind, "steps": " ".join(steps)}
    match |= {"client": client, "scheme": scheme, "trust": trust}
    observations = elsewhere.rows(OBSERVATIONS)
    rows = reference.select_recorded(observations, match, {"n": [n], "delay_s": [delay_s]})
    if rows.empty:
        return None
    return Observation(**measurements.of_class(Observation, rows.to_dict("records")[0]))


def recorded_profile(stack: str) -> Observation:
    """Find the profile that the reference machine recorded of a stack. Raises UsageError."""
    observations = elsewhere.of_reference(OBSERVATIONS)
    profiles = (
        observations[(observations["stack"] == stack) & (observations["kind"] == "profile")]
        if len(observations)
        else observations
    )
    if profiles.empty:
        raise UsageError(f"No profile of {stack} is recorded; `make record` makes one.")
    return Observation(**measurements.of_class(Observation, profiles.to_dict("records")[0]))
