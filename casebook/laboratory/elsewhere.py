"""What other machines recorded, as rows that stand in like those of the reference machine."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import stacks
from casebook.laboratory import machines, reference
from casebook.words import REFERENCE

#: Of a stored answer, the rows that it makes: none where it is no answer of this kind.
Rows = Callable[[dict[str, Any]], list[dict[str, Any]]]


@dataclass(frozen=True)
class Kind:
    """One kind of recorded rows; a case says which it has.

    name: as reference.rows knows it. of_answer: from an answer of a machine file to its rows, by
    the code of today. numbers: the columns that must be finite numbers.
    """

    name: str
    of_answer: Rows
    numbers: tuple[str, ...]


def rows(kind: Kind) -> pd.DataFrame:
    """What was recorded of a kind: reference.rows, and what the machines of data/machines/ have.

    One column more, `machine`: empty for the reference machine, else a label. In this order: the
    reference machine's, then the others by their names.
    """
    own, files = reference.rows(kind.name), machines.files()
    others = _others(kind, tuple((path, path.stat().st_mtime_ns) for path in files))
    found = [each for each in (own.assign(machine=""), others) if len(each)]
    return pd.concat(found, ignore_index=True) if found else own


@lru_cache
def _others(kind: Kind, changed: tuple[tuple[Path, int], ...]) -> pd.DataFrame:
    found = [of_machine(each, kind).assign(machine=each.label) for each in machines.all_recorded()]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def of_machine(machine: machines.Machine, kind: Kind) -> pd.DataFrame:
    """The rows of a kind that a machine file holds, as reference.rows has them.

    An answer that lacks what a row needs, has text where a number belongs, or is of a stack that is
    not ours, gives none.
    """
    found = []
    for answer in machine.answers:
        for row in kind.of_answer(answer):
            if _is_row(row, kind.numbers) and row.get("stack") in stacks.load():
                found.append(row | {"source": REFERENCE, "instead": ""})
    return pd.DataFrame(found)


def _is_row(row: dict[str, Any], numbers: Collection[str]) -> bool:
    """Whether these columns are finite numbers, and all others a plain value."""
    if not all(machines.is_number(row.get(name)) for name in numbers):
        return False
    plain = (str, int, float, bool, type(None))
    return all(isinstance(value, plain) for name, value in row.items() if name != "asked")
