"""Lots: what an experiment leaves to chance is drawn anew for each build, from a seed that is kept.

The seed lies beside the stored runs, which were drawn from it, and goes with them: a fresh build
draws another. The environment variable CASEBOOK_LOTS names one, to repeat a build.
"""

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from casebook import places
from casebook.errors import UsageError

#: The environment variable, and the file beside the runs.
VARIABLE, FILE = "CASEBOOK_LOTS", places.RUNS / "lots"

_MOST = 1_000_000


def seed() -> int:
    """Return the seed of this checkout's lots.

    It is the one that CASEBOOK_LOTS names, or the one that was drawn when it was first asked for.
    Raises UsageError for what is no whole number.
    """
    if named := os.environ.get(VARIABLE, ""):
        if not named.isdecimal():
            raise UsageError(f"{VARIABLE} is {named!r}; set it to a whole number, or to nothing")
        return int(named)
    if not FILE.exists():
        _keep(secrets.randbelow(_MOST))
    return int(FILE.read_text(encoding="utf-8"))


def _keep(number: int) -> None:
    """Write the seed, unless another process of this checkout has written one meanwhile."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FILE.parent) as folder:
        draft = Path(folder, FILE.name)
        draft.write_text(f"{number}\n", encoding="utf-8")
        with contextlib.suppress(FileExistsError):
            os.link(draft, FILE)  # as a whole, and only once
