"""Handshakes of TLS over a line, whole and resumed: round trips, bytes, processor time.

    frame = greet(latency_s=0.01, repeats=8)

The server is Python's own ssl; each connection brings one small answer and is closed. It shows one
certificate of an elliptic curve, as the bookstore does, or a chain.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd

from casebook.cases.bookstore.line import chains, feasibility, lines, wire
from casebook.cases.bookstore.line.lines import Line
from casebook.cases.bookstore.line.visits import WITH_LIBRARIES
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import rounds
from casebook.laboratory.experiment import Experiment
from casebook.laboratory.rounds import as_list
from casebook.mistakes import check_range

#: What is compared: who connects, with which TLS, and whether with a session of before.
KINDS = {
    "TLS 1.2": {"client": "ssl", "tls": "1.2", "resumes": False},
    "TLS 1.2, resumed": {"client": "ssl", "tls": "1.2", "resumes": True},
    "TLS 1.3": {"client": "ssl", "tls": "1.3", "resumes": False},
    "TLS 1.3, resumed": {"client": "ssl", "tls": "1.3", "resumes": True},
    "requests": {"client": "requests", "tls": "1.3", "resumes": False},
}

#: By the model: TCP, TLS, and the answer.
ROUND_TRIPS = dict(zip(KINDS, (4, 3, 3, 3, 3), strict=True))

_FIGURES = ("resumed", "server_resumed", "bytes", "client_cpu_s", "server_cpu_s")


class Greeting(TypedDict):
    """The columns of `greet`: a row a chain, kind and round; lines.PROVENANCE besides."""

    stack: str
    repeat: int
    n: int
    #: Of chains.CHAINS, and of KINDS.
    chain: str
    kind: str
    #: Round trips by the model.
    model: int
    latency_ms: float
    #: The median of the n connections, with the answer; and the same in round trips of the line.
    wall_s: float
    round_trips: float
    #: Resumed connections, as the client and the server saw it; the client requests does not say.
    resumed: int | None
    server_resumed: int
    #: Of IP packets in both directions, a connection.
    bytes: int
    #: CPU seconds a connection.
    client_cpu_s: float
    server_cpu_s: float


@rounds.takes_until
def greet(
    latency_s: float = 0.01,
    n: int = 6,
    repeats: int | range | None = None,
    chain: str | Iterable[str] = chains.SELF,
    kinds: Iterable[str] = tuple(KINDS),
) -> pd.DataFrame:
    """Connect n times in each way over a line: one row a chain, kind and round.

    Parameters:
        latency_s: each way.
        n: connections of each kind.
        repeats: how many rounds, or which; 1 by default.
        chain: what the server shows, of chains.CHAINS, one or several.
        kinds: of KINDS.
        until, looks: what is to be decided (laboratory/rounds.py).

    Returns the columns of Greeting. Raises UsageError, MissingInterpreter, RunFailed.
    """
    check_range("n", n, 1, 100)
    check_range("the latency", latency_s, 1e-6, wire.LONGEST_S, " s")
    line, kinds, chain_names = Line(latency_s=float(latency_s)), list(kinds), as_list(chain)
    if not {*kinds} <= {*KINDS} or not {*chain_names} <= {*chains.CHAINS}:
        raise UsageError(
            f"choose kinds of {', '.join(KINDS)}, chains of {'; '.join(chains.CHAINS)}"
        )
    parameter_sets = [
        {
            "way": "",
            "latency_s": line.latency_s,
            "n": n,
            "kinds": [KINDS[kind] for kind in kinds],
            "checks": [],
            **({} if chain_name == chains.SELF else {"chain": chain_name}),
        }
        for chain_name in chain_names
    ]
    frame = _GREET.measure(
        WITH_LIBRARIES, parameter_sets, repeats=1 if repeats is None else repeats
    )
    rows = []
    for row in frame.to_dict("records"):
        answers, row_chain = row.pop("answers"), row.get("chain")
        shared = {
            name: value for name, value in row.items() if name not in (*parameter_sets[0], "found")
        }
        shared |= {"n": n, "chain": row_chain if row_chain in chains.CHAINS else chains.SELF}
        for kind, answer in zip(kinds, answers, strict=True):
            wall_s = float(pd.Series(answer["walls_s"]).median())
            figures = {"kind": kind, "model": ROUND_TRIPS[kind], "latency_ms": line.latency_ms}
            figures |= {"wall_s": wall_s, "round_trips": line.round_trips(wall_s)}
            rows.append(shared | figures | {name: answer[name] for name in _FIGURES})
    return pd.DataFrame(rows)


def unchecked() -> pd.DataFrame:
    """Check what a resumed connection leaves unchecked: one row a kind of TLS and connection.

    Columns: tls, connection (one that should not pass: greet.py's `check` says which), passes, and
    lines.PROVENANCE. Raises as `greet`.
    """
    parameters = {"way": "", "latency_s": 0.001, "n": 1, "kinds": [], "checks": ["1.2", "1.3"]}
    [row] = _GREET.measure(WITH_LIBRARIES, [parameters]).to_dict("records")
    outcomes = row.pop("found")
    shared = {name: value for name, value in row.items() if name not in (*parameters, "answers")}
    return pd.DataFrame(
        [
            shared | {"tls": tls, "connection": connection, "passes": passes}
            for tls, connections in outcomes.items()
            for connection, passes in connections.items()
        ]
    )


def _figures(parameters: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    if "failed" in answer:
        raise lines.failure(answer["failed"])
    for kind in answer["kinds"]:
        expected = parameters["n"] + 1
        if kind["connections"] != expected or len(kind["walls_s"]) != parameters["n"]:
            raise RunFailed(
                f"over the line: {kind['connections']} connections in the place of {expected}. "
                "Nothing was recorded."
            )
    return {"answers": answer["kinds"], "found": answer["checks"]}


_GREET = Experiment(
    Path(__file__).parent / "greet.py",
    _figures,
    within_s=120,
    lacks=feasibility.not_here,
    tells=feasibility.line_capacity,
)
