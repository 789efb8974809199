"""Clients of the bookstore that have nothing to do with Python: h2load and curl.

They check no body; what they say of protocol, counts, bytes and times is independent of all that
is measured elsewhere. Where one is not installed its functions return None, unless
CASEBOOK_REQUIRE names it. https://nghttp2.org/documentation/h2load.1.html, https://curl.se/docs/
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from casebook.cases.bookstore import stock
from casebook.cases.bookstore.hosting import Host
from casebook.cases.bookstore.store import ENGINES, fingerprint
from casebook.cases.h2load import finished_s
from casebook.errors import VisitFailed
from casebook.runs import decisions, measurements
from casebook.runs.decisions import Question
from casebook.runs.measure import in_turns
from casebook.stacks import digests, environments
from casebook.words import LIVE

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
    if path and name == "curl":
        path = path if "HTTP2" in _completed("curl", [path, "--version"]).stdout.split() else None
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
    Returns {"witness", "protocol", "connections", "at_once", "books", "body_bytes", "wall_s"};
    body_bytes are those of all bodies together. Every connection begins with the first book, so
    that several do not fetch the same books as one (see `body_bytes`). None where h2load is not
    installed. Raises VisitFailed when it brought less, or over another protocol.
    """
    program = find("h2load")
    if program is None:
        return None
    ids = stock.ids()[:n]
    at_once = at_once if protocol == "h2" else 1
    with tempfile.TemporaryDirectory() as folder:
        addresses = Path(folder) / "addresses"
        addresses.write_text("".join(f"{store.url}/book?id={book}\n" for book in ids))
        command = [program, "-n", len(ids), "-c", connections, "-m", at_once, "-i", addresses]
        done = _completed("h2load", command + (["--h1"] if protocol != "h2" else []))
    said, wall_s = done.stdout, finished_s(done.stdout)
    if wall_s is None:
        last = (done.stderr or said).strip().splitlines()[-1:] or ["it said nothing"]
        raise VisitFailed(f"h2load: exit code {done.returncode}: {last[0]}")
    good = int(_found(r"^status codes: (\d+) 2xx", said))
    spoke = _found(r"^Application protocol: (\S+)", said, "no protocol at all")
    if (good, spoke) != (len(ids), protocol):
        raise VisitFailed(
            f"h2load: {good} of {len(ids)} books over {spoke}, where {protocol} was asked for. "
            "Nothing was recorded."
        )
    return {
        "witness": "h2load",
        "protocol": spoke,
        "connections": connections,
        "at_once": at_once,
        "books": good,
        "body_bytes": int(_found(r"\((\d+)\) data$", said)),
        "wall_s": round(wall_s, 6),
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
    rows = []
    with contextlib.ExitStack() as opened:
        host = Host(engine, 0.0, {}, None, opened)
        for repeat, protocol in in_turns(protocols, repeats):
            asked = {"engine": engine, "stack": ENGINES[engine][0], "n": n, "repeat": repeat}

            def take(protocol=protocol) -> dict:
                before_s = host.store.cpu_s()
                seen = h2load(host.store, n, protocol)
                used_s = round(host.store.cpu_s() - before_s, 6)
                return (seen or {}) | {"server_cpu_s": used_s, "source": LIVE}

            key = digests.of(
                *(measurements.SCHEMA, Path(__file__), digests.tool("h2load")),
                *(fingerprint(engine), protocol, asked),
            )
            rows.append(measurements.stored_or_new(key, take) | asked)
    return pd.DataFrame(rows, columns=VISIT_COLUMNS)


def curl(store, path: str = "/", http1_only: bool = False) -> dict | None:
    """Fetch one path with curl, which is offered both protocols unless http1_only.

    Returns {"witness", "protocol" ("h2" or "http/1.1"), "status", "bytes", "wall_s", "body"
    (text), "said" (curl's own words about the connection, line by line)}; None where curl is not
    installed, or without HTTP/2. Raises VisitFailed when the server cannot be reached or trusted.
    """
    program = find("curl")
    if program is None:
        return None
    version = "--http1.1" if http1_only else "--http2"
    command = [program, "--disable", "--silent", "--show-error", "--verbose", version]
    command += ["--cacert", store.ca_file, "--write-out", "\n%{json}", store.url + path]
    done = _completed("curl", command)
    body, _, report = done.stdout.rpartition("\n")
    figures = json.loads(report) if report else {}
    if done.returncode:
        problem = figures.get("errormsg") or done.stderr.strip().splitlines()[-1]
        raise VisitFailed(f"curl: {path}: {problem}. Nothing was recorded.")
    said = [line[2:].strip() for line in done.stderr.splitlines() if line.startswith("* ")]
    said = [line for line in said if not line.startswith(("CAfile", "CApath"))]  # a path of a run
    return {
        "witness": "curl",
        "protocol": {"2": "h2", "1.1": "http/1.1"}[str(figures["http_version"])],
        "status": figures["http_code"],
        "bytes": figures["size_download"],
        "wall_s": figures["time_total"],
        "body": body,
        "said": said,
    }


def body_bytes(n: int | None = None, connections: int = 1) -> int:
    """The bytes of the bodies that h2load must get: n requests, dealt out to the connections."""
    sizes = [len(json.dumps(book)) for book in stock.books().values()]
    each, more = divmod(len(sizes) if n is None else n, connections)
    return sum(sum(sizes[: each + (i < more)]) for i in range(connections))


def _completed(name: str, command: list) -> subprocess.CompletedProcess:
    """The witness, run without the reader's own settings, proxies and certificates."""
    try:
        return subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired:
        raise VisitFailed(
            f"{name}: no answer within {_LONGEST_S} s. Nothing was recorded."
        ) from None


def _found(pattern: str, text: str, otherwise: str = "0") -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else otherwise
