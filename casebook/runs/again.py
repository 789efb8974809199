"""A chapter that is executed once more because a finding came out otherwise.

The build then names a file in CASEBOOK_AGAIN: {"keys": [of the measurements behind those
findings], "claims": {id: the record of the first attempt}}. Those measurements are made again,
all others come from the store, and a claim shows both attempts.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

VARIABLE = "CASEBOOK_AGAIN"

_kept = ContextVar("_kept", default=False)


def wanted(key: str) -> bool:
    """Whether the measurement that was stored under this key is to be made again."""
    return not _kept.get() and key in _told()["keys"]


@contextlib.contextmanager
def keeping() -> Iterator[None]:
    """Make nothing again meanwhile: the rounds of the first attempt stay, and others are added."""
    token = _kept.set(True)
    try:
        yield
    finally:
        _kept.reset(token)


def made_otherwise(frame: pd.DataFrame) -> bool:
    """Whether some of these runs are behind a finding that came out otherwise."""
    return "key" in frame and not _told()["keys"].isdisjoint(frame["key"].dropna())


def before(id: str) -> dict[str, Any] | None:
    """What the first attempt said of a claim; None where there was none."""
    return _told()["claims"].get(id)


@lru_cache(maxsize=8)
def _read(path: str) -> dict[str, Any]:
    told = json.loads(Path(path).read_text())
    return {"keys": frozenset(told["keys"]), "claims": told["claims"]}


def _told() -> dict[str, Any]:
    path = os.environ.get(VARIABLE)
    return _read(path) if path else {"keys": frozenset(), "claims": {}}
