"""Visits of the reference machine, for readers without the Python 3.7 that the old clients need.

They are kept in data/reference/visits.csv, a row a visit.
"""

import json
from pathlib import Path

import pandas as pd

from casebook.runs import reference
from casebook.words import REFERENCE

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


def visit(asked: dict) -> dict | None:
    """The recorded visit of this kind and repeat (columns WHAT and `repeat`), or None."""
    known = reference.visits()
    if known.empty:
        return None
    rows = reference.stand_in(known, {name: asked[name] for name in [*WHAT, "repeat"]})
    if rows.empty:
        return None
    record = rows.iloc[0].to_dict()
    return record | {"arrivals": json.loads(record["arrivals"])}
