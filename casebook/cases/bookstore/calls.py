"""The Python calls of a client, by package: what a visit's processor time is spent on.

The number of calls, unlike a time, is the same on a busy machine and an idle one.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from casebook.cases.bookstore import readers, stock, store, visiting
from casebook.errors import EnvironmentFailed, MissingInterpreter, UsageError
from casebook.laboratory import measurements
from casebook.mistakes import for_readers
from casebook.words import LIVE

#: The packages that put HTTP itself into bytes and take it out of them again; and what is ours.
_KINDS = {
    **dict.fromkeys(("h2", "hpack", "hyperframe", "jh2", "http", "email", "h11"), "http"),
    **dict.fromkeys(("our script", "json"), "ours"),
}

_LONGEST_S = 120

_PROBE = Path(__file__).parent / "probes" / "package_calls.py"


@for_readers
def per_book(clients: Iterable[str], few: int = 10, many: int = 30) -> pd.DataFrame:
    """Count the Python calls that each client makes for one book: one row for each package.

    Each client visits a Twisted store twice under cProfile, with few and with many books: the
    difference is what books cost. Calls in other threads are not seen. Columns: client, label,
    package, kind ("http": putting HTTP into bytes and back; "ours": our script, and reading the
    JSON; "around": all else), calls (for one book), source, measured_at.

    Clients that cannot run here are left out; if those are all, what environments.ensure said is
    raised. Raises UsageError, VisitFailed when a visit does not bring its books, and what
    open_store raises.
    """
    if not 1 <= few < many <= stock.SIZE:
        raise UsageError(
            f"few is {few}, many is {many}; choose 1 to {stock.SIZE}, and many more than few"
        )
    clients = list(clients)
    for client in clients:
        readers.manner(client)
    rows, missing = [], None
    with store.open_store() as place:
        for client in clients:
            try:
                rows += _rows(client, place, few, many)
            except (MissingInterpreter, EnvironmentFailed) as error:
                missing = error
    if missing and not rows:
        raise missing
    return pd.DataFrame(rows).assign(source=LIVE, measured_at=measurements.utc_now())


def _rows(client: str, place, few: int, many: int) -> list[dict]:
    manner = readers.manner(client)
    few_calls, many_calls = (_count_calls(manner, place, n) for n in (few, many))
    return [
        {
            "client": client,
            "label": manner.label,
            "package": package,
            "kind": _KINDS.get(package, "around"),
            "calls": round((calls - few_calls.get(package, 0)) / (many - few), 2),
        }
        for package, calls in many_calls.items()
    ]


def _count_calls(manner: readers.Manner, place, n: int) -> dict[str, int]:
    ids = stock.ids()[:n]
    answer = readers.read(manner, place, ids, _LONGEST_S, _PROBE, scripts=readers.SCRIPTS)
    visiting.check(manner, answer, n)
    return answer["calls"]
