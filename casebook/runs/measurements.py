"""What this machine measured: each answer in a file named by the digest of all that made it."""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from casebook import places
from casebook.errors import RunFailed
from casebook.runs import again, beside, machine, trust
from casebook.stacks import Stack, commands, digests, environments, scripts
from casebook.words import LIVE

#: The form in which measurements are stored. Another form, another number: old ones are then not
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
        return commands.output(command, "git", 60, os.environ, folder=places.ROOT).strip()
    except RunFailed:
        return "unknown"


def key_of(made_by: Iterable[Path], *of: Any) -> str:
    """The name of a measurement in the store: a digest of everything that makes it what it is.

    made_by: the files that it executes, beside those with which every script is run and certifi's
    certificates. of: stacks, whose environments and steps count, and values that JSON knows. Raises
    MissingInterpreter.
    """
    files = [*digests.files(scripts, commands, trust), *made_by]
    parts = [
        [each.name, each.steps, each.patch, environments.fingerprint(each)]
        if isinstance(each, Stack)
        else each
        for each in of
    ]
    return digests.of(SCHEMA, files, trust.certificates(), parts)


def new(measure: Callable[[], dict[str, Any]], key: str = "") -> dict[str, Any]:
    """A new measurement, with COLUMNS and the moment as `measured_at`."""
    with beside.others():
        found = machine.watched(measure)
    return {"measured_at": now()} | found | {"commit": commit(), "schema": SCHEMA, "key": key}


def stored_or_new(key: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A stored measurement in a build of the book; otherwise a new one, stored. As `new`.

    key: see `key_of`. Where the build takes a chapter again because of this
    measurement, it is made once more, and the first stays beside it.
    """
    if again.wanted(key):
        key += "-again"
    found = load(key)
    if found is None:
        found = new(measure, key)
        # Another chapter may have measured the same meanwhile: the book shows one of the two.
        found = load(key) or found
        save(key, found)
    return found


def rows(measure: Callable[[], list[dict[str, Any]]], key: str) -> list[dict[str, Any]]:
    """The rows of one measurement, stored or new, each with `source`, `instead` (nothing),
    `measured_at` and COLUMNS. As `stored_or_new`."""
    found = stored_or_new(key, lambda: {"rows": measure()})
    made = {name: found.get(name) for name in ("measured_at", *COLUMNS)}
    return [row | made | {"source": LIVE, "instead": ""} for row in found["rows"]]


def of_class(kind: type, found: dict[str, Any]) -> dict[str, Any]:
    """Of what is stored, the fields of a dataclass."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in found.items() if name in names}


def load(key: str) -> dict[str, Any] | None:
    """The stored object. None where there is none that can be read, and for a reader's cell, which
    measures anew: stored measurements count in a build only."""
    if os.environ.get("CASEBOOK_BUILD") != "1":
        return None
    try:
        return json.loads((places.RUNS / f"{key}.json").read_text())
    except (FileNotFoundError, ValueError):
        return None


def save(key: str, value: dict[str, Any]) -> None:
    """Store an object; a reader never sees a half-written one."""
    places.RUNS.mkdir(parents=True, exist_ok=True)
    draft = places.RUNS / f"{key}.{os.getpid()}.part"
    draft.write_text(json.dumps(value))
    draft.replace(places.RUNS / f"{key}.json")
