"""What else was said of requests and its certificates: each complaint asked, and counted.

    frame = measure("hosts", ["requests-2.34.2-today", "cured-today"])

A complaint is a row of requests in one process, to hosts of our own (hosts.py) that keep
connections open. Counted at each: contexts made and certificates loaded. All verify.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.cases.certificates import hosts
from casebook.cases.certificates.hosts import Hosts
from casebook.cases.fetching import trust
from casebook.errors import UsageError
from casebook.laboratory import measurements, scripts
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.mistakes import for_readers
from casebook.stacks import digests
from casebook.stacks.environments import Environment

PROBE = Path(__file__).parent / "probes" / "complaints.py"

#: The most that a complaint may ask for: hosts, rounds, or requests in all.
MOST = 1000

COLUMNS = [
    *("stack", "complaint", "round", "step", "what", "connections", "contexts", "loads"),
    *("cpu_s", "wall_s", "shown", "python", "openssl", "source", "measured_at", "instead"),
    *measurements.COLUMNS,
]

#: What is asked by the complaint "certificate", in order. Alice has one.
CERTIFICATE = ["bob, before", "alice", "carol, after", "carol, elsewhere", "requests.get"]

#: What can be asked, and the size of it where none is named.
COMPLAINTS = {"first": 5, "hosts": 10, "names": 1, "dropped": 10, "proxies": 3, "certificate": 1}


def _get(label: str, url: str, session: str | None = "one", via=None, cert=None, drop=None) -> dict:
    """Return one GET, as the probe reads it.

    label: what to call it. session: the name of the requests.Session to ask with; None:
    requests.get. via: a proxy's URL. cert: a client certificate's path. drop: the reception at
    which all idle connections are closed before.
    """
    return dict(what=label, url=url, session=session, via=via, cert=cert, drop=drop)


def _requests(complaint: str, servers: Hosts, size: int) -> list[dict]:
    first, numbers = servers.urls[0], range(1, size + 1)
    if complaint == "first":
        return [_get(f"request {i}", first) for i in numbers]
    if complaint == "names":
        port = first.rpartition(":")[2]
        return [_get(name, f"https://{name}:{port}") for name in hosts.NAMES]
    if complaint == "dropped":
        drops = [None] + [servers.reception] * (size - 1)
        return [_get(f"connection {i}", first, drop=drops[i - 1]) for i in numbers]
    if complaint == "certificate":
        bob, alice, carol, elsewhere, bare = CERTIFICATE
        return [
            _get(bob, first, "bob"),
            _get(alice, first, alice, cert=servers.client_certificate(alice)),
            _get(carol, first, "carol"),
            _get(elsewhere, servers.urls[1], "carol"),
            _get(bare, servers.urls[1], None),
        ]
    requests = [_get(f"host {i}", url) for i, url in enumerate(servers.urls, 1)]
    if complaint == "proxies":
        requests += [
            _get(f"host {i}, proxy {j}", url, via=proxy)
            for j, proxy in enumerate(servers.proxies, 1)
            for i, url in enumerate(servers.urls, 1)
        ]
    return requests


@for_readers
def measure(
    complaint: str, names: str | Iterable[str], size: int | None = None, rounds: int = 1
) -> pd.DataFrame:
    """Ask what a complaint is about in each stack, in a process of its own.

    complaint: "first" (`size` requests to one host), "hosts" (one to each of `size` hosts),
    "names" (one host under two names), "dropped" (`size` requests, all idle connections closed
    between them), "proxies" (`size` hosts: directly, and through two proxies), each in one
    Session; "certificate" (one session with a client certificate, others without). rounds: how
    often all of it, in the same sessions.

    Returns one row for the import (step 0) and one for each request, columns COLUMNS: what was
    asked, connections (over TLS, new), contexts (made), loads (of certificates), cpu_s and wall_s
    (of the client), shown (the name in the client certificate that the host was shown, or
    hosts.NOBODY).

    Raises UsageError, RunFailed when a response is no 200, and what Experiment.measure raises.
    """
    if complaint not in COMPLAINTS:
        raise UsageError(f"there is no complaint {complaint!r}; choose: {', '.join(COMPLAINTS)}")
    size = COMPLAINTS[complaint] if size is None else size
    if size < 1 or rounds < 1 or size * rounds > MOST:
        raise UsageError(
            f"the size is {size}, the rounds are {rounds}; choose at least 1 of each, and at most "
            f"{MOST} of both together"
        )
    parameters = {"complaint": complaint, "size": size, "rounds": rounds}
    return _COMPLAINTS.measure(names, [parameters]).reindex(columns=COLUMNS)


def _run_probe(environment: Environment, parameters: Parameters) -> dict[str, Any]:
    """Return what the probe says of its import and of each request."""
    complaint, size = parameters["complaint"], parameters["size"]
    with Hosts(size if complaint in ("hosts", "proxies") else 2, proxies=2) as servers:
        full = trust.of_name(trust.BUNDLE, servers.ca_file, servers.folder)
        requests = _requests(complaint, servers, size) * parameters["rounds"]
        spec = {"steps": environment.stack.steps, "bundle": full.bundle, "asks": requests}
        return scripts.answer_of(
            environment, PROBE, spec, variables=full.variables, beside=[places.PROBES]
        )


def _figures(parameters: Parameters, answer: dict[str, Any]) -> list[dict[str, Any]]:
    rows, common = answer["rows"], {"python": answer["python"], "openssl": answer["openssl"]}
    in_a_round = (len(rows) - 1) // parameters["rounds"]  # the first is the import
    return [
        row | common | {"step": step, "round": math.ceil(step / in_a_round)}
        for step, row in enumerate(rows)
    ]


_COMPLAINTS = Experiment(
    PROBE,
    _figures,
    depends_on=(Path(__file__), places.CURE, *digests.files(hosts), trust.dependency()),
    beside=(places.PROBES,),
    ask=_run_probe,
)


@for_readers
def totals(frame: pd.DataFrame) -> pd.DataFrame:
    """Add up all requests of each stack and complaint, and its import.

    Columns stack, complaint, requests, connections, contexts, loads (of certificates, by the
    requests), loads_before (by the import), source, measured_at.
    """
    of_imports, keys = frame["step"] == 0, ["stack", "complaint"]
    groups = frame.assign(
        requests=(~of_imports).astype(int),
        loads_before=frame["loads"].where(of_imports, 0),
        **{name: frame[name].mask(of_imports, 0) for name in ("connections", "contexts", "loads")},
    ).groupby(keys, sort=False)
    counts = ["requests", "connections", "contexts", "loads", "loads_before"]
    firsts = groups[["source", "measured_at"]].first()
    return groups[counts].sum().astype(int).join(firsts).reset_index()
