"""The clients of the bookstore: what each is, how it can visit, and one visit of one."""

import ast
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from casebook import stacks
from casebook.errors import UsageError, VisitFailed
from casebook.laboratory import scripts
from casebook.mistakes import check_choice, check_range, for_readers
from casebook.stacks import environments

SCRIPTS = Path(__file__).parent / "clients"
VISIT = SCRIPTS / "visit.py"

#: The most requests or connections at once that can be asked for.
MOST_AT_ONCE = 1000

#: In which order a client reads responses: each when it is complete; or as they were asked for; or
#: in chunks, each when it is complete, and the next chunk is asked for when one is in as a whole.
ORDERS = ("completed", "asked", "chunks")

H1, H2, H3 = "http/1.1", "h2", "h3"

#: Seconds without a book after which a visit is ended.
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Reader:
    """A client: its name in words, its stack, its script, its library and its protocol.

    many: how many requests it has open at a time on its one connection unless asked otherwise; over
    HTTP/1.1 how many connections. most: the most of them that it can have (1: one request after the
    other). orders: those of ORDERS that it can read in, its own first.
    """

    title: str
    stack: str
    script: str
    library: str
    protocol: str
    many: int = 1
    most: int = MOST_AT_ONCE
    orders: tuple[str, ...] = ORDERS[:2]


def _requests(title: str, stack: str) -> Reader:
    return Reader(title, stack, "with_requests", "requests", H1, most=1)


#: The clients by name. `requests-*` and `hyper` are the article's two; `bare-h2` and `pipes` have
#: no library above the protocol.
READERS = {
    "requests-py37": _requests("requests 2.21, Python 3.7", "stage-1-py37"),
    "requests-2.10-py37": _requests("requests 2.10, Python 3.7", "requests-2.10.0-py37"),
    "requests-2.31-py37": _requests("requests 2.31, Python 3.7", "requests-2.31.0-py37"),
    "requests": _requests("requests", "stage-1-today"),
    "hyper": Reader(
        "hyper, Python 3.7", "hyper-py37", "with_hyper", "hyper", H2, 100, orders=("asked",)
    ),
    "httpx-h1": Reader("httpx, HTTP/1.1", "httpx-today", "with_httpx", "httpx", H1),
    "httpx-h2": Reader("httpx, HTTP/2", "httpx-today", "with_httpx", "httpx", H2),
    "aiohttp": Reader("aiohttp", "aiohttp-today", "with_aiohttp", "aiohttp", H1, 6),
    "niquests": Reader(
        "niquests", "niquests-today", "with_niquests", "niquests", H2, 100, orders=("asked",)
    ),
    "pycurl-h1": Reader(
        "pycurl, HTTP/1.1", "pycurl-today", "with_pycurl", "pycurl", H1, 6, orders=ORDERS[:1]
    ),
    "pycurl-h2": Reader(
        "pycurl, HTTP/2", "pycurl-today", "with_pycurl", "pycurl", H2, 100, orders=ORDERS[:1]
    ),
    "bare-h2": Reader("bare h2", "h2-today", "with_h2", "h2", H2, 100, orders=ORDERS),
    "pipes": Reader("http.client", "h2-today", "pipes", "http.client", H1, 6),
}

#: The two loops of loops.py, of which the order chooses one: for at most a hundred books.
LOOPS = {"two-loops": Reader("two loops", "h2-today", "two_loops", "h2", H2, 100, 100)}

#: Those that speak HTTP/3, as only a store of QUIC does: they visit over a line (quic.py).
OVER_QUIC = {
    "bare-h3": Reader(
        "bare h3", "quic-today", "with_aioquic", "aioquic", H3, 100, orders=("completed",)
    ),
    "curl-h3": Reader(
        "curl, HTTP/3", "quic-today", "with_curl_h3", "curl_cffi", H3, 20, orders=("completed",)
    ),
    "niquests-h3": Reader(
        "niquests, HTTP/3", "quic-today", "with_niquests_h3", "niquests", H3, 100, orders=("asked",)
    ),
}


def get(client: str) -> Reader:
    """Return a client by name, of READERS, LOOPS or OVER_QUIC. Raises UsageError."""
    readers = READERS | LOOPS | OVER_QUIC
    if client not in readers:
        check_choice("the client", client, READERS)
    return readers[client]


@dataclass(frozen=True, kw_only=True)
class Manner:
    """Who visits, and how: requests at once on one connection, connections, order of reading."""

    client: str
    at_once: int = 1
    connections: int = 1
    order: str = "asked"

    @property
    def reader(self) -> Reader:
        """Return who visits."""
        return get(self.client)

    @property
    def label(self) -> str:
        """Say who visits and how: "aiohttp, 100 connections"."""
        title, many = self.reader.title, max(self.at_once, self.connections)
        if self.reader.most == 1:
            return title
        if self.reader.protocol != H1:
            return f"{title}, {f'{many} at once' if many > 1 else 'one at a time'}"
        return f"{title}, {many} connection{'s' if many > 1 else ''}"


@for_readers
def manner(client: str, order: str | None = None) -> Manner:
    """Return how a client visits: as it is used to, or with the number and the order asked for.

    "aiohttp:100" is aiohttp with 100 connections, and "httpx-h2:100" httpx with 100 requests at
    once on its one. Raises UsageError for what the client cannot do.
    """
    name, colon, number = client.partition(":")
    reader = get(name)
    if colon and not number.isdigit():
        raise UsageError(f"{client!r}: a whole number has to follow the colon")
    many = int(number) if colon else reader.many
    parameter = "connections" if reader.protocol == H1 else "at_once"
    check_range(f"{name}: {parameter}", many, 1, reader.most)
    if order is not None and order not in reader.orders:
        raise UsageError(f"{name} reads in the order {' or '.join(reader.orders)}, not {order!r}")
    if many == 1:
        return Manner(client=name)  # there is no other order
    return Manner(client=name, order=order or reader.orders[0], **{parameter: many})


def function(path: Path, name: str) -> ast.FunctionDef:
    """Find a function of a script. Raises StopIteration if there is none of this name."""
    parts = ast.parse(path.read_text(encoding="utf-8")).body
    return next(part for part in parts if isinstance(part, ast.FunctionDef) and part.name == name)


@for_readers
def place(client: str) -> dict[str, Any]:
    """Return where a client's `visit` stands, as listings.file takes it.

    {"path", "lines": (first, last)}. Raises UsageError for an unknown client.
    """
    path = SCRIPTS / f"{get(client).script}.py"
    node = function(path, "visit")
    return {"path": path, "lines": (node.lineno, node.end_lineno)}


@for_readers
def read(
    manner: Manner,
    store,
    ids: Sequence[str] | None,
    within_s: float = 300.0,
    script: Path = VISIT,
    **further,
) -> dict:
    """Make one visit of a client: the answer of clients/visit.py, not yet checked.

    store: anything with `url` and `ca_file`. ids: None for all that the store lists. script:
    another that reads and answers the same; further: what it reads beside that, and what is to be
    otherwise (url, timeout_s). Where many books on one connection failed together, they are asked
    for once more, one at a time, and the failure says as `alone` what came of it. Raises
    VisitFailed when there is no answer within within_s, and what environments.ensure raises.
    """
    check_range("within_s", within_s, 1, 3600, " s")
    reader = manner.reader
    run = partial(
        scripts.answer_of, environments.ensure(stacks.get(reader.stack)), script, within_s=within_s,
        called=manner.client, advice="Try fewer books.", failed=VisitFailed,
    )  # fmt: skip
    parameters: dict[str, Any] = {"url": store.url, "ca_file": store.ca_file, "ids": ids}
    parameters |= {"script": reader.script, "protocol": reader.protocol, "at_once": manner.at_once}
    parameters |= {
        "connections": manner.connections,
        "order": manner.order,
        "timeout_s": PATIENCE_S,
    }
    parameters |= {"started_at": time.time()} | further
    answer = run(parameters)
    failure = answer["failure"]
    if failure and failure["waiting"] and not failure["certain"] and manner.at_once > 1:
        retry = {"ids": [failure["book"], *failure["waiting"]], "at_once": 1}
        failure["alone"] = run(parameters | retry)["failure"]
    return answer
