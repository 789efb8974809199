"""Visits over a line with three protocols: HTTP/3 over QUIC, beside HTTP/2 and HTTP/1.1 over TCP.

    frame = visit(["pipes:6", "bare-h2", "bare-h3"], lose=[{}, lost(30)])
    books = arrivals(["bare-h2", "bare-h3"], lose=[{}, lost(30)])
    frame = sessions()

One environment has the stores, Twisted's or Granian's for TCP and aioquic's for QUIC, and all
clients. The congestion control is reno for each, the kernel's and aioquic's, which start with ten
packets. Each book is compared.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import words
from casebook.cases.bookstore import opening, readers, stock, store
from casebook.cases.bookstore.line import chains, ends, feasibility, visits, wire
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import measurements, rounds
from casebook.laboratory.experiment import Experiment
from casebook.laboratory.rounds import as_list
from casebook.stacks import digests

#: Both ends run in it.
STACK = "quic-today"

#: Who can visit.
CLIENTS = ("pipes", "bare-h2", *readers.OVER_QUIC)

#: Who serves over TCP: its script.
ENGINES = {name: store.ENGINES[name][1] for name in ("twisted", "granian")}

COLUMNS = [
    *("stack", "client", "label", "protocol", "engine", "connections", "at_once"),
    *("n", "body_bytes"),
    *("latency_ms", "lose", "congestion", "way", "repeat"),
    *("wall_s", "half_s", "round_trips", "cpu_s", "server_cpu_s", "opened"),
    *("packets", "bytes", "dropped", "did_not_wait", "late_ms", "most_late_ms", "tries"),
    *("source", "instead", "measured_at", *measurements.COLUMNS),
]

#: Of a connection of `sessions`.
SESSION_COLUMNS = [
    *("stack", "client", "step", "latency_ms", "chain", "repeat", "wall_s", "round_trips"),
    *("bytes_there", "bytes_back", "begins_there", "begins_back", "resumed", "early"),
    *("source", "instead", "measured_at", *measurements.COLUMNS),
]

#: Of `replayed`.
REPLAY_COLUMNS = [
    *("stack", "tickets", "wanted", "answered", "early", "datagrams"),
    *("source", "instead", "measured_at", *measurements.COLUMNS),
]

#: What a store can do with a ticket that is shown: take it again and again, or once.
TICKETS = AGAIN, ONCE = "again", "once"

#: Libraries that speak HTTP/3, whose sessions can be looked at.
LIBRARIES = ("curl", "niquests", "pycurl")
#: The same pycurl, whose connections after the first each send an order: a request that must not
#: come twice, and that the store refuses.
POSTING = "pycurl, POST"

#: HTTP/2's window here: what aioquic allows a server ahead of acknowledgements.
WINDOW_BYTES = 1 << 20

_LINE = Path(ends.__file__).parent


#: So many bytes of data a store has sent on a connection when the list of books is through: its
#: part of the handshake, and the list. And so many it sends for a small book. With QUIC the data
#: are those of its datagrams.
_SENT = {
    ("twisted", readers.H1): (28_300, 268),
    ("twisted", readers.H2): (28_140, 186),
    ("granian", readers.H2): (28_071, 157),
}
_SENT |= {(engine, readers.H3): (29_320, 132) for engine in ENGINES}


def lost(books: int) -> dict[str, int]:
    """Return what `lose` takes: one packet of what the store sends on the client's first
    connection, once. It is the one with the byte that is sent when about that many books are. A
    negative number is counted back from the first book, into the list.
    """
    return {"behind_books": books}


@rounds.takes_until
def visit(
    clients: str | Iterable[str],
    n: int | Iterable[int] = 60,
    latency_s: float | Iterable[float] = 0.035,
    body_bytes: int = 0,
    lose: Mapping[str, Any] | Iterable[Mapping[str, Any]] = (),
    repeats: int | range | None = None,
    engine: str = "twisted",
) -> pd.DataFrame:
    """Visit the stores over a line, once in each of the ways, in turns: columns COLUMNS.

    clients: of CLIENTS, with a number as readers.manner takes them. latency_s: each way.
    body_bytes: of each book at least. engine: of ENGINES, who serves over TCP. lose: {} for
    nothing, `lost(30)`, what line.lost gives, or {"share": 0.01}: by lot, in both directions, drawn
    anew in each build and each round; one or several. until, looks: laboratory/rounds.py.

    half_s: when half of the books were in. round_trips: wall_s in round trips of the line. cpu_s:
    the client's CPU seconds, user and system, from the first connection to the last book;
    server_cpu_s: its store's. opened: connections that asked for something; packets, bytes: of IP,
    both ways. did_not_wait: where something was lost, how many books were in before the first of it
    could have come a second time, which is a round trip later; else it is missing. Raises
    UsageError, MissingInterpreter, RunFailed.
    """
    rows = []
    for repeat in rounds.numbers(1 if repeats is None else repeats):
        for row, _ in _round(clients, n, latency_s, body_bytes, lose, repeat, engine):
            rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def arrivals(
    clients: str | Iterable[str],
    n: int = 60,
    latency_s: float | Iterable[float] = 0.035,
    body_bytes: int = 0,
    lose: Mapping[str, Any] | Iterable[Mapping[str, Any]] = (),
    repeats: int | range = 1,
    engine: str = "twisted",
) -> pd.DataFrame:
    """Visit as `visit`, with one row a book: COLUMNS, and book, at_s (seconds since the visit
    began), arrived (its place in the order of arrival) and slow (False, as charts.arrivals takes
    it).
    """
    rows: list[dict[str, Any]] = []
    for repeat in rounds.numbers(repeats):
        for row, answer in _round(clients, n, latency_s, body_bytes, lose, repeat, engine):
            for place, (book, at_s) in enumerate(answer["arrivals"], 1):
                rows.append(row | {"book": book, "at_s": at_s, "arrived": place, "slow": False})
    return pd.DataFrame(rows, columns=[*COLUMNS, "book", "at_s", "arrived", "slow"])


@rounds.takes_until
def sessions(
    clients: str | Iterable[str] = "aioquic",
    latency_s: float = 0.035,
    repeats: int | range | None = None,
    chain: str | Iterable[str] = chains.SELF,
) -> pd.DataFrame:
    """Fetch one book over each of three connections, one after the other: columns SESSION_COLUMNS.

    clients: "aioquic", which is told what to do (step: fresh; resumed: with the ticket that the
    store gave; early: the request leaves with it); those of LIBRARIES, which do what they do by
    themselves in one session (step: fresh, next, next), and POSTING. latency_s: each way. chain:
    the certificates that the store shows, of chains.CHAINS, one or several. until, looks:
    laboratory/rounds.py.

    round_trips: until the book was in, in round trips of the line; bytes_there, bytes_back: of IP,
    the connection's end included; begins_there: bytes of datagrams that the client sent before it
    could have heard anything, begins_back: that the store sent before it could have heard of more
    (missing in older answers). resumed, early: of aioquic whether this connection took up the
    session, and was asked before its handshake's end; of a library how many of all its connections
    did, as the store counts. Raises UsageError, MissingInterpreter, RunFailed.
    """
    rows: list[dict[str, Any]] = []
    for repeat in rounds.numbers(1 if repeats is None else repeats):
        visits = [_session(client) for client in as_list(clients)]
        for chain_name in as_list(chain):
            for row in _session_round(visits, "again", latency_s, repeat, chain_name):
                rows += _session_rows(row, latency_s, chain_name)
    return pd.DataFrame(rows, columns=SESSION_COLUMNS)


def replayed(tickets: str | Iterable[str] = TICKETS, latency_s: float = 0.035) -> pd.DataFrame:
    """Take up a session with an early request, and send its datagrams once more, from another port:
    one row for each of `tickets`, columns REPLAY_COLUMNS.

    tickets: what the store does with a ticket that it gave out: "again" (takes it as often as it
    is shown) or "once". wanted: requests that the client made in its connections; answered: those
    that the store answered; early: its connections that were asked before their handshake's end;
    datagrams: how many were sent again. Raises as `sessions`.
    """
    rows = []
    # A connection that is closed is remembered for three timeouts (RFC 9000, section 10.2).
    pause_s = 0.5 + 12 * _far(latency_s)
    steps = ["fresh", "early", "replayed"]
    for policy in as_list(tickets):
        visit = {"script": "sessions", "steps": steps, "pause_s": pause_s}
        for row in _session_round([visit], policy, latency_s, 1):
            [answer] = row["answers"]
            server, step_answers = answer["server"], answer["steps"]
            figures = {"wanted": len(step_answers) - 1, "answered": server["requests"]}
            figures |= {"early": server["early"], "datagrams": step_answers[-1]["datagrams"]}
            rows.append({name: row.get(name) for name in REPLAY_COLUMNS} | figures)
    return pd.DataFrame(rows, columns=REPLAY_COLUMNS)


def _session(client: str) -> dict[str, Any]:
    if client == "aioquic":
        steps = ["fresh", "resumed", "early"]
        return {"script": "sessions", "steps": steps, "pause_s": 0}
    if client in LIBRARIES:
        return {"script": "connects", "library": client, "times": 3}
    if client == POSTING:
        return {"script": "connects", "library": "pycurl", "times": 3, "method": "POST"}
    choices = ", ".join(("aioquic", *LIBRARIES, POSTING))
    raise UsageError(f"no sessions of {client!r} here: choose {choices}")


def _session_round(
    visits: list[dict[str, Any]],
    tickets: str,
    latency_s: float,
    repeat: int,
    chain: str = chains.SELF,
) -> list[dict[str, Any]]:
    """Return the rows of a round of again.py; none if no other machine took it."""
    if tickets not in TICKETS:
        raise UsageError(f"a store does not keep tickets {tickets!r}: choose {', '.join(TICKETS)}")
    far = {"latency_s": _far(latency_s)}
    parameters = {"way": "", "congestion": ends.CONGESTION, "least_bytes": 0, "tickets": tickets}
    parameters |= {"there": far, "back": far, "visits": visits}
    if chain not in chains.CHAINS:
        raise UsageError(f"no store shows {chain!r}: choose {', '.join(chains.CHAINS)}")
    if chain != chains.SELF:
        parameters["chain"] = chain
    frame = _AGAIN.measure(STACK, [parameters], repeats=range(repeat, repeat + 1))
    return frame.to_dict("records")


def _session_rows(row: dict[str, Any], latency_s: float, chain: str) -> Iterable[dict[str, Any]]:
    names = ("stack", "repeat", "source", "instead", "measured_at", *measurements.COLUMNS)
    shared = {name: row.get(name) for name in names}
    shared |= {"latency_ms": round(1000 * latency_s, 3), "chain": chain}
    for visit, answer in zip(row["visits"], row["answers"], strict=True):
        server = answer["server"]
        for step, carried in zip(answer["steps"], answer["connections"], strict=False):
            client = POSTING if "method" in visit else visit.get("library", "aioquic")
            figures = {"client": client, "step": step["step"]}
            figures |= {"wall_s": step["wall_s"], "round_trips": step["wall_s"] / (2 * latency_s)}
            figures |= {"bytes_there": carried[wire.THERE], "bytes_back": carried[wire.BACK]}
            first_bytes = carried.get("begins", {})
            figures |= {
                f"begins_{direction}": first_bytes.get(direction)
                for direction in (wire.THERE, wire.BACK)
            }
            for name in ("resumed", "early"):
                # Older answers have only what was known at a handshake's end.
                count = server.get(f"asked_{name}", server[name])
                figures[name] = int(step.get(name, count))
            yield shared | figures


def _far(latency_s: float) -> float:
    if not 0 < latency_s <= wire.LONGEST_S:
        raise UsageError(f"the latency is {latency_s:g} s; choose up to {wire.LONGEST_S:g}")
    return float(latency_s)


def _round(clients, n, latency_s, body_bytes, lose, repeat, engine):
    """Make one round, and yield (what each visit was, its answer)."""
    loses = (
        [dict(lose)] if isinstance(lose, Mapping) or not lose else [dict(losing) for losing in lose]
    )
    manners = [readers.manner(client) for client in as_list(clients)]
    for manner in manners:
        if manner.client not in CLIENTS:
            raise UsageError(
                f"{manner.client} does not visit over this line: choose {', '.join(CLIENTS)}"
            )
    if engine not in ENGINES:
        raise UsageError(f"{engine} does not serve over this line: choose {', '.join(ENGINES)}")
    if not all(1 <= size <= stock.SIZE for size in as_list(n)):
        raise UsageError(f"n is {n}; choose 1 to {stock.SIZE:,}")
    for far_s in as_list(latency_s):
        if not 0 <= far_s <= wire.LONGEST_S:
            raise UsageError(f"the latency is {far_s:g} s; choose 0 to {wire.LONGEST_S:g}")
    kinds = list(product(as_list(latency_s), loses, as_list(n), manners))
    if repeat % 2 == 0:
        kinds.reverse()
    parameters = {
        "way": "",
        "congestion": ends.CONGESTION,
        "least_bytes": body_bytes,
        "visits": [_visit(*kind, repeat, engine) for kind in kinds],
    }
    if engine != "twisted":
        parameters["serves"] = ENGINES[engine]
    frame = _OVER.measure(STACK, [parameters], repeats=range(repeat, repeat + 1))
    for row in frame.to_dict("records"):
        shared = {name: row.get(name) for name in ("stack", "repeat", "source", "instead")}
        shared |= {name: row.get(name) for name in ("measured_at", *measurements.COLUMNS)}
        shared |= {"congestion": ends.CONGESTION, "body_bytes": body_bytes, "way": row["took"]}
        for kind, answer in zip(kinds, row["answers"], strict=True):
            figures = _row(*kind, answer)
            if figures["protocol"] == readers.H3:
                figures["engine"] = "aioquic"
            elif engine != "twisted":
                figures["label"] += f", {words.value_label('engine', engine)}"
            yield shared | {"engine": engine} | figures, answer


def _visit(far_s, losing, size, manner, repeat, engine) -> dict[str, Any]:
    """Return what over_quic.py is told of one visit."""
    losing_there: dict[str, Any] = {}
    if "behind_books" in losing:
        losing = visits.lost(_byte(manner, losing["behind_books"], engine))
    elif "share" in losing:
        losing, losing_there = losing | {"seed": 2 * repeat}, losing | {"seed": 2 * repeat + 1}
    return {
        **{"script": manner.reader.script, "protocol": manner.reader.protocol, "n": size},
        **{"at_once": manner.at_once, "connections": manner.connections, "order": manner.order},
        "there": {"latency_s": float(far_s), "mbit": 0, "lose": losing_there},
        "back": {"latency_s": float(far_s), "mbit": 0, "lose": losing},
        **{"window_bytes": WINDOW_BYTES, "delays_small": False, "records": False},
    }


def _byte(manner: readers.Manner, books: int, engine: str) -> int:
    """Return the byte of the first connection's data that is sent when that many books are, in
    all.
    """
    if (engine, manner.reader.protocol) not in _SENT:
        raise UsageError(f"which packet {manner.label} would lose from {engine} is not known here")
    list_ends, of_a_book = _SENT[engine, manner.reader.protocol]
    return list_ends + of_a_book * books // manner.connections


def _row(far_s, losing, size, manner, answer) -> dict[str, Any]:
    figures = {"client": manner.client, "label": manner.label, "protocol": manner.reader.protocol}
    figures |= {"connections": manner.connections, "at_once": manner.at_once, "n": size}
    figures |= {"latency_ms": round(1000 * float(far_s), 3)}
    figures |= {"lose": json.dumps(losing) if losing else ""}
    figures |= {name: answer[name] for name in ("wall_s", "server_cpu_s")}
    figures |= {"cpu_s": answer["user_s"] + answer["sys_s"]}
    figures |= {name: answer[name] for name in ("late_ms", "most_late_ms", "tries")}
    figures |= {"round_trips": answer["wall_s"] / (2 * far_s) if far_s else float("nan")}
    figures |= {"opened": answer["server"]["connections"]}
    times = sorted(at_s for _, at_s in answer["arrivals"])
    figures["half_s"] = times[(len(times) - 1) // 2]
    if answer["lost_at_s"] is not None:
        # To the client, to the store, and to the client again.
        again_s = answer["lost_at_s"] + 3 * far_s
        figures["did_not_wait"] = sum(at_s < again_s for at_s in times)
    for name in ("packets", "bytes", "dropped"):
        figures[name] = sum(direction[name] for direction in answer["counts"].values())
    return figures


def _session_figures(parameters: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    if "failed" in answer:
        raise RunFailed(
            f"over the line: {answer['failed']}. Nothing was recorded; try it on a quieter machine."
        )
    expected = stock.books()[stock.ids()[0]]
    for visit in answer["visits"]:
        bodies = [json.loads(step["body"]) for step in visit["steps"] if "body" in step]
        if not bodies or any(body != expected for body in bodies):
            raise RunFailed("over the line: the book came as another. Nothing was recorded.")
    return {"took": answer["way"], "answers": answer["visits"]}


_SERVING = [
    *digests.executed(opening.SERVING / "twisted_store.py"),
    *digests.executed(opening.SERVING / "quic_store.py"),
]

_OVER = Experiment(
    _LINE / "over_quic.py",
    visits._figures,
    within_s=300,
    made_of=(
        *_SERVING,
        *digests.executed(readers.VISIT),
        *(
            path
            for client in CLIENTS
            for path in digests.executed(readers.SCRIPTS / f"{readers.get(client).script}.py")
        ),
        stock.FILE,
    ),
    lacks=feasibility.not_here,
    tells=feasibility.told,
    draws=visits.draws,
)

_AGAIN = Experiment(
    _LINE / "again.py",
    _session_figures,
    within_s=300,
    made_of=(
        *_SERVING,
        *digests.executed(readers.SCRIPTS / "sessions.py"),
        *digests.executed(readers.SCRIPTS / "connects.py"),
        stock.FILE,
    ),
    lacks=feasibility.not_here,
    tells=feasibility.told,
)
