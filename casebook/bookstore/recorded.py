"""Visits of the reference machine, for readers without the Python 3.7 that the old clients need.

They are kept in data/reference/visits.csv, a row a visit.
"""

import json
from functools import cache
from pathlib import Path

import pandas as pd

from casebook import places
from casebook.runs import REFERENCE

#: The columns that say what a visit is.
WHAT = [
    *("client", "engine", "n", "at_once", "connections", "order", "latency_ms", "delay_s", "slow"),
]

#: Of visits with at most so many books it is kept when each of them arrived.
FEW = 300

_NAME = "visits.csv"


def save(records: list[dict], into: Path) -> None:
    """Keep visits, as visits.record takes them, in a folder."""
    kept = [record | {"source": REFERENCE} for record in records]
    for record in kept:
        arrivals = record["arrivals"] if record["n"] <= FEW else []
        record["arrivals"] = json.dumps(arrivals, separators=(",", ":"))
    pd.DataFrame(kept).to_csv(into / _NAME, index=False)


@cache
def _kept(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame(columns=[*WHAT, "repeat", "arrivals"])
    return pd.read_csv(path, dtype={"python": str, "version": str}, keep_default_na=False)


def visit(asked: dict) -> dict | None:
    """The recorded visit of this kind and repeat (columns WHAT and `repeat`), or None."""
    rows = _kept(places.DATA / "reference" / _NAME)
    for name in [*WHAT, "repeat"]:
        rows = rows[rows[name] == asked[name]]
    if rows.empty:
        return None
    record = rows.iloc[0].to_dict()
    return record | {"arrivals": json.loads(record["arrivals"])}
