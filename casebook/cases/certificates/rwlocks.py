"""How often OpenSSL takes a read-write lock while it loads a bundle: the same on every machine.

A small library (casebook/probes/rwlocks.c) is compiled and preloaded into a stack's process, where
it counts. That needs Linux and a C compiler; elsewhere the reference machine's counts are given.
Only the read-write locks of the C library are counted: neither mutexes, nor numbers in memory that
OpenSSL changes atomically, nor the locks inside malloc.
"""

import tempfile
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from casebook import places, stacks
from casebook.cases.certificates import loading, preloads
from casebook.cases.certificates.loading import Task
from casebook.errors import RunFailed
from casebook.runs import answers, reference
from casebook.stacks import environments
from casebook.words import REFERENCE

SOURCE = places.PROBES / "rwlocks.c"

#: One load of everything: the counter makes each lock dearer, so that times mean nothing here.
TASK = Task(loads=1)

#: The stacks whose counts are recorded.
RECORDED = tuple(f"openssl-{version}-today" for version in loading.OPENSSLS)


def count(names: str | Iterable[str]) -> pd.DataFrame:
    """The locks that one load of all certificates takes in each stack.

    Returns one row a stack, columns loading.COLUMNS, of which `locks` is the finding. Raises
    RunFailed (also where nothing can be counted and nothing was recorded), MissingInterpreter and
    EnvironmentFailed.
    """
    names = [names] if isinstance(names, str) else list(names)
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        counter = preloads.compiled(SOURCE, Path(folder))
        rows = [row for name in names for row in _rows(name, counter, Path(folder))]
    return loading.frame(rows)


def recorded(name: str) -> list[dict]:
    """The reference machine's count of a stack, as rows; empty where it has none."""
    return reference.stand_in(reference.kinds("locks"), {"stack": name}).to_dict("records")


def record() -> list[dict]:
    """The rows that `recorded` gives, counted now."""
    rows = count(RECORDED).to_dict("records")
    return [row | {"source": REFERENCE} for row in rows]


def _rows(name: str, counter: Path | None, folder: Path) -> list[dict]:
    environment = environments.ensure(stacks.get(name))
    if counter is None:
        return _stand_in(name)
    answer = answers.stored_or_new(
        environment.stack,
        preloads.made_of(SOURCE),
        [Path(__file__), Path(loading.__file__), places.PROBES / "loading.py"],
        lambda: loading.ask(environment, [TASK], folder, preloads.variables(counter)),
    )
    rows = loading.rows_of(name, answer, [TASK], repeat=1)
    return rows if rows[0]["locks"] else _stand_in(name)


def _stand_in(name: str) -> list[dict]:
    rows = recorded(name)
    if not rows:
        raise RunFailed(
            f"{name}: locks are counted on Linux with a C compiler (Debian: gcc), and the "
            f"reference machine has no count of this stack. It has: {', '.join(RECORDED)}."
        )
    return rows
