"""Lines of other people's packages that the book quotes, kept as text.

A book that is made where a package is not installed, from a machine file or without an old Python,
quotes these. Where the package is there, what is kept has to be what it says.

    python -m casebook quotes      keep what the chapters quoted when they last ran
"""

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from casebook import places
from casebook.errors import UsageError
from casebook.findings import media

#: Where they are kept: of each release its licence, and of each of its files lines by their number;
#: and what was asked for them, in which stack.
FILE = places.DATA / "quotes.json"


@dataclass(frozen=True)
class Quote:
    """Some lines of a file. release: "urllib3 1.24.3". lines: by their numbers, from 1."""

    release: str
    licence: str
    path: str
    lines: dict[int, str]

    @property
    def place(self) -> str:
        """Return where the lines are, in a caption's words."""
        return f"{self.release}: {self.path}, lines {min(self.lines)} to {max(self.lines)}."


def find(stack: str, request: str) -> Quote | None:
    """Return what is kept of `module name lines`, or of a file by its path, in a stack."""
    store = _store(FILE)
    entry = store["asked"].get(f"{stack} {request}")
    if entry is None:
        return None
    release = store["releases"][entry["release"]]
    lines = release["files"][entry["path"]]
    chosen = {number: lines[str(number)] for number in _numbers(entry["lines"])}
    return Quote(entry["release"], release["licence"], entry["path"], chosen)


def _numbers(text: str) -> list[int]:
    """Return the numbers of lines in "7 9-11"."""
    ranges = (part.partition("-") for part in text.split())
    return [
        number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)
    ]


def _in_short(numbers: Iterable[int]) -> str:
    """Return the numbers of lines as "7 9-11"."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return " ".join("-".join(map(str, ends)) for ends in ranges)


def check(quote: Quote) -> None:
    """Raise UsageError if other lines are kept of this release than its package has."""
    release = _store(FILE)["releases"].get(quote.release, {"files": {}})
    lines = release["files"].get(quote.path, {})
    for number, line in quote.lines.items():
        if lines.get(str(number), line) != line:
            raise UsageError(
                f"{FILE.name} keeps {lines[str(number)]!r} as line {number} of {quote.path} of "
                f"{quote.release}, which says {line!r}"
            )


def record(stack: str, request: str, quote: Quote) -> dict[str, Any]:
    """Return what a cell's output says of a quote."""
    return {"key": f"{stack} {request}", **asdict(quote)}


def gathered(notebooks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what executed notebooks quoted, as FILE keeps it."""
    store: dict[str, Any] = {"asked": {}, "releases": {}}
    for notebook in notebooks:
        for quotes in media.records(notebook, media.QUOTES):
            for quote in quotes["quotes"]:
                release = store["releases"].setdefault(
                    quote["release"], {"licence": quote["licence"], "files": {}}
                )
                lines = {str(number): line for number, line in quote["lines"].items()}
                release["files"].setdefault(quote["path"], {}).update(lines)
                store["asked"][quote["key"]] = {
                    "release": quote["release"],
                    "path": quote["path"],
                    "lines": _in_short(map(int, lines)),
                }
    return _in_order(store)


@functools.cache
def _store(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {"asked": {}, "releases": {}}
    return json.loads(file.read_text(encoding="utf-8"))


def keep() -> str:
    """Keep what the chapters quoted when they last ran, beside what is kept; say how much it is."""
    executed = sorted((places.BUILD / "executed").glob("*.ipynb"))
    latest = gathered(json.loads(path.read_text(encoding="utf-8")) for path in executed)
    store = json.loads(json.dumps(_store(FILE)))
    store["asked"] |= latest["asked"]
    for name, release in latest["releases"].items():
        files = store["releases"].setdefault(name, {**release, "files": {}})["files"]
        for path, lines in release["files"].items():
            files[path] = files.get(path, {}) | lines
    store = _in_order(store)
    FILE.write_text(json.dumps(store, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return f"{FILE}: {len(store['asked'])} quotes of {len(store['releases'])} releases"


def _in_order(store: dict[str, Any]) -> dict[str, Any]:
    """Return the same by the names of stacks, releases and files, and by the numbers of lines."""
    for release in store["releases"].values():
        release["files"] = {
            path: {str(number): lines[str(number)] for number in sorted(map(int, lines))}
            for path, lines in sorted(release["files"].items())
        }
    return {name: dict(sorted(entries.items())) for name, entries in store.items()}
