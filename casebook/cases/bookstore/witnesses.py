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
from functools import partial
from pathlib import Path

import pandas as pd

from casebook.cases import h2load as program
from casebook.cases.bookstore import stock
from casebook.cases.bookstore.store import stack_of
from casebook.cases.bookstore.visiting import Host
from casebook.errors import RunFailed, VisitFailed
from casebook.runs import measurements, rounds
from casebook.runs.rounds import in_turns
from casebook.stacks import digests, environments
from casebook.words import LIVE

#: How each comes onto a machine.
INSTALL = {"h2load": "apt-get install nghttp2-client", "curl": "apt-get install curl"}

#: The columns of `h2load_visits`.
VISIT_COLUMNS = [
    *("protocol", "books", "body_bytes", "wall_s", "stack", "n", "repeat", "server_cpu_s"),
    *("source", "measured_at", *measurements.COLUMNS),
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


def h2load(store, n: int | None = None, protocol: str = "h2", connections: int = 1) -> dict | None:
    """Fetch n books (None: all) as fast as h2load can; no list is fetched, and no body compared.

    protocol: "h2", with 100 requests open on each connection, or "http/1.1". Every connection
    begins with the first book, so that several do not fetch the same books as one. Returns
    {"protocol", "books", "body_bytes" (of all bodies together), "wall_s"}. Raises VisitFailed when
    it brought less, or over another protocol.
    """
    if find("h2load") is None:
        return None
    ids = stock.ids()[:n]
    options = ["-m", "100"] if protocol == "h2" else ["--h1"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as addresses:
        addresses.write("".join(f"{store.url}/book?id={book}\n" for book in ids))
        addresses.flush()
        options += ["-n", str(len(ids)), "-c", str(connections), "-i", addresses.name]
        try:
            found = program.run(options, _LONGEST_S)
        except RunFailed as error:
            raise VisitFailed(str(error)) from None
    if (found["good"], found["protocol"]) != (len(ids), protocol):
        raise VisitFailed(
            f"h2load: {found['good']} of {len(ids)} books over {found['protocol']}, where "
            f"{protocol} was asked for. Nothing was recorded."
        )
    return {
        "protocol": protocol,
        "books": found["good"],
        "body_bytes": found["body_bytes"],
        "wall_s": round(found["wall_s"], 6),
    }


@rounds.decidable
def h2load_visits(n: int, repeats: int | range = 1) -> pd.DataFrame:
    """What n books cost the server when h2load asks for them: a row a visit, columns VISIT_COLUMNS.

    Over one connection to Twisted of either protocol, in turns. repeats, until, looks: as for
    visits.visit. Empty where h2load is not installed. Raises as `h2load`, and what
    store.open_store raises.
    """
    if find("h2load") is None:
        return pd.DataFrame(columns=VISIT_COLUMNS)
    made_by = [Path(__file__), *digests.files(program)]
    rows = []
    with Host("twisted") as host:
        for repeat, protocol in in_turns(("http/1.1", "h2"), repeats):
            asked = {"stack": stack_of(host.engine).name, "n": n, "repeat": repeat}
            visit = partial(_visit, host, n, protocol)
            of = digests.tool("h2load"), protocol, asked
            rows.append(host.stored_or_new(visit, made_by, *of) | asked)
    return pd.DataFrame(rows, columns=VISIT_COLUMNS)


def _visit(host: Host, n: int, protocol: str) -> dict:
    before_s = host.store.cpu_s()
    seen = h2load(host.store, n, protocol) or {}
    used_s = round(host.store.cpu_s() - before_s, 6)
    return seen | {"server_cpu_s": used_s, "source": LIVE}


def curl(store, path: str = "/", http1_only: bool = False) -> dict | None:
    """Fetch one path with curl, which is offered both protocols unless http1_only.

    Returns {"protocol" ("h2" or "http/1.1"), "status", "body" (text), "said" (curl's own words
    about the connection, line by line)}. Raises VisitFailed when the server cannot be reached or
    trusted.
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
        "protocol": {"2": "h2", "1.1": "http/1.1"}[str(figures["http_version"])],
        "status": figures["http_code"],
        "body": body,
        # But for the paths of this run.
        "said": [line for line in said if not line.startswith(("CAfile", "CApath"))],
    }
