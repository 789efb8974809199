"""What else was said of requests and its certificates: each complaint asked, and counted.

    frame = measure("hosts", ["requests-2.34.2-today", "cured-today"])

A complaint is a row of requests in one process, to hosts of our own (hosts.py) that keep
connections open. Counted at each: contexts made and certificates loaded. All verify.
"""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from casebook import places, stacks
from casebook.cases.certificates import hosts
from casebook.cases.certificates.hosts import Hosts
from casebook.errors import UsageError
from casebook.runs import answers, measurements, trust
from casebook.stacks import environments
from casebook.words import LIVE

#: The most that a complaint may ask for: hosts, rounds, or requests in all.
MOST = 1000

#: The one who has a client certificate; and who is shown to a host that is shown none.
HOLDER, NOBODY = "alice", "nobody"

COLUMNS = [
    *("stack", "complaint", "round", "step", "what", "connections", "contexts", "loads"),
    *("cpu_s", "wall_s", "shown", "python", "openssl", "source", "measured_at"),
    *measurements.COLUMNS,
]

#: What is asked by the complaint "certificate", in order.
CERTIFICATE = ["bob, before", HOLDER, "carol, after", "carol, elsewhere", "requests.get"]

_COUNTED = ("connections", "contexts", "loads")


@dataclass(frozen=True)
class Ask:
    """One GET. what: what to call it. session: the name of the requests.Session to ask with; None:
    requests.get. via: a proxy's URL. cert: a client certificate's path. drop: the reception at
    which all idle connections are closed before."""

    what: str
    url: str
    session: str | None = "one"
    via: str | None = None
    cert: str | None = None
    drop: str | None = None


@dataclass(frozen=True)
class Complaint:
    """How many hosts and proxies it needs, for a size, and what it asks of them."""

    size: int
    hosts: Callable[[int], int]
    asks: Callable[[Hosts, int], list[Ask]]
    proxies: int = 0


def _first(at: Hosts, size: int) -> list[Ask]:
    return [Ask(f"request {i + 1}", at.urls[0]) for i in range(size)]


def _hosts(at: Hosts, size: int) -> list[Ask]:
    return [Ask(f"host {i + 1}", url) for i, url in enumerate(at.urls)]


def _names(at: Hosts, size: int) -> list[Ask]:
    port = at.urls[0].rpartition(":")[2]
    return [Ask(name, f"https://{name}:{port}") for name in hosts.NAMES]


def _dropped(at: Hosts, size: int) -> list[Ask]:
    return [
        Ask(f"connection {i + 1}", at.urls[0], drop=at.reception if i else None)
        for i in range(size)
    ]


def _proxies(at: Hosts, size: int) -> list[Ask]:
    return [
        Ask(f"host {i + 1}, {'direct' if way is None else f'proxy {number}'}", url, via=way)
        for number, way in enumerate([None, *at.proxies])
        for i, url in enumerate(at.urls)
    ]


def _certificate(at: Hosts, size: int) -> list[Ask]:
    here, elsewhere = at.urls
    cert = at.client_certificate(HOLDER)
    bob, holder, after, other, bare = CERTIFICATE
    return [
        Ask(bob, here, "bob"),
        Ask(holder, here, holder, cert=cert),
        Ask(after, here, "carol"),
        Ask(other, elsewhere, "carol"),
        Ask(bare, elsewhere, None),
    ]


COMPLAINTS = {
    "first": Complaint(5, lambda size: 1, _first),
    "hosts": Complaint(10, lambda size: size, _hosts),
    "names": Complaint(1, lambda size: 1, _names),
    "dropped": Complaint(10, lambda size: 1, _dropped),
    "proxies": Complaint(3, lambda size: size, _proxies, proxies=2),
    "certificate": Complaint(1, lambda size: 2, _certificate),
}


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
    (of the client), shown (the name in the client certificate that the host was shown, or NOBODY).

    Raises UsageError, RunFailed when a response is no 200, MissingInterpreter.
    """
    names = [names] if isinstance(names, str) else list(names)
    if complaint not in COMPLAINTS:
        raise UsageError(f"there is no complaint {complaint!r}; choose: {', '.join(COMPLAINTS)}")
    size = COMPLAINTS[complaint].size if size is None else size
    if size < 1 or rounds < 1 or size * rounds > MOST:
        raise UsageError(
            f"the size is {size}, the rounds are {rounds}; choose at least 1 of each, and at most "
            f"{MOST} of both together"
        )
    rows = []
    for name in names:
        environment = environments.ensure(stacks.get(name))
        probe = places.PROBES / "complaints.py"
        made_by = [probe, places.CURE, Path(__file__), Path(hosts.__file__)]
        asked = {"complaint": complaint, "size": size, "rounds": rounds}

        def take(environment=environment) -> dict:
            return _take(environment, complaint, size, rounds)

        answer = answers.stored_or_new(environment.stack, asked, made_by, take)
        each = len(answer["rows"][1:]) // rounds
        for step, row in enumerate(answer["rows"]):
            of = {"round": 0 if step == 0 else 1 + (step - 1) // each, "step": step}
            told = ("python", "openssl", "measured_at", *measurements.COLUMNS)
            known = {key: answer.get(key) for key in told}
            more = {"stack": name, "complaint": complaint, "source": LIVE}
            rows.append(row | of | known | more | {"shown": _shown(row) if step else None})
    return pd.DataFrame(rows, columns=COLUMNS)


def _take(environment, complaint: str, size: int, rounds: int) -> dict:
    chosen = COMPLAINTS[complaint]
    with (
        Hosts(chosen.hosts(size), chosen.proxies) as at,
        tempfile.TemporaryDirectory(prefix="casebook-") as folder,
    ):
        told = trust.of_name(trust.BUNDLE, Path(at.ca_file), Path(folder))
        spec = {
            "steps": list(environment.stack.steps),
            "bundle": told.bundle,
            "asks": [asdict(ask) for ask in chosen.asks(at, size)] * rounds,
        }
        return answers.ask(environment, "complaints.py", spec, told.variables)


def _shown(row: dict) -> str:
    return NOBODY if row["shown"] is None else row["shown"]


def totals(frame: pd.DataFrame) -> pd.DataFrame:
    """All requests of each stack and complaint together, and its import: columns stack, complaint,
    requests, connections, contexts, loads (of certificates, by the requests), loads_before (by the
    import), source, measured_at."""
    rows = []
    for (name, complaint), part in frame.groupby(["stack", "complaint"], sort=False):
        asked = part[part["step"] > 0]
        row = {"stack": name, "complaint": complaint, "requests": len(asked)}
        row |= {column: int(asked[column].sum()) for column in _COUNTED}
        row["loads_before"] = int(part[part["step"] == 0]["loads"].sum())
        rows.append(row | {key: part[key].iloc[0] for key in ("source", "measured_at")})
    return pd.DataFrame(rows)
