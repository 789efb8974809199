"""The table of stacks, env/stacks.toml: what can be measured, and what the sources say of it."""

import difflib
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casebook import places
from casebook.errors import UsageError
from casebook.mistakes import for_readers

#: What a stack may run on.
PYTHONS = ("2.7", "3.7", "today", "here")

if TYPE_CHECKING:
    from casebook.stacks.environments import clean_environ as clean_environ
    from casebook.stacks.environments import ensure as ensure
    from casebook.stacks.environments import find_interpreter as find_interpreter

TABLE = places.ENV / "stacks.toml"


def __getattr__(name: str) -> Any:
    """Return what the environments offer besides the table; they import it, so this comes later."""
    if name not in ("clean_environ", "ensure", "find_interpreter"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from casebook.stacks import environments

    return getattr(environments, name)


@dataclass(frozen=True)
class Stack:
    """An interpreter, its packages, and what is done in it before the measured code runs."""

    name: str
    #: "2.7", "3.7", "today" (the interpreter that runs casebook) or "here" (its environment too).
    python: str
    #: One sentence.
    about: str
    #: Name of env/locks/<lock>.txt; empty for "here". Stacks may share a lock.
    lock: str = ""
    #: Names of the steps of casebook/cases/fetching/probes/steps.py, in order.
    steps: tuple[str, ...] = ()
    #: File name in env/patches, or empty.
    patch: str = ""
    #: {"id": row of data/published.csv, "verdict": "fast" or "slow"}, or {}.
    says: dict[str, str] = field(default_factory=dict, hash=False)
    #: The default client (casebook/cases/fetching/clients); empty if the environment is for another
    #: experiment, without a client of the lab server.
    client: str = ""
    #: Its label, with {} for its Python; empty if the stack's name says enough. It is
    #: also the label of the stacks with the same name on other Pythons.
    label: str = ""
    #: A name in casebook.colours.COLOURS; empty if the stack's own name decides.
    colour: str = ""
    #: Who uses it, if no chapter does: "tests", "a class". Its environment is made only then.
    only_for: str = ""

    @property
    def packages(self) -> dict[str, str]:
        """Return distribution name to exact version, for every platform, as the lock has them."""
        return pins(self.lock_file.read_text()) if self.lock else {}

    @property
    def lock_file(self) -> Path:
        """Return env/locks/<lock>.txt.

        UsageError, with the command that writes it, if it is missing.
        """
        path = places.ENV / "locks" / f"{self.lock}.txt"
        if path.is_file():
            return path
        raise UsageError(
            f"{self.name}: env/locks/{path.name} is not there yet; "
            f"`python -m casebook.stacks.locks {self.lock}` writes it."
        )


def pins(lock_text: str) -> dict[str, str]:
    """Return the `name==version` lines of a lock.

    They come without markers, digests, and options for installers such as --index-url.
    """
    lines = (line.split("#")[0].split(";")[0].strip(" \\") for line in lock_text.splitlines())
    return dict(line.split("==") for line in lines if line and not line.startswith("-"))


def without_digests(lock_text: str) -> str:
    """Return a lock as it is without the digests of files: the same packages have the same text."""
    return re.sub(r" \\\n    --hash=\S+", "", lock_text)


def table() -> dict[str, Any]:
    """Read env/stacks.toml, as its first lines describe it. UsageError if it is not TOML."""
    return _read(TABLE)


@cache
def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"env/stacks.toml: {error}") from error


@cache
def load() -> dict[str, Stack]:
    """Return all stacks by name, in the order of the table. UsageError for a faulty table."""
    by_name: dict[str, Stack] = {}
    for row in table()["stack"]:
        try:
            stack = Stack(**row | {"steps": tuple(row.get("steps", ()))})
        except TypeError as error:  # a key too many, or too few
            raise UsageError(f"env/stacks.toml, {row.get('name', row)}: {error}") from error
        if stack.name in by_name:
            raise UsageError(f"env/stacks.toml has two rows with the name {stack.name}")
        if stack.python not in PYTHONS:
            choices = ", ".join(PYTHONS)
            raise UsageError(f"{stack.name}: Python {stack.python!r}; choose one of: {choices}")
        by_name[stack.name] = stack
    return by_name


def of_chapters() -> list[Stack]:
    """Return the stacks of chapters: their environments are made before anything is measured."""
    return [stack for stack in load().values() if not stack.only_for]


@for_readers
def get(name: str) -> Stack:
    """Return one stack. UsageError, with the nearest names, if none has this name."""
    by_name = load()
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name, by_name, n=3, cutoff=0.6)
    near = near or [candidate for candidate in by_name if name and (name in candidate)]
    hint = f"did you mean {' or '.join(near)}?" if near else "`casebook stacks` lists them all."
    raise UsageError(f"there is no stack {name!r}: {hint}")
