"""What this machine measured: each answer in a file named by the digest of all that made it."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from casebook import places
from casebook.runs import again, machine

#: The form in which measurements are kept. Another form, another number: old ones are then not
#: found, and are made again.
SCHEMA = 2

#: What each measurement says of how it was made: columns of every frame of measurements.
#: commit: of this project; schema: SCHEMA; key: the name in the store ("" when not stored).
COLUMNS = (*machine.COLUMNS, "commit", "schema", "key")


def now() -> str:
    """The time, UTC, ISO 8601 to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def commit() -> str:
    """This project's commit, with "-dirty" where files differ from it; "unknown" without git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        git = subprocess.run(command, cwd=places.ROOT, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return git.stdout.strip() or "unknown"


def may_reuse() -> bool:
    """Whether stored measurements count: only in a build. A reader's cell measures anew."""
    return os.environ.get("CASEBOOK_BUILD") == "1"


def new(take: Callable[[], dict[str, Any]], key: str = "") -> dict[str, Any]:
    """A new measurement, with COLUMNS and the moment as `measured_at`."""
    found = machine.watched(take)
    return {"measured_at": now()} | found | {"commit": commit(), "schema": SCHEMA, "key": key}


def stored_or_new(key: str, take: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A stored measurement in a build of the book; otherwise a new one, stored. As `new`.

    key: a digest of all that makes it. Where the build takes a chapter again because of this
    measurement, it is made once more, and the first stays beside it.
    """
    if again.wanted(key):
        key += "-again"
    measurements = Measurements()
    found = measurements.load(key) if may_reuse() else None
    if found is None:
        found = new(take, key)
        measurements.save(key, found)
    return found


def made(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a measurement says of when and how it was made: measured_at and COLUMNS."""
    return {name: found.get(name) for name in ("measured_at", *COLUMNS)}


class Measurements:
    """A folder of measurements, each a JSON object."""

    def __init__(self, folder: Path | None = None):
        self.folder = folder or places.RUNS

    def load(self, key: str) -> dict[str, Any] | None:
        """The stored object, or None where there is none that can be read."""
        try:
            return json.loads((self.folder / f"{key}.json").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def save(self, key: str, value: dict[str, Any]) -> None:
        """Keep an object; a reader never sees a half-written one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f"{key}.{os.getpid()}.part"
        draft.write_text(json.dumps(value))
        draft.replace(self.folder / f"{key}.json")
