"""Visits over a line with three protocols: HTTP/3 over QUIC, beside HTTP/2 and HTTP/1.1 over TCP.

    frame = visit(["pipes:6", "bare-h2", "bare-h3"], lose=[{}, loss(30)])
    books = arrivals(["bare-h2", "bare-h3"], lose=[{}, loss(30)])
    frame = sessions()

One environment has the stores, Twisted's or Granian's for TCP and aioquic's for QUIC, and all
clients. The congestion control is reno for each, the kernel's and aioquic's, which start with ten
packets. Each book is compared.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pandas as pd

from casebook import words
from casebook.cases.bookstore import opening, readers, stock, store
from casebook.cases.bookstore.line import chains, ends, feasibility, lines, visits, wire
from casebook.cases.bookstore.line.lines import Distance, Kind, Line
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import rounds
from casebook.laboratory.experiment import Experiment
from casebook.laboratory.rounds import as_list
from casebook.mistakes import check_range
from casebook.stacks import digests

#: Both ends run in it.
STACK = "quic-today"

#: Who can visit.
CLIENTS = ("pipes", "bare-h2", *readers.OVER_QUIC)

#: Who serves over TCP: its script.
ENGINES = {name: store.ENGINES[name][1] for name in ("twisted", "granian")}


class Row(TypedDict):
    """The columns of `visit`; behind them come lines.PROVENANCE."""

    stack: str
    client: str
    label: str
    protocol: str
    engine: str
    connections: int
    at_once: int
    n: int
    body_bytes: int
    #: Each way.
    latency_ms: float
    #: What is lost, as JSON; "" for nothing.
    lose: str
    congestion: str
    #: How the packets were had (ends.DEVICES).
    way: str
    repeat: int
    #: From the first connection to the last book, and to half of the books.
    wall_s: float
    half_s: float
    #: wall_s in round trips of the line.
    round_trips: float
    #: CPU seconds, user and system: the client's from the first connection on, and its store's.
    cpu_s: float
    server_cpu_s: float
    #: Connections that asked for something.
    opened: int
    #: Both ways; bytes of IP.
    packets: int
    bytes: int
    dropped: int
    #: If something was lost, how many books were in before the first of it could have come a second
    #: time, which is a round trip later; else it is missing.
    did_not_wait: int
    #: How much later than promised packets were: half of them, and the last one.
    late_ms: float
    most_late_ms: float
    #: How often the visit was made until the line kept up.
    tries: int


class Session(TypedDict):
    """The columns of `sessions`, a row a connection; behind them come lines.PROVENANCE."""

    stack: str
    client: str
    step: str
    latency_ms: float
    chain: str
    repeat: int
    #: Until the book was in.
    wall_s: float
    round_trips: float
    #: Of IP, the connection's end included.
    bytes_there: int
    bytes_back: int
    #: Bytes of datagrams that the client sent before it could have heard anything, and that the
    #: store sent before it could have heard of more; missing in older answers.
    begins_there: int
    begins_back: int
    #: Of aioquic whether this connection took up the session, and was asked before the end of its
    #: handshake; of a library how many of all its connections did, as the store counts.
    resumed: int
    early: int


class Replay(TypedDict):
    """The columns of `replayed`; behind them come lines.PROVENANCE."""

    stack: str
    tickets: str
    #: Requests that the client made in its connections, and those that the store answered.
    wanted: int
    answered: int
    #: Connections that were asked before the end of their handshake.
    early: int
    #: How many were sent again.
    datagrams: int


COLUMNS = [*Row.__annotations__, *lines.PROVENANCE]
SESSION_COLUMNS = [*Session.__annotations__, *lines.PROVENANCE]
REPLAY_COLUMNS = [*Replay.__annotations__, *lines.PROVENANCE]

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


#: The bytes of data that a store has sent on a connection when the list of books is through (its
#: part of the handshake, and the list), and those that it sends for a small book. With QUIC the
#: data are those of its datagrams.
_SENT = {
    ("twisted", readers.H1): (28_300, 268),
    ("twisted", readers.H2): (28_140, 186),
    ("granian", readers.H2): (28_071, 157),
}
_SENT |= {(engine, readers.H3): (29_320, 132) for engine in ENGINES}


def loss(books: int) -> dict[str, int]:
    """Return what `lose` takes for one packet that the store sends on the first connection, once.

    It is the packet with the byte that is sent when about that many books are. A negative number is
    counted back from the first book, into the list.
    """
    return {"behind_books": books}


@rounds.takes_until
def visit(
    clients: str | Iterable[str],
    n: int | Iterable[int] = 60,
    body_bytes: int = 0,
    repeats: int | range | None = None,
    engine: str = "twisted",
    **distance: Unpack[Distance],
) -> pd.DataFrame:
    """Visit the stores over a line, once in each of the ways, in turns: columns COLUMNS.

    Parameters:
        clients: of CLIENTS, with a number as readers.manner takes them.
        n: books asked for, one number or several.
        body_bytes: of each book at least.
        repeats: how many rounds, or which; 1 by default.
        engine: of ENGINES, who serves over TCP.
        distance: latency_s, each way, and lose, one or several: {} for nothing, `loss(30)`, what
            line.loss returns, or {"share": 0.01}, at random in both directions, drawn anew in each
            build and each round.
        until, looks: what is to be decided (laboratory/rounds.py).

    Raises UsageError, MissingInterpreter, RunFailed.
    """
    check_range("body_bytes", body_bytes, 0, visits.MOST_BYTES)
    kinds = _kinds(clients, n, engine, **distance)
    rows = [
        row
        for repeat in rounds.numbers(1 if repeats is None else repeats)
        for row, _ in _round(kinds, body_bytes, repeat, engine)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def arrivals(
    clients: str | Iterable[str],
    n: int = 60,
    body_bytes: int = 0,
    repeats: int | range = 1,
    engine: str = "twisted",
    **distance: Unpack[Distance],
) -> pd.DataFrame:
    """Visit as `visit`, with one row a book: COLUMNS, book, at_s, arrived and slow.

    at_s: seconds since the visit began; arrived: its place in the order of arrival; slow: False, as
    charts.arrivals takes it. Parameters and errors are those of `visit`.
    """
    kinds = _kinds(clients, n, engine, **distance)
    rows: list[dict[str, Any]] = []
    for repeat in rounds.numbers(repeats):
        for row, answer in _round(kinds, body_bytes, repeat, engine):
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

    Parameters:
        clients: "aioquic", which is told what to do (step: fresh; resumed: with the ticket that the
            store gave; early: the request leaves with it); those of LIBRARIES, which do what they
            do by themselves in one session (step: fresh, next, next), and POSTING.
        latency_s: each way.
        repeats: how many rounds, or which; 1 by default.
        chain: the certificates that the store shows, of chains.CHAINS, one or several.
        until, looks: what is to be decided (laboratory/rounds.py).

    Raises UsageError, MissingInterpreter, RunFailed.
    """
    rows: list[dict[str, Any]] = []
    line = _far(latency_s)
    for repeat in rounds.numbers(1 if repeats is None else repeats):
        visits = [_session(client) for client in as_list(clients)]
        for chain_name in as_list(chain):
            for row in _session_round(visits, "again", line, repeat, chain_name):
                rows += _session_rows(row, line, chain_name)
    return pd.DataFrame(rows, columns=SESSION_COLUMNS)


def replayed(tickets: str | Iterable[str] = TICKETS, latency_s: float = 0.035) -> pd.DataFrame:
    """Take up a session with an early request, and send its datagrams again, from another port.

    Parameters:
        tickets: what the store does with a ticket that it gave out: "again" (takes it as often as
            it is shown) or "once"; one or both.
        latency_s: each way.

    Returns a row for each of `tickets`, columns REPLAY_COLUMNS. Raises as `sessions`.
    """
    rows = []
    line = _far(latency_s)
    # A connection that is closed is remembered for three timeouts (RFC 9000, section 10.2).
    pause_s = 0.5 + 12 * line.latency_s
    steps = ["fresh", "early", "replayed"]
    for policy in as_list(tickets):
        visit = {"script": "sessions", "steps": steps, "pause_s": pause_s}
        for row in _session_round([visit], policy, line, 1):
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
    visits: list[dict[str, Any]], tickets: str, line: Line, repeat: int, chain: str = chains.SELF
) -> list[dict[str, Any]]:
    """Return the rows of a round of again.py; none if a stand-in did not take it."""
    if tickets not in TICKETS:
        raise UsageError(f"a store does not keep tickets {tickets!r}: choose {', '.join(TICKETS)}")
    if chain not in chains.CHAINS:
        raise UsageError(f"no store shows {chain!r}: choose {', '.join(chains.CHAINS)}")
    far = {"latency_s": line.latency_s}
    parameters = {"way": "", "congestion": line.congestion, "least_bytes": 0, "tickets": tickets}
    parameters |= {"there": far, "back": far, "visits": visits}
    if chain != chains.SELF:
        parameters["chain"] = chain
    frame = _AGAIN.measure(STACK, [parameters], repeats=range(repeat, repeat + 1))
    return frame.to_dict("records")


def _session_rows(row: dict[str, Any], line: Line, chain: str) -> Iterator[dict[str, Any]]:
    shared = {name: row.get(name) for name in lines.SHARED}
    shared |= {"latency_ms": line.latency_ms, "chain": chain}
    for visit, answer in zip(row["visits"], row["answers"], strict=True):
        server = answer["server"]
        for step, carried in zip(answer["steps"], answer["connections"], strict=False):
            client = POSTING if "method" in visit else visit.get("library", "aioquic")
            figures = {"client": client, "step": step["step"]}
            figures |= {"wall_s": step["wall_s"], "round_trips": line.round_trips(step["wall_s"])}
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


def _far(latency_s: float) -> Line:
    """Return the line of a session: its round trips are counted, so it has a latency."""
    check_range("the latency", latency_s, 1e-6, wire.LONGEST_S, " s")
    return Line(latency_s=float(latency_s))


def _kinds(
    clients: str | Iterable[str],
    n: int | Iterable[int],
    engine: str,
    **distance: Unpack[Distance],
) -> list[Kind]:
    """Return the kinds of visits that are asked for. Raises UsageError."""
    if engine not in ENGINES:
        raise UsageError(f"{engine} does not serve over this line: choose {', '.join(ENGINES)}")
    return lines.kinds(clients, n, CLIENTS, window_bytes=WINDOW_BYTES, **distance)


def _round(
    kinds: list[Kind], body_bytes: int, repeat: int, engine: str
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Make one round, and yield (what each visit was, its answer)."""
    kinds = lines.in_turn(kinds, repeat)
    congestion = kinds[0].line.congestion
    parameters = {
        "way": "",
        "congestion": congestion,
        "least_bytes": body_bytes,
        "visits": [_visit(kind, repeat, engine) for kind in kinds],
    }
    if engine != "twisted":
        parameters["serves"] = ENGINES[engine]
    frame = _OVER.measure(STACK, [parameters], repeats=range(repeat, repeat + 1))
    for row in frame.to_dict("records"):
        shared = {name: row.get(name) for name in lines.SHARED}
        shared |= {"congestion": congestion, "body_bytes": body_bytes, "way": row["took"]}
        for kind, answer in zip(kinds, row["answers"], strict=True):
            figures = _row(kind, answer)
            if figures["protocol"] == readers.H3:
                figures["engine"] = "aioquic"
            elif engine != "twisted":
                figures["label"] += f", {words.value_label('engine', engine)}"
            yield shared | {"engine": engine} | figures, answer


def _visit(kind: Kind, repeat: int, engine: str) -> dict[str, Any]:
    """Return what over_quic.py is told of one visit."""
    lose, lose_there = kind.line.lose, {}
    if "behind_books" in lose:
        lose = visits.loss(_byte(kind.manner, lose["behind_books"], engine))
    elif "share" in lose:
        lose, lose_there = {**lose, "seed": 2 * repeat}, {**lose, "seed": 2 * repeat + 1}
    there, back = kind.line.direction(lose_there), kind.line.direction(lose)
    return kind.visit(kind.manner.order, there, back) | {"records": False}


def _byte(manner: readers.Manner, books: int, engine: str) -> int:
    """Return the byte of the first connection's data that is sent when that many books are."""
    if (engine, manner.reader.protocol) not in _SENT:
        raise UsageError(f"which packet {manner.label} would lose from {engine} is not known here")
    list_ends, of_a_book = _SENT[engine, manner.reader.protocol]
    return list_ends + of_a_book * books // manner.connections


def _row(kind: Kind, answer: dict[str, Any]) -> dict[str, Any]:
    line, times = kind.line, sorted(at_s for _, at_s in answer["arrivals"])
    figures = kind.columns()
    figures |= {name: answer[name] for name in (*lines.ANSWERED, "server_cpu_s")}
    figures |= {"cpu_s": answer["user_s"] + answer["sys_s"]}
    figures |= {"round_trips": line.round_trips(answer["wall_s"])}
    figures |= {"opened": answer["server"]["connections"]}
    figures |= {"half_s": times[(len(times) - 1) // 2]}
    if answer["lost_at_s"] is not None:
        # To the client, to the store, and to the client again.
        again_s = answer["lost_at_s"] + 3 * line.latency_s
        figures["did_not_wait"] = sum(at_s < again_s for at_s in times)
    for name in ("packets", "bytes", "dropped"):
        figures[name] = sum(direction[name] for direction in answer["counts"].values())
    return figures


def _session_figures(_: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    if "failed" in answer:
        raise lines.failure(answer["failed"])
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
    visits.figures_of,
    within_s=300,
    depends_on=(
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
    tells=feasibility.line_capacity,
    is_random=visits.is_random,
)

_AGAIN = Experiment(
    _LINE / "again.py",
    _session_figures,
    within_s=300,
    depends_on=(
        *_SERVING,
        *digests.executed(readers.SCRIPTS / "sessions.py"),
        *digests.executed(readers.SCRIPTS / "connects.py"),
        stock.FILE,
    ),
    lacks=feasibility.not_here,
    tells=feasibility.line_capacity,
)
