"""What the reference machine measured (data/reference/), and how it stands in for this one.

There is one way to fall back: rows that were asked for in the same way in everything that matters
come in the place of those that cannot be measured here. Where several machines were asked exactly
this (data/machines/), the one that is most like this one answers, and among equals the reference
machine. A number (n, a delay) that nobody recorded is replaced by the nearest one of one machine.
The column `instead` says of both: "on AMD EPYC, 2 cores" and "n = 10 instead of 7".
"""

import json
import math
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.laboratory import machines
from casebook.words import ON, REFERENCE

#: How `instead` names a number.
_WORDS = {"n": "n =", "delay_s": "a delay in seconds of"}


def _folder() -> Path:
    return places.DATA / "reference"


def rows(kind: str) -> pd.DataFrame:
    """What was recorded of a kind, one row each; empty where nothing was.

    kind: "runs" of the lab server (columns run_record.FRAME_COLUMNS), "visits" to the bookstore
    (`arrivals` as JSON), and "loads", "handshakes" and "instructions" of chapter 10; "observations"
    and the "explorer"'s timelines, with the fields of observations.Observation.
    """
    table, lines = (_folder() / f"{kind}.{form}" for form in ("csv", "jsonl"))
    if lines.exists():
        return pd.DataFrame(map(json.loads, lines.read_text().splitlines()))
    return _read(table, table.stat().st_mtime_ns).copy() if table.exists() else pd.DataFrame()


def save(rows: pd.DataFrame, path: Path) -> None:
    """Keep rows as those of the reference machine: as CSV, or where the file's name ends in
    .jsonl, because cells have parts, as a line of JSON for each."""
    rows = rows.assign(source=REFERENCE)
    if path.suffix == ".csv":
        rows.round(6).to_csv(path, index=False)
    else:
        rows.to_json(path, orient="records", lines=True)


def machine() -> dict[str, Any]:
    """What the reference machine was: processor, cores, kernel, python, openssl, and for each
    stack the versions of its packages."""
    return json.loads((_folder() / "machine.json").read_text())


def select_recorded(
    known: pd.DataFrame,
    match: Mapping[str, object],
    nearest: Mapping[str, Collection[Any]] | None = None,
) -> pd.DataFrame:
    """Select the recorded rows of one machine that stand in for what was asked.

    Parameters:
        known: of `rows`, or of elsewhere.rows.
        match: columns, and the value that each must have; None for an empty cell.
        nearest: numeric columns, and the values that were asked for. Where none of them was
            recorded, the nearest one is taken, and `instead` says "n = 10 instead of 7".

    Returns rows with `source` and `instead`; none where nothing matches.
    """
    instead = []
    if "machine" in known:
        known, its = _of_nearest(known, match, nearest or {})
        instead = [f"{ON}{its}"] if its else []
    rows = _with(known, match)
    for name, wanted in (nearest or {}).items():
        if rows.empty:
            break
        if not rows[name].isin(wanted).any():
            closest = min(rows[name].unique(), key=lambda there: _farness(there, wanted))
            said = ", ".join(f"{each:g}" for each in wanted)
            instead.append(f"{_WORDS.get(name, name)} {closest:g} instead of {said}")
            wanted = [closest]
        rows = rows[rows[name].isin(wanted)]
    return rows.assign(source=REFERENCE, instead="; ".join(instead))


def _with(rows: pd.DataFrame, match: Mapping[str, object]) -> pd.DataFrame:
    for name, value in match.items():
        there = rows.get(name, pd.Series(index=rows.index, dtype=object))
        rows = rows[there.isna() if value is None else there == value]
    return rows


def _of_nearest(
    known: pd.DataFrame, match: Mapping[str, object], nearest: Mapping[str, Collection[Any]]
) -> tuple[pd.DataFrame, str]:
    """The rows of the machine that answers, and its label (empty: the reference machine).

    All rounds of a question come from one machine, so that which of them are asked for decides
    nothing.
    """
    of_any_round = {name: value for name, value in match.items() if name != "repeat"}
    same = _with(known, of_any_round)
    exact = same
    for name, wanted in nearest.items():
        exact = exact[exact[name].isin(wanted)] if len(exact) else exact
    answering = exact if len(exact) else same
    label = min(answering["machine"].unique(), key=unlikeness, default="")
    return known[known["machine"] == label], label


@lru_cache
def unlikeness(label: str) -> tuple[bool, bool, float]:
    """How far a machine is from this one: architecture, OpenSSL, cores."""
    its = {each.label: each.about for each in machines.all_recorded()}.get(label) or machine()
    return machines.unlikeness(its)


def _farness(there: float, wanted: Collection[Any]) -> float:
    return min(abs(math.log((there + 1e-3) / (each + 1e-3))) for each in wanted)


@cache
def _read(path: Path, changed: int) -> pd.DataFrame:
    text = dict.fromkeys(("python", "version", "release", "commit", "slow"), str)
    frame = pd.read_csv(path, dtype=text, low_memory=False)
    names = [name for name in ("slow", "recovered", "arrivals", "preload") if name in frame]
    return frame.assign(**{name: frame[name].astype(object).fillna("") for name in names})
