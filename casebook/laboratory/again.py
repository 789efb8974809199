"""A chapter that is executed again because of a finding that came out otherwise.

The second attempt at a question on a clock is made where its rounds are taken
(rounds.until_decided). What is left for a build are findings whose condition stands in a cell, such
as "each of thirty threads loaded once", and a question that nobody asked before the rounds. A busy
machine disturbs such a run now and then, too. Nothing in the laboratory can try them again, because
only the chapter's own code says what has to be true: so it is that code that runs again. The
measurements behind these findings are made again, all others come from the store, and a claim shows
both attempts. No finding has more than two.

The build names a file in CASEBOOK_AGAIN: {"keys": [of the measurements behind those findings],
"claims": {id: the record of the first attempt}}.
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


def is_behind(frame: pd.DataFrame) -> bool:
    """Whether a finding because of which the chapter is executed again rests on some of these
    runs, by their column `key`."""
    return "key" in frame and bool(frame["key"].isin(_first_attempt()["keys"]).any())


def before(id: str) -> dict[str, Any] | None:
    """What the first attempt said of a claim; None where there was none."""
    return _first_attempt()["claims"].get(id)


def _first_attempt() -> dict[str, Any]:
    return _read(os.environ.get(VARIABLE))


@lru_cache(maxsize=8)
def _read(path: str | None) -> dict[str, Any]:
    return json.loads(Path(path).read_text()) if path else {"keys": [], "claims": {}}
