"""Clients of the bookstore that have nothing to do with Python: h2load and curl.

They check no body; what they say of protocol, counts, bytes and times is independent of all that
is measured elsewhere. Where one is not installed its functions return None, unless
CASEBOOK_REQUIRE names it. https://nghttp2.org/documentation/h2load.1.html, https://curl.se/docs/
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pandas as pd

from casebook import digests
from casebook.cases import h2load as program
from casebook.cases.bookstore import stock
from casebook.cases.bookstore.store import stack_of
from casebook.cases.bookstore.visiting import Host
from casebook.errors import RunFailed, VisitFailed
from casebook.runs import decisions, measurements, runs
from casebook.runs.decisions import Question
from casebook.runs.measure import in_turns
from casebook.stacks import environments

#: How each comes onto a machine.
INSTALL = {"h2load": "apt-get install nghttp2-client", "curl": "apt-get install curl"}

#: The columns of `h2load_visits`.
VISIT_COLUMNS = [
    *("witness", "protocol", "connections", "at_once", "books", "body_bytes", "wall_s"),
    *("engine", "stack", "n", "repeat", "server_cpu_s", "source", "measured_at"),
    *measurements.COLUMNS,
]

_LONGEST_S = 120


def find(name: str) -> str | None:
    """The path of a witness ("h2load" or "curl"), or None.

    curl counts only if it was built with HTTP/2. Raises VisitFailed if CASEBOOK_REQUIRE names one
    that is not there.
    """
    path = shutil.which(name)
    if path and name == "curl" and "HTTP2" not in digests.tool("curl").split():
        path = None
    if path is None and name in environments.required():
        raise VisitFailed(
            f"CASEBOOK_REQUIRE asks for {name}, which is not here or speaks no HTTP/2: "
            f"{INSTALL[name]} brings it."
        )
    return path


def h2load(
    store, n: int | None = None, protocol: str = "h2", connections: int = 1, at_once: int = 100
) -> dict | None:
    """Fetch n books (None: all) as fast as h2load can; no list is fetched, and no body compared.

    protocol: "h2" or "http/1.1"; at_once: requests open on each connection, over HTTP/2 alone.
    Returns the first seven of VISIT_COLUMNS; body_bytes are those of all bodies together. Every
    connection begins with the first book, so that several do not fetch the same books as one (see
    `body_bytes`). Raises VisitFailed when it brought less, or over another protocol.
    """
    if find("h2load") is None:
        return None
    ids = stock.ids()[:n]
    at_once = at_once if protocol == "h2" else 1
    options = {"-n": len(ids), "-c": connections, "-m": at_once}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as addresses:
        addresses.write("".join(f"{store.url}/book?id={book}\n" for book in ids))
        addresses.flush()
        arguments = [str(each) for option in options.items() for each in option]
        arguments += ["-i", addresses.name, *(["--h1"] if protocol != "h2" else [])]
        try:
            found = program.run(arguments, _LONGEST_S)
        except RunFailed as error:
            raise VisitFailed(str(error)) from None
    if (found["good"], found["protocol"]) != (len(ids), protocol):
        raise VisitFailed(
            f"h2load: {found['good']} of {len(ids)} books over {found['protocol']}, where "
            f"{protocol} was asked for. Nothing was recorded."
        )
    return {
        "witness": "h2load",
        "protocol": protocol,
        "connections": connections,
        "at_once": at_once,
        "books": found["good"],
        "body_bytes": found["body_bytes"],
        "wall_s": round(found["wall_s"], 6),
    }


def h2load_visits(
    n: int,
    protocols: Iterable[str] = ("http/1.1", "h2"),
    repeats: int | range = 1,
    until: Question | Iterable[Question] = (),
    looks: Iterable[int] = decisions.LOOKS,
    engine: str = "twisted",
) -> pd.DataFrame:
    """What n books cost the server when h2load asks for them: a row a visit, columns VISIT_COLUMNS.

    Over one connection, with 100 streams where the protocol has streams. repeats, until, looks: as
    for visits.visit; engine: of store.ENGINES. Empty where h2load is not installed. Raises as
    `h2load`, and what store.open_store raises.
    """
    questions = [until] if isinstance(until, Question) else list(until)
    if questions:
        return decisions.until_decided(
            lambda some: h2load_visits(n, protocols, some, engine=engine), questions, looks
        )
    if find("h2load") is None:
        return pd.DataFrame(columns=VISIT_COLUMNS)
    made_by = [Path(__file__), *digests.files(program)]
    rows = []
    with Host(engine) as host:
        for repeat, protocol in in_turns(protocols, repeats):
            asked = {"engine": engine, "stack": stack_of(engine).name, "n": n, "repeat": repeat}
            of = [digests.tool("h2load"), protocol, asked]
            visit = partial(_visit, host, n, protocol)
            rows.append(host.stored_or_new(made_by, of, visit) | asked)
    return pd.DataFrame(rows, columns=VISIT_COLUMNS)


def _visit(host: Host, n: int, protocol: str) -> dict:
    before_s = host.store.cpu_s()
    seen = h2load(host.store, n, protocol) or {}
    used_s = round(host.store.cpu_s() - before_s, 6)
    return seen | {"server_cpu_s": used_s, "source": runs.LIVE}


def curl(store, path: str = "/", http1_only: bool = False) -> dict | None:
    """Fetch one path with curl, which is offered both protocols unless http1_only.

    Returns {"witness", "protocol" ("h2" or "http/1.1"), "status", "bytes", "wall_s", "body"
    (text), "said" (curl's own words about the connection, line by line)}. Raises VisitFailed when
    the server cannot be reached or trusted.
    """
    found = find("curl")
    if found is None:
        return None
    version = "--http1.1" if http1_only else "--http2"
    command = [found, "--disable", "--silent", "--show-error", "--verbose", version]
    command += ["--cacert", str(store.ca_file), "--write-out", "\n%{json}", store.url + path]
    # Without the reader's own settings, proxies and certificates.
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LONGEST_S, env=environment
        )
    except subprocess.TimeoutExpired:
        raise VisitFailed(f"curl: no answer within {_LONGEST_S} s. Nothing was recorded.") from None
    body, _, report = done.stdout.rpartition("\n")
    figures = json.loads(report) if report else {}
    if done.returncode:
        problem = figures.get("errormsg") or done.stderr.strip().splitlines()[-1]
        raise VisitFailed(f"curl: {path}: {problem}. Nothing was recorded.")
    said = [line[2:].strip() for line in done.stderr.splitlines() if line.startswith("* ")]
    return {
        "witness": "curl",
        "protocol": {"2": "h2", "1.1": "http/1.1"}[str(figures["http_version"])],
        "status": figures["http_code"],
        "bytes": figures["size_download"],
        "wall_s": figures["time_total"],
        "body": body,
        # But for the paths of this run.
        "said": [line for line in said if not line.startswith(("CAfile", "CApath"))],
    }


def body_bytes(n: int | None = None, connections: int = 1) -> int:
    """The bytes of the bodies that h2load must get: n requests, dealt out to the connections."""
    sizes = [len(json.dumps(book)) for book in stock.books().values()]
    each, more = divmod(len(sizes) if n is None else n, connections)
    return sum(sum(sizes[: each + (i < more)]) for i in range(connections))
