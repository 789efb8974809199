"""Which recorded rows stand in for those that cannot be measured here.

Rows that were asked for in the same way in everything that matters come in the place of those that
cannot be measured here. Where several machines were asked exactly this (data/machines/), the one
that is most like this one answers. Among equals it is the reference machine: the one whose full
run was made for this, with what no build of the book asks. A number (n, a delay) that nobody
recorded is replaced by the nearest one of one machine. The column `instead` says of both: "on AMD
EPYC, 2 cores" and "n = 10 instead of 7".
"""

import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from casebook.laboratory import machine_files
from casebook.words import ON, REFERENCE

#: How `instead` names a number.
_WORDS = {"n": "n =", "delay_s": "a delay in seconds of"}

#: The name of the reference machine's file, without its suffix.
NAME = "intel-xeon-2core-full"


def file() -> Path:
    """Return the path of the reference machine's file."""
    return machine_files.folder() / f"{NAME}{machine_files.SUFFIX}"


def machine() -> dict[str, Any]:
    """Describe the reference machine, in fields of machines.ABOUT; empty where it has no file."""
    matches = (recorded for recorded in machine_files.all_recorded() if recorded.name == NAME)
    return next((recorded.about for recorded in matches), {})


def select_recorded(
    frame: pd.DataFrame,
    match: Mapping[str, object],
    nearest: Mapping[str, Collection[Any]] | None = None,
) -> pd.DataFrame:
    """Select the recorded rows of one machine that stand in for what was asked.

    Parameters:
        frame: of elsewhere.rows.
        match: columns, and the value that each must have; None for an empty cell.
        nearest: numeric columns, and the values that were asked for. Where none of them was
            recorded, the nearest one is taken, and `instead` says "n = 10 instead of 7".

    Returns rows with `source` and `instead`; none where nothing matches.
    """
    notes = []
    if "machine" in frame:
        frame, name = _of_nearest(frame, match, nearest or {})
        notes = [f"{ON}{label(name)}"] if name else []
    rows = _with(frame, match)
    for name, values in (nearest or {}).items():
        if rows.empty:
            break
        if not rows[name].isin(values).any():
            closest = min(rows[name].unique(), key=lambda number: _distance(number, values))
            requested = ", ".join(f"{value:g}" for value in values)
            notes.append(f"{_WORDS.get(name, name)} {closest:g} instead of {requested}")
            values = [closest]
        rows = rows[rows[name].isin(values)]
    return rows.assign(source=REFERENCE, instead="; ".join(notes))


def _with(rows: pd.DataFrame, match: Mapping[str, object]) -> pd.DataFrame:
    for name, value in match.items():
        column = rows.get(name, pd.Series(index=rows.index, dtype=object))
        rows = rows[column.isna() if value is None else column == value]
    return rows


def _of_nearest(
    frame: pd.DataFrame, match: Mapping[str, object], nearest: Mapping[str, Collection[Any]]
) -> tuple[pd.DataFrame, str]:
    """Select the rows of the machine that answers; return its name, too (empty: the reference).

    All rounds of a question come from one machine, so that which of them are asked for decides
    nothing.
    """
    of_any_round = {name: value for name, value in match.items() if name != "repeat"}
    matches = _with(frame, of_any_round)
    exact = matches
    for name, values in nearest.items():
        exact = exact[exact[name].isin(values)] if len(exact) else exact
    candidates = exact if len(exact) else matches
    name = min(candidates["machine"].unique(), key=unlikeness, default="")
    return frame[frame["machine"] == name], name


def label(name: str) -> str:
    """Describe a machine of data/machines/ in a few words, by the name of its file."""
    return next((file.label for file in machine_files.all_recorded() if file.name == name), name)


@lru_cache
def unlikeness(name: str) -> tuple[bool, bool, float, bool]:
    """Compare a machine with this one: architecture, OpenSSL, cores. Among equals the reference
    machine is the nearest.

    name: of its file; empty for the reference machine.
    """
    about = {file.name: file.about for file in machine_files.all_recorded()}.get(name or NAME, {})
    return *machine_files.unlikeness(about), name not in ("", NAME)


def _distance(number: float, values: Collection[Any]) -> float:
    return min(abs(math.log((number + 1e-3) / (value + 1e-3))) for value in values)
