"""Values of a notebook as JSON and back, for what a cell saw of the machine itself.

Only data has such a form, and only data comes back: numbers, text, bytes, lists, tables, and the
few records below. Nothing in it is ever executed.
"""

import base64
import dataclasses
import json
import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from casebook import stacks
from casebook.cases.fetching.detector import Watch
from casebook.cases.fetching.observations import Observation
from casebook.cases.fetching.server import Server
from casebook.errors import CasebookError
from casebook.stacks.environments import Environment

#: The records of ours that have a form.
RECORDS: dict[str, type] = {kind.__name__: kind for kind in (Observation, Watch)}
#: A value whose text is longer has none.
LONGEST = 1_000_000


class NotDataError(Exception):
    """A value has no form as data: a function, a server, an open connection."""


def encode(value: Any) -> Any:
    """Encode a value as JSON data, for `decode` to read. Raises NotDataError."""
    form = _encode(value)
    if len(json.dumps(form)) > LONGEST:
        raise NotDataError
    return form


def _encode(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [_encode(part) for part in value]
    for kind, form, (is_such, parts, _) in _forms():
        if is_such(value):
            return {kind: [_encode(part) for part in parts(value)] if form else parts(value)}
    if isinstance(value, Observation | Watch) and type(value) in RECORDS.values():
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"record": [type(value).__name__, _encode(fields)]}
    raise NotDataError(type(value).__name__)


def decode(form: Any) -> Any:
    """Decode a value from its form. Raises NotDataError for anything that is no such form."""
    if isinstance(form, list):
        return [decode(part) for part in form]
    if not isinstance(form, dict):
        return form
    if len(form) != 1:
        raise NotDataError(form)
    [(kind, parts)] = form.items()
    try:
        if kind == "float" and parts in ("nan", "inf", "-inf"):
            return float(parts)
        if kind == "record":
            name, fields = parts
            return RECORDS[name](**decode(fields))
        for name_of_kind, has_parts, (_, _, back) in _forms():
            if kind == name_of_kind:
                return back([decode(part) for part in parts] if has_parts else parts)
    except (TypeError, ValueError, LookupError, AttributeError, CasebookError) as error:
        raise NotDataError(f"{kind}: {error}") from None
    raise NotDataError(kind)


#: Is it such a value; its parts; the value of these parts.
_Form = tuple[Callable[[Any], bool], Callable[[Any], Any], Callable[[Any], Any]]


def _forms() -> tuple[tuple[str, bool, _Form], ...]:
    """Return the kinds of values: the name, whether the parts have forms themselves, and how."""
    return (
        ("tuple", True, (lambda v: isinstance(v, tuple), list, tuple)),
        ("set", True, (lambda v: isinstance(v, set | frozenset), lambda v: sorted(v, key=repr),
                       set)),
        ("dict", True, (lambda v: isinstance(v, dict), lambda v: [list(p) for p in v.items()],
                        dict)),
        ("bytes", False, (lambda v: isinstance(v, bytes), lambda v: base64.b64encode(v).decode(),
                          lambda p: base64.b64decode(p, validate=True))),
        ("path", False, (lambda v: isinstance(v, Path), lambda v: v.name, Path)),
        ("frame", True, (lambda v: isinstance(v, pd.DataFrame), _of_frame, _frame)),
        ("column", True, (lambda v: isinstance(v, pd.Series), _of_column, _column)),
        ("done", True, (
            lambda v: isinstance(v, subprocess.CompletedProcess),
            lambda v: [v.returncode, v.stdout, v.stderr],
            lambda p: subprocess.CompletedProcess([], *p),
        )),
        ("server", True, (
            lambda v: type(v) is Server,
            lambda v: [v.url, Path(v.ca_file) if v.ca_file else None],
            lambda p: Server(*p),
        )),
        ("environment", True, (
            lambda v: isinstance(v, Environment),
            lambda v: [v.stack.name, v.versions, v.python_version],
            lambda p: Environment(stacks.get(p[0]), Path("python"), p[1], p[2]),
        )),
    )  # fmt: skip


def _of_frame(frame: pd.DataFrame) -> list[Any]:
    columns = [[name, *_of_column(frame.iloc[:, number])[2:]] for number, name in enumerate(frame)]
    return [_index(frame.index), _index(frame.columns), columns]


def _frame(parts: list[Any]) -> pd.DataFrame:
    index, names, columns = parts
    series = {
        number: pd.Series(values, dtype=_dtype(kind), index=range(len(values)))
        for number, (_, kind, values) in enumerate(columns)
    }
    frame = pd.DataFrame(series, index=range(len(index[1])))
    frame.index, frame.columns = _of_index(index), _of_index(names)
    return frame


def _of_column(column: pd.Series) -> list[Any]:
    is_text = isinstance(column.dtype, pd.StringDtype)
    kind = "str" if is_text else column.dtype.name if column.dtype.kind in "bif" else "object"
    return [_index(column.index), column.name, kind, column.astype(object).tolist()]


def _column(parts: list[Any]) -> pd.Series:
    index, name, kind, values = parts
    return pd.Series(values, index=_of_index(index), name=name, dtype=_dtype(kind))


def _dtype(kind: Any) -> str:
    """Return the type of a column. Raises NotDataError for a type that columns do not have here."""
    if not re.fullmatch(r"object|str|bool|u?int\d{1,2}|float\d{2}", str(kind)):
        raise NotDataError(kind)
    return str(kind)


def _index(index: pd.Index) -> list[Any]:
    return [list(index.names), index.tolist()]


def _of_index(parts: list[Any]) -> pd.Index:
    names, values = parts
    if len(names) > 1:
        return pd.MultiIndex.from_tuples(values, names=names)
    return pd.Index(values, name=names[0])
