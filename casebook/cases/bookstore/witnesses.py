"""Clients of the bookstore that have nothing to do with Python: h2load and curl.

They check no body; their figures do not depend on any other measurement of the book. If one is not
installed its functions return None, unless CASEBOOK_REQUIRE names it.
https://nghttp2.org/documentation/h2load.1.html, https://curl.se/docs/
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pandas as pd

from casebook.cases.bookstore import stock
from casebook.cases.bookstore.store import stack_of
from casebook.cases.bookstore.visiting import Host
from casebook.errors import UsageError, VisitFailed
from casebook.laboratory import measurements, rounds
from casebook.laboratory.experiment import Experiment, Parameters, Variant, in_rounds
from casebook.mistakes import check_range, for_readers
from casebook.stacks import commands, digests, environments

#: How each comes onto a machine.
INSTALL = {"h2load": "apt-get install nghttp2-client", "curl": "apt-get install curl"}

#: The columns of `h2load_visits`.
VISIT_COLUMNS = [
    *("protocol", "books", "body_bytes", "wall_s", "stack", "n", "repeat", "server_cpu_s"),
    *("source", "measured_at", *measurements.COLUMNS),
]
#: Those that h2load and the store give.
_FIGURES = ("protocol", "books", "body_bytes", "wall_s", "server_cpu_s")

_LONGEST_S = 120

#: Without the reader's own settings, proxies and certificates.
_ENVIRON = {"PATH": os.defpath, "LANG": "C.UTF-8"}

#: Where h2load says how many responses had a status of 200 to 299, how many were whole, over which
#: protocol they came, and the bytes of all bodies.
_GOOD, _WHOLE = r"^status codes: (\d+) 2xx", r"^requests: .* (\d+) succeeded"
_PROTOCOL, _BODIES = r"^Application protocol: (\S+)", r"\((\d+)\) data$"


def find(name: str) -> str | None:
    """Find a witness ("h2load" or "curl"): its path, or None.

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


def h2load(store, n: int | None = None, protocol: str = "h2") -> dict | None:
    """Fetch n books (None: all) over one connection, as fast as h2load can.

    No list is fetched, no certificate verified and no body compared. protocol: "h2", with 100
    requests open at a time, or "http/1.1".

    Returns {"protocol", "books", "body_bytes" (of all bodies together), "wall_s"}. Raises
    VisitFailed when it brought less, or over another protocol.
    """
    path = find("h2load")
    if path is None:
        return None
    ids = stock.ids()[:n]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as addresses:
        addresses.write("".join(f"{store.url}/book?id={book}\n" for book in ids))
        addresses.flush()
        options = ["-m", "100"] if protocol == "h2" else ["--h1"]
        completed = _run("h2load", path, *options, "-n", str(len(ids)), "-i", addresses.name)
    finished = re.search(r"^finished in ([\d.]+)(us|ms|s)\b", completed.stdout, re.MULTILINE)
    if not finished:
        message = commands.last_line(completed)
        raise VisitFailed(f"h2load: no result ({message}). Nothing was recorded.")
    books = min(int(_match(pattern, completed.stdout)) for pattern in (_GOOD, _WHOLE))
    spoken = _match(_PROTOCOL, completed.stdout)
    if (books, spoken) != (len(ids), protocol):
        raise VisitFailed(
            f"h2load: {books} of {len(ids)} books over {spoken or 'no protocol'}, where "
            f"{protocol} was asked for. Nothing was recorded."
        )
    return {
        "protocol": protocol,
        "books": books,
        "body_bytes": int(_match(_BODIES, completed.stdout)),
        "wall_s": round(float(finished[1]) / {"us": 1e6, "ms": 1e3, "s": 1.0}[finished[2]], 6),
    }


@rounds.takes_until
def h2load_visits(n: int, repeats: int | range = 1) -> pd.DataFrame:
    """Measure what n books cost the server when h2load asks for them: columns VISIT_COLUMNS.

    A row a visit, over one connection to Twisted of either protocol, in turns. repeats, until,
    looks: as for timed_visits.visit. Empty if h2load is not installed. Raises as `h2load`, and what
    store.open_store raises.
    """
    check_range("n", n, 1, stock.SIZE)
    if find("h2load") is None:
        return pd.DataFrame(columns=VISIT_COLUMNS)
    parameters = {"stack": stack_of("twisted").name, "n": n}
    tool = measurements.Using("h2load", digests.tool("h2load"))
    with Host() as host:
        experiment = Experiment(
            Path(__file__),
            lambda _, answer: {name: answer[name] for name in _FIGURES},
            depends_on=(host.depends_on("twisted"), tool),
            ask=partial(_visit, host),
            form=_question_parts,
        )
        variants: list[Variant] = [
            (experiment, (), parameters | {"protocol": protocol}) for protocol in ("http/1.1", "h2")
        ]
        frame = in_rounds(variants, repeats, "h2load at the bookstore")
    return frame.reindex(columns=VISIT_COLUMNS)


def _question_parts(_: Any, parameters: dict[str, Any], repeat: Any) -> Sequence[Any]:
    """Return the parts of the question, in the form that machine files have: Experiment.form."""
    protocol = parameters.pop("protocol")
    return protocol, parameters | {"repeat": repeat}


def _visit(host: Host, parameters: Parameters) -> dict[str, Any]:
    place = host.store("twisted")
    before_s = place.cpu_s()
    figures = h2load(place, parameters["n"], parameters["protocol"]) or {}
    return figures | {"server_cpu_s": round(place.cpu_s() - before_s, 6)}


@for_readers
def curl(store, path: str = "/", http1_only: bool = False) -> dict | None:
    """Fetch one path with curl, which is offered both protocols unless http1_only.

    Returns {"protocol" ("h2" or "http/1.1"), "status", "body" (text), "said" (curl's own words
    about the connection, line by line)}. Raises VisitFailed when the server cannot be reached or
    trusted.
    """
    if not path.startswith("/"):
        raise UsageError(f"{path!r} is no path: it must begin with /")
    program = find("curl")
    if program is None:
        return None
    version = "--http1.1" if http1_only else "--http2"
    completed = _run(
        *("curl", program, "--disable", "--silent", "--show-error", "--verbose", version),
        *("--cacert", str(store.ca_file), "--write-out", "\n%{json}", store.url + path),
    )
    body, _, report = completed.stdout.rpartition("\n")
    figures = json.loads(report) if report else {}
    if completed.returncode:
        problem = figures.get("errormsg") or commands.last_line(completed)
        raise VisitFailed(f"curl: {path}: {problem}. Nothing was recorded.")
    messages = [line[2:].strip() for line in completed.stderr.splitlines() if line.startswith("* ")]
    return {
        "protocol": {"2": "h2", "1.1": "http/1.1"}[str(figures["http_version"])],
        "status": figures["http_code"],
        "body": body,
        # But for the paths of this run.
        "said": [line for line in messages if not line.startswith(("CAfile", "CApath"))],
    }


def _run(name: str, *command: str) -> CompletedProcess[str]:
    return commands.run(
        command, name, _LONGEST_S, _ENVIRON, advice="Nothing was recorded.", failed=VisitFailed
    )


def _match(pattern: str, output: str) -> str:
    match = re.search(pattern, output, re.MULTILINE)
    return match[1] if match else ""
