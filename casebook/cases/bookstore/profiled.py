"""What a visit's processor time is spent on: the calls of a client, by package.

The number of calls, unlike a time, is the same on a busy machine and an idle one.
"""

import time
from collections.abc import Iterable
from dataclasses import asdict

import pandas as pd

from casebook import stacks
from casebook.cases.bookstore import inspection, readers, stock, store
from casebook.errors import MissingInterpreter, UsageError, VisitFailed
from casebook.runs import measurements
from casebook.runs.bench import PROBES
from casebook.stacks import environments, scripts
from casebook.words import LIVE

BOUND_S = 120

#: The packages that put HTTP itself into bytes and take it out of them again.
OF_HTTP = ("h2", "hpack", "hyperframe", "jh2", "http", "email", "h11")

_OURS = ("our script", "json")


def calls(clients: Iterable[str], few: int = 10, many: int = 30) -> pd.DataFrame:
    """The Python calls that each client makes for one book, by package, one row for each.

    clients: names as for `visits.visit`. Each visits a Twisted store twice under cProfile, with
    few and with many books: the difference is what books cost, without what a visit costs once.
    Calls in other threads are not seen. Columns: client, label, version, package, kind ("http":
    putting HTTP into bytes and back; "ours": our script, and reading the JSON; "around": all
    else), calls (for one book, and for no other reason), source, measured_at.

    Clients whose Python is missing are left out. Raises MissingInterpreter if those are all,
    UsageError for numbers that leave no difference, VisitFailed when a visit does not bring its
    books, and what store.open_store raises.
    """
    if not 1 <= few < many <= stock.SIZE:
        raise UsageError(
            f"few is {few}, many is {many}; choose 1 to {stock.SIZE}, and many more than few"
        )
    rows, missing = [], None
    with store.open_store() as place:
        for client in clients:
            try:
                rows += _rows(client, place, few, many)
            except MissingInterpreter as error:
                missing = error
    if missing and not rows:
        raise missing
    return pd.DataFrame(rows).assign(source=LIVE, measured_at=measurements.now())


def _rows(client: str, place, few: int, many: int) -> list[dict]:
    name, number = readers.numbered(client)
    reader, how = readers.get(name), readers.manner(name, number)
    environment = environments.ensure(stacks.get(reader.stack))
    less, more = (_profile(name, how, environment, place, n) for n in (few, many))
    what = {
        "client": client,
        "label": readers.label(name, how),
        "version": environment.versions.get(reader.library, ""),
    }
    return [
        what
        | {
            "package": package,
            "kind": "ours" if package in _OURS else "http" if package in OF_HTTP else "around",
            "calls": round((count - less.get(package, 0)) / (many - few), 2),
        }
        for package, count in more.items()
    ]


def _profile(client: str, how: readers.Manner, environment, place, n: int) -> dict:
    reader = readers.get(client)
    spec = {
        "script": reader.script,
        "protocol": reader.protocol,
        "ids": list(stock.ids()[:n]),
        "url": place.url,
        "ca_file": str(place.ca_file),
        "timeout_s": readers.PATIENCE_S,
        "started_at": time.time(),
        "scripts": str(readers.SCRIPTS),
    }
    answer = scripts.ask(
        environment, PROBES / "package_calls.py", spec | asdict(how), BOUND_S,
        called=client, advice="Try fewer books.", failed=VisitFailed,
    )  # fmt: skip
    if answer["failure"] or answer["books"] != n:
        cause = f": {inspection.in_words(answer['failure'])}" if answer["failure"] else ""
        raise VisitFailed(
            f"{client}: {answer['books']} of {n} books came under the profile{cause}. "
            "Nothing was recorded."
        )
    return answer["calls"]
