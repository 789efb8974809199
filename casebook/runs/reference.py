"""What the reference machine measured (data/reference/), and how it stands in for this one.

There is one way to fall back: rows that were asked for in the same way in everything that matters
come in the place of those that cannot be measured here. A number (n, a delay) that was not
recorded is replaced by the nearest one, and the row says so in the column `instead`.
"""

import json
import math
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.words import REFERENCE

#: How `instead` names a number.
_WORDS = {"n": "n =", "delay_s": "a delay in seconds of"}


def _folder() -> Path:
    return places.DATA / "reference"


def runs() -> pd.DataFrame:
    """The runs of the lab server, columns run_record.FRAME_COLUMNS."""
    return _csv("runs.csv")


def visits() -> pd.DataFrame:
    """The visits to the bookstore, and `arrivals` as JSON."""
    return _csv("visits.csv")


def kinds(kind: str) -> pd.DataFrame:
    """What loading.json has of a kind: loads, locks, handshakes or instructions."""
    path = _folder() / "loading.json"
    return pd.DataFrame(json.loads(path.read_text()).get(kind, []) if path.exists() else [])


def machine() -> dict[str, Any]:
    """What the reference machine was: processor, cores, kernel, python, openssl, and for each
    stack the versions of its packages."""
    return json.loads((_folder() / "machine.json").read_text())


def stand_in(
    known: pd.DataFrame,
    exactly: Mapping[str, object],
    nearly: Mapping[str, Collection[Any]] | None = None,
) -> pd.DataFrame:
    """The recorded rows that stand in for what was asked; empty where none do.

    exactly: columns and the value that they must have. nearly: numeric columns and the values
    that were asked for; where none of them was recorded, the nearest that was is taken, and
    `instead` says "n = 10 instead of 7".
    """
    rows, instead = known, []
    for name, value in exactly.items():
        rows = rows[rows[name] == value] if name in rows else rows.iloc[:0]
    for name, wanted in (nearly or {}).items():
        if rows.empty:
            break
        if not rows[name].isin(wanted).any():
            nearest = min(rows[name].unique(), key=lambda there: _farness(there, wanted))
            said = ", ".join(f"{each:g}" for each in wanted)
            instead.append(f"{_WORDS.get(name, name)} {nearest:g} instead of {said}")
            wanted = [nearest]
        rows = rows[rows[name].isin(wanted)]
    return rows.assign(source=REFERENCE, instead="; ".join(instead))


def _farness(there: float, wanted: Collection[Any]) -> float:
    return min(abs(math.log((there + 1e-3) / (each + 1e-3))) for each in wanted)


def _csv(name: str) -> pd.DataFrame:
    path = _folder() / name
    return _read(path, path.stat().st_mtime_ns).copy() if path.exists() else pd.DataFrame()


@cache
def _read(path: Path, changed: int) -> pd.DataFrame:
    text = dict.fromkeys(("python", "version", "release", "commit", "slow"), str)
    frame = pd.read_csv(path, dtype=text, low_memory=False)
    names = [name for name in ("slow", "recovered", "arrivals") if name in frame]
    return frame.assign(**{name: frame[name].astype(object).fillna("") for name in names})
