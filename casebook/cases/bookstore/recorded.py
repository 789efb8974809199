"""Visits of the reference machine, for readers without the Python 3.7 that the old clients need.

They are kept in data/reference/visits.csv, a row a visit.
"""

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from casebook.cases.bookstore.visiting import Visit
from casebook.runs import reference
from casebook.words import REFERENCE

#: Of visits with at most so many books it is kept when each of them arrived.
FEW = 300


def save(records: list[dict], into: Path) -> None:
    """Keep visits, as visits.records makes them, in a folder."""
    frame = pd.DataFrame(records).assign(source=REFERENCE)
    kept = frame["arrivals"].where(frame["n"] <= FEW, "").map(list)
    frame["arrivals"] = kept.map(lambda each: json.dumps(each, separators=(",", ":")))
    frame.to_csv(into / "visits.csv", index=False)


def find(visit: Visit) -> dict | None:
    """The recorded visit of this kind and repeat, or None."""
    known = reference.visits()
    rows = known if known.empty else reference.stand_in(known, asdict(visit))
    if rows.empty:
        return None
    record = rows.iloc[0].to_dict()
    return record | {"arrivals": json.loads(record["arrivals"])}
