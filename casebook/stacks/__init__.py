"""The table of stacks, env/stacks.toml: what can be measured, and what the sources say of it."""

import difflib
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casebook import places
from casebook.errors import UsageError

#: What a stack may run on.
PYTHONS = ("2.7", "3.7", "today", "here")

if TYPE_CHECKING:
    from casebook.stacks.environments import clean_environ as clean_environ
    from casebook.stacks.environments import ensure as ensure
    from casebook.stacks.environments import find_interpreter as find_interpreter

TABLE = places.ENV / "stacks.toml"


def __getattr__(name: str) -> Any:
    """What the environments offer beside the table; they import it, so this comes later."""
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
    #: Who fetches unless something else is asked for (casebook/cases/fetching/clients); empty where
    #: the environment is for another experiment and no client of the lab server.
    client: str = ""
    #: Its label, with {} where its Python is said; empty where both names say it. It is that of the
    #: stacks with the same name on other Pythons, too.
    label: str = ""
    #: A name in casebook.colours.COLOURS; empty where the stack's own name says it.
    colour: str = ""
    #: Who asks for it, where no chapter does: "tests", "a class". Its environment is made then.
    only_for: str = ""

    @property
    def packages(self) -> dict[str, str]:
        """Distribution name to exact version, for every platform, as the lock has them."""
        return pins(self.lock_file.read_text()) if self.lock else {}

    @property
    def lock_file(self) -> Path:
        """env/locks/<lock>.txt. UsageError, with what writes it, where it is not there yet."""
        path = places.ENV / "locks" / f"{self.lock}.txt"
        if path.is_file():
            return path
        raise UsageError(
            f"{self.name}: env/locks/{path.name} is not there yet; "
            f"`python -m casebook.stacks.locks {self.lock}` writes it."
        )


def pins(lock_text: str) -> dict[str, str]:
    """The `name==version` lines of a lock, without their markers; options for installers, such as
    --index-url, are none."""
    lines = (line.split("#")[0].split(";")[0].strip() for line in lock_text.splitlines())
    return dict(line.split("==") for line in lines if line and not line.startswith("-"))


def table() -> dict[str, Any]:
    """env/stacks.toml, as its first lines describe it. UsageError for a file that is none."""
    return _read(TABLE)


@cache
def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"env/stacks.toml: {error}") from error


@cache
def load() -> dict[str, Stack]:
    """All stacks by name, in the order of the table. UsageError for a table that is none."""
    found: dict[str, Stack] = {}
    for row in table()["stack"]:
        try:
            stack = Stack(**row | {"steps": tuple(row.get("steps", ()))})
        except TypeError as error:  # a key too many, or too few
            raise UsageError(f"env/stacks.toml, {row.get('name', row)}: {error}") from error
        if stack.name in found:
            raise UsageError(f"env/stacks.toml has two rows with the name {stack.name}")
        if stack.python not in PYTHONS:
            known = ", ".join(PYTHONS)
            raise UsageError(f"{stack.name}: Python {stack.python!r}; choose one of: {known}")
        found[stack.name] = stack
    return found


def of_chapters() -> list[Stack]:
    """The stacks that chapters ask for: whose environments are made before anything is measured."""
    return [stack for stack in load().values() if not stack.only_for]


def get(name: str) -> Stack:
    """One stack. UsageError, with the nearest names, when there is none called so."""
    known = load()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    near = near or [other for other in known if name and (name in other)]
    hint = f"did you mean {' or '.join(near)}?" if near else "`casebook stacks` lists them all."
    raise UsageError(f"there is no stack {name!r}: {hint}")
