"""The store: a server of the books in a process and an environment of its own.

    with open_store() as store:
        ...                        # any client: store.url, store.ca_file
        print(store.cpu_s(), store.counters())

A server that does not speak what was promised, and would have its clients fall back to HTTP/1.1
without a word, is refused at the start.
"""

import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, TypedDict, Unpack
from urllib.parse import urlsplit

from h2.settings import SettingCodes

from casebook import stacks
from casebook.cases.bookstore import opening, stock
from casebook.cases.bookstore.clients import bare_h2
from casebook.cases.fetching.server import MAX_DELAY_S, certificates
from casebook.cases.fetching.server.process import Server, first_line
from casebook.errors import ServerFailed, UsageError
from casebook.mistakes import check_range, for_readers
from casebook.stacks import Stack, digests, environments

#: What serves: the stack whose environment it runs in, and the script.
ENGINES = {
    "twisted": ("twisted-today", "twisted_store.py"),
    "twisted-16.3": ("twisted-16.3-py37", "twisted_store.py"),
    "granian": ("granian-today", "granian_store.py"),
}

#: What a server can be made to lack, to see what happens: the package h2, the negotiation of the
#: protocol (ALPN), the names in its certificate (subjectAltName).
LACKS = ("", "h2", "alpn", "names")

_GREETS_WITHIN_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Store(Server):
    """A running store; a context manager that stops it.

    `url` is https://127.0.0.1:PORT; `ca_file` the PEM file to trust; `engine` one of ENGINES;
    `protocol` what a client that offers both gets, "h2" or "http/1.1"; `tls` the version of TLS
    that it gets, such as "TLSv1.3"; `max_streams` how many requests a connection may have open at
    a time, as the server's own SETTINGS say (None: over HTTP/1.1, or without a limit); `delay_s`
    and `slow` what `open_store` was told.
    """

    engine: str
    protocol: str
    tls: str
    max_streams: int | None
    delay_s: float
    slow: dict[str, float | None]

    def cpu_s(self) -> float:
        """Return user and system CPU seconds of the server's process.

        They count since it began, its start included: take differences.
        """
        return self._send("cpu")["cpu_s"]

    def counters(self) -> dict:
        """Return what was asked since the start or the last reset.

        `connections` (that asked for something), `requests`, `peak_streams` (the most requests that
        one connection had open at once) and `protocols` (requests by "HTTP/1.1" and "HTTP/2").
        Granian counts a request as open until its answer is known, Twisted until it is sent.
        """
        return self._send("counters")

    def let_go(self) -> None:
        """Answer the books that are held back; from now on none is."""
        self._send("let_go")


class Options(TypedDict, total=False):
    """What a store can be asked for."""

    #: Offer no HTTP/2.
    http1_only: bool
    #: Seconds before each book is answered; the list of ids never waits.
    delay_s: float
    #: Other seconds for some ids, and None for those that are held back until `Store.let_go`.
    slow: Mapping[str, float | None] | None
    #: The file that it reads its books from, once, before it serves.
    books: Path
    #: 0 for any free one.
    port: int
    #: One of LACKS.
    lacks: str


_USUAL: Options = {"http1_only": False, "delay_s": 0.0, "slow": None, "port": 0, "lacks": ""}


@for_readers
def open_store(engine: str = "twisted", refuse: bool = True, **chosen: Unpack[Options]) -> Store:
    """Open a store on 127.0.0.1 and wait until it serves. It dies with this process.

    engine: one of ENGINES. refuse: end a server that does not speak HTTP/2 though it should.
    chosen: its options, if they are not as usual.

    Raises UsageError, ServerFailed when it does not start, and what environments.ensure raises.
    """
    options: dict[str, Any] = {**_USUAL, **chosen}
    slow = options["slow"] = dict(options["slow"] or {})
    _check(engine, options)
    names = options["lacks"] != "names"
    with opening.serving(*ENGINES[engine], not names, **options) as (process, files):
        url = f"https://127.0.0.1:{_port(process, files.ca_file)}"
        protocol, tls, max_streams = _greet(url, files.ca_file, names)
        if refuse and not options["http1_only"] and protocol != "h2":
            raise ServerFailed(_refusal(engine, protocol))
        store = Store(
            url,
            files.ca_file,
            process,
            engine=engine,
            protocol=protocol or "http/1.1",
            tls=tls,
            max_streams=max_streams,
            delay_s=options["delay_s"],
            slow=slow,
        )
        store.reset()  # the greeting was no visit
        return store


def stack_of(engine: str) -> Stack:
    """Return the stack whose environment an engine runs in. Raises UsageError."""
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}: choose {', '.join(ENGINES)}")
    return stacks.get(ENGINES[engine][0])


def fingerprint(engine: str) -> str:
    """Make a digest of all that makes a store what it is: environment, scripts, books.

    Raises MissingInterpreter.
    """
    return digests.digest(
        environments.fingerprint(stack_of(engine)),
        digests.executed(opening.SERVING / ENGINES[engine][1]),
        [Path(__file__), *digests.files(opening, certificates)],
        stock.FILE.read_text(encoding="utf-8"),
    )


def _check(engine: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError for what no store can be."""
    stack_of(engine)
    lacks, waits_s = options["lacks"], [options["delay_s"], *options["slow"].values()]
    check_range("the port", options["port"], 0, 65535)
    if lacks not in LACKS:
        raise UsageError(f"a store cannot lack {lacks!r}: choose {', '.join(LACKS[1:])}")
    for seconds in waits_s:
        if seconds is not None:
            check_range("the delay", seconds, 0, MAX_DELAY_S, " s")
    if unknown := {*options["slow"]} - {*stock.ids()}:
        raise UsageError(f"there is no book {min(unknown)!r} in the stock")
    if engine == "granian" and lacks in ("h2", "alpn"):
        raise UsageError("Granian cannot be made to fail so: choose twisted or twisted-16.3")
    if engine == "granian" and None in waits_s:
        raise UsageError("Granian holds no book back: choose twisted or twisted-16.3")


def _port(process, ca_file: Path) -> int:
    """Return the port once it is open."""
    try:
        return first_line(process)["port"]
    except ServerFailed as error:
        lines = opening.log_lines(ca_file)
        raise ServerFailed(f"{error}: {lines[-1]}" if lines else str(error)) from None


def _greet(url: str, ca_file: Path, named: bool) -> tuple[str | None, str, int | None]:
    """Return what the server chooses of "h2" and "http/1.1", the version of TLS, and its streams.

    None: it chose nothing. Streams: over h2, the most requests that a connection may have open
    (None: no limit). named: the certificate is for this address. Raises ServerFailed when the
    server cannot be trusted, or does not speak what it chose.
    """
    context = ssl.create_default_context(cafile=ca_file)
    context.check_hostname = named
    try:
        first = bare_h2.Connection(url, context, _GREETS_WITHIN_S)
        tls = first.socket.version() or ""
        with first.socket:
            if first.protocol == "h2":
                first.settle()
                allowed = first.h2.remote_settings
                return "h2", tls, allowed.get(SettingCodes.MAX_CONCURRENT_STREAMS)
        second = HTTPSConnection(urlsplit(url).netloc, context=context, timeout=_GREETS_WITHIN_S)
        with contextlib.closing(second):
            second.request("GET", "/")
            status = second.getresponse().status
        if status != 200:
            raise ServerFailed(f"the server answers HTTP/1.1 with status {status}")
        return first.protocol, tls, None
    except (*bare_h2.LOST, HTTPException) as error:
        raise ServerFailed(f"the server at {url} greets nobody: {error}") from error


def _refusal(engine: str, protocol: str | None) -> str:
    prefix = f"the store on {engine} was refused: "
    if protocol is None:
        return prefix + (
            "it negotiates no protocol (ALPN), so that every client would silently get HTTP/1.1. "
            "Listen with a TLS endpoint and a Site that offers h2, on OpenSSL 1.0.2 or newer; or "
            "ask for http1_only."
        )
    return prefix + (
        f"it was to speak HTTP/2 and negotiates {protocol} instead, as Twisted does without "
        "a word where the package h2 is not installed. Install twisted[http2] ([h2] is no extra of "
        "it); or ask for http1_only."
    )
