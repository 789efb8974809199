"""What one run looked like from inside: profile, call trace, timeline, turns, provenance.

Observed runs carry instruments and are slower for it, so they are never timings.
"""

import marshal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.laboratory import reference

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
        """What was gathered, one row each.

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
        """When the event loop ran its heartbeat, seconds from the start of the fetch."""
        return pd.Series(self.answer.get("heartbeats") or [], name="t_s", dtype=float)


def dump_profile(observation: Observation, path: Path) -> Path:
    """Write an observed profile as a cProfile dump that pstats and SnakeViz read.

    Whatever Python made the profile, the dump is in the format of the running one: Python 3
    cannot read Python 2.7's dumps as they are.
    """
    stats = {}
    for row in observation.answer["profile"]:
        callers = {
            (file, line, function): (nc, cc, tt, ct)  # cProfile keeps callers in this order
            for file, line, function, cc, nc, tt, ct in row["callers"]
        }
        key = (row["file"], row["line"], row["function"])
        stats[key] = (row["cc"], row["nc"], row["tt"], row["ct"], callers)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(marshal.dumps(stats))
    return path


def _rows_of_dump(path: Path) -> list[dict[str, Any]]:
    """A dump as `dump_profile` writes it, as the rows that it was made of."""
    names = ("file", "line", "function", "cc", "nc", "tt", "ct", "callers")
    rows = []
    for key, (*counts, callers) in marshal.loads(path.read_bytes()).items():
        its = [[*caller, cc, nc, tt, ct] for caller, (nc, cc, tt, ct) in callers.items()]
        rows.append(dict(zip(names, (*key, *counts, its), strict=True)))
    return rows


def folder() -> Path:
    """Where the dumps of the reference machine's profiles are."""
    return places.DATA / "reference" / "observations"


def kept(observation: Observation, into: Path) -> dict[str, Any]:
    """An observation as a row that `recorded` reads; a profile goes into a dump, in a folder."""
    names = {observation.kind, "versions", "openssl", "heartbeats"} - {"profile"}
    if observation.kind == "profile":
        dump_profile(observation, into / f"{observation.stack}.prof")
    answer = {name: observation.answer.get(name) for name in sorted(names)}
    return vars(observation) | {"answer": answer}


def recorded(
    stack: str, kind: str, steps: Iterable[str], n: int, delay_s: float
) -> Observation | None:
    """What the reference machine observed of a stack after these steps, or None.

    Where it had another n or delay, `instead` says so.
    """
    exactly = {"stack": stack, "kind": kind, "steps": " ".join(steps)}
    rows = reference.select_recorded(
        reference.rows("observations"), exactly, {"n": [n], "delay_s": [delay_s]}
    )
    if rows.empty:
        return None
    found = Observation(**rows.to_dict("records")[0])
    if kind == "profile":
        found.answer["profile"] = _rows_of_dump(folder() / f"{stack}.prof")
    return found
