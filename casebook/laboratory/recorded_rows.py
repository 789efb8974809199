"""Recorded answers as rows: those of the reference machine, and those of other machine files."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import stacks
from casebook.laboratory import machine_files, measurements, reference
from casebook.words import REFERENCE

#: From a stored answer to the rows that it makes: none where it is no answer of this kind.
Rows = Callable[[dict[str, Any]], list[dict[str, Any]]]


@dataclass(frozen=True)
class Kind:
    """One kind of recorded rows. A case says which kinds it has.

    Parameters:
        name: what it is called in errors and tests.
        of_answer: from an answer of a machine file to its rows, by the code of today.
        numbers: the columns that must be finite numbers.
        parts: the columns that may hold lists and tables; of_answer has checked them.
        other_stacks: what the column `stack` may say beside names of stacks.
    """

    name: str
    of_answer: Rows
    numbers: tuple[str, ...]
    parts: tuple[str, ...] = ()
    other_stacks: tuple[str, ...] = ()


def of_reference(kind: Kind) -> pd.DataFrame:
    """Read what the reference machine recorded of a kind, as `rows_of_machine` has it."""
    path = reference.file()
    if not path.exists():
        return pd.DataFrame()
    return _rows_cached(path, path.stat().st_mtime_ns, kind).copy()


@lru_cache
def _rows_cached(path: Path, _changed: int, kind: Kind) -> pd.DataFrame:
    return rows_of_machine(machine_files.read_kept(path), kind)


def rows_of_machine(machine: machine_files.Machine, kind: Kind) -> pd.DataFrame:
    """Read the rows of a kind from a machine file: what of_answer gives, `source` and `instead`.

    An answer that lacks what a row needs, has text where a number belongs, or is of a stack that is
    not ours, gives none.
    """
    of_stacks = {*stacks.load(), *kind.other_stacks}
    records = []
    for answer in machine.answers:
        for row in kind.of_answer(answer):
            if is_plain(row, kind.numbers, kind.parts) and row.get("stack") in of_stacks:
                records.append(row | {"source": REFERENCE, "instead": ""})
    return pd.DataFrame(records)


def is_plain(row: dict[str, Any], numbers: Collection[str], parts: Collection[str] = ()) -> bool:
    """Check whether the numbers of a row are finite, and all its values but its parts plain."""
    if not all(machine_files.is_number(row.get(name)) for name in numbers):
        return False
    plain, may_differ = (str, int, float, bool, type(None)), {"asked", *parts}
    return all(isinstance(value, plain) for name, value in row.items() if name not in may_differ)


def plain_rows(answer: dict[str, Any], having: Collection[str]) -> list[dict[str, Any]]:
    """Read the rows of an answer that the store keeps as rows.

    Parameters:
        answer: of a machine file.
        having: columns by which rows of this kind are known; rows without them are left out.
    """
    records = measurements.answer_in(answer).get("rows")
    if not isinstance(records, list):
        return []
    provenance = {name: answer.get(name) for name in ("measured_at", *measurements.COLUMNS)}
    return [
        row | provenance for row in records if isinstance(row, dict) and set(having) <= row.keys()
    ]
