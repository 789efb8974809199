"""A chapter that is executed once more because a finding came out otherwise.

The build then names a file in CASEBOOK_AGAIN: {"keys": [of the measurements behind those
findings], "claims": {id: the record of the first attempt}}. Those measurements are made again,
all others come from the store, and a claim shows both attempts.
"""

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from casebook.laboratory import beside

VARIABLE = "CASEBOOK_AGAIN"


def wanted(key: str) -> bool:
    """Whether the measurement that was stored under this key is to be made again.

    Not what is measured alone: those are rounds, which stay, and to which others are added.
    """
    return not beside.is_alone() and key in _first_attempt()["keys"]


def made_otherwise(frame: pd.DataFrame) -> bool:
    """Whether some of these runs are behind a finding that came out otherwise."""
    return "key" in frame and bool(frame["key"].isin(_first_attempt()["keys"]).any())


def before(id: str) -> dict[str, Any] | None:
    """What the first attempt said of a claim; None where there was none."""
    return _first_attempt()["claims"].get(id)


def _first_attempt() -> dict[str, Any]:
    return _read(os.environ.get(VARIABLE))


@lru_cache(maxsize=8)
def _read(path: str | None) -> dict[str, Any]:
    return json.loads(Path(path).read_text()) if path else {"keys": [], "claims": {}}
