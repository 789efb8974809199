"""Threads that share a context, and how many handshakes of theirs the server has in hand at once.

    frame = measure(["truststore-0.10.4-today", "truststore-0.10.5-today"], "shared")

The threads begin together and fetch a page each, over a connection each, from a server that waits:
in the handshake or before its reply (server.py). Each reply is checked. They trust one authority,
the server's own: a bundle of certificates would take its time in each handshake of truststore, and
what is asked here is who waits for whom.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.cases.fetching.analysis import BETWEEN, CONCURRENT, SERIAL
from casebook.cases.handshakes import server
from casebook.cases.handshakes.server import SlowToShakeHands
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import measurements, rounds, scripts
from casebook.laboratory.experiment import Asked, Experiment
from casebook.laboratory.rounds import as_list
from casebook.mistakes import for_readers
from casebook.stacks import digests
from casebook.stacks.environments import Environment

_PROBES = Path(__file__).parent / "probes"
PROBE = _PROBES / "threads_shake_hands.py"
_PATCHED_FIRST = _PROBES / "threads_patched_first.py"
_TASKS = _PROBES / "tasks_shake_hands.py"

#: How the threads fetch: what the probe calls it -> what it is called on a page.
WAYS = {
    "standard": "ssl.SSLContext, shared",
    "shared": "truststore.SSLContext, shared",
    "each": "truststore.SSLContext, one for each thread",
    "urllib3-pool": "urllib3, one pool with a truststore context",
    "httpx2-client": "httpx2, one client with a truststore context",
    "httpx2-default": "httpx2, one client as it comes",
    "httpx-default": "httpx, one client as it comes",
    "httpx-injected": "httpx, one client, after inject_into_ssl()",
    "requests-injected": "requests.get, after inject_into_ssl()",
    "requests-shared": "one Session, after inject_into_ssl()",
}
#: The same of tasks on one event loop, in one thread.
TASKS = {
    "asyncio-shared": "asyncio's streams, truststore.SSLContext shared",
    "httpx-async-shared": "httpx, one AsyncClient with a truststore context",
}

#: Where the server can wait.
IN_HANDSHAKE, BEFORE_REPLY = "handshake", "reply"

#: So many delays after all began `where_they_wait` looks: in the middle of the second handshake.
_LOOK_AFTER = 1.5

COLUMNS = [
    *("stack", "way", "how", "waits_in", "repeat", "n", "delay_s", "wall_s", "handshakes"),
    *("peak_handshakes", "peak_requests", "verdict", "truststore", "context", "openssl"),
    *("source", "measured_at", "instead", *measurements.COLUMNS),
]
_PLACES = [
    *("stack", "module", "function", "line", "text", "under", "threads", "n", "delay_s"),
    *("source", "measured_at", "instead", *measurements.COLUMNS),
]
_PATCHED = [
    *("stack", "way", "how", "n", "good", "error", "message", "peak_handshakes", "truststore"),
    *("source", "measured_at", "instead", *measurements.COLUMNS),
]


def verdict(n: int, peak: int) -> str:
    """`serial` where the server never had two at once, `concurrent` where it had more than half of
    them at once, else `between`. peak: the most of n that were in its hand at once."""
    if n < 2:
        return BETWEEN
    return SERIAL if peak <= 1 else CONCURRENT if peak > n / 2 else BETWEEN


@rounds.takes_until
def measure(
    names: str | Iterable[str],
    ways: str | Iterable[str] = "shared",
    n: int | Iterable[int] = 8,
    delay_s: float = 0.2,
    waits_in: str | Iterable[str] = IN_HANDSHAKE,
    repeats: int | range = 1,
) -> pd.DataFrame:
    """Have n threads of each stack fetch a page each, in each of the ways, in turns.

    names: of stacks. ways: of WAYS. n: one number of threads or several. delay_s: how long the
    server waits; waits_in: where, "handshake" or "reply". until, looks: what is to be decided
    (casebook/laboratory/rounds.py).

    Returns one row per stack, way, n, place of the wait and repeat, columns COLUMNS: wall_s from
    the first thread's start to the last one's end; peak_handshakes and peak_requests as the server
    counted them, and a verdict by the peak of whatever it waits in; truststore, its version;
    context, the module of the shared context's class ("" where none is shared).

    Raises UsageError, RunFailed when a reply is wrong or missing, and what Experiment.measure
    raises.
    """
    asked = _questions(as_list(ways), as_list(n), delay_s, as_list(waits_in))
    return _THREADS.measure(names, asked, repeats).reindex(columns=COLUMNS)


@for_readers
def measure_tasks(
    name: str, ways: str | Iterable[str] = tuple(TASKS), n: int = 8, delay_s: float = 0.1
) -> pd.DataFrame:
    """Have n tasks on one event loop fetch a page each, in each of the ways.

    ways: of TASKS. Returns one row per way, and raises, as `measure`.
    """
    asked = _questions(as_list(ways), [n], delay_s, known=TASKS)
    on_a_loop = replace(_THREADS, script=_TASKS, ask=partial(_ask, probe=_TASKS))
    return on_a_loop.measure(name, asked).reindex(columns=COLUMNS)


@for_readers
def where_they_wait(
    name: str, way: str = "shared", n: int = 8, delay_s: float = 0.2
) -> pd.DataFrame:
    """Where each thread stands, a delay and a half after all began: a row for each place.

    Returns columns stack, module, function, line, text (that line of code), threads (how many),
    under (the first line of truststore that led there, "" for none), n, delay_s, source,
    measured_at, instead. Threads that are done do not count. Raises as `measure`.
    """
    asked = [each | {"look_after": _LOOK_AFTER} for each in _questions([way], [n], delay_s)]
    looking = replace(_THREADS, ask=_look, figures=lambda asked, answer: answer["places"])
    return looking.measure(name, asked).reindex(columns=_PLACES)


@for_readers
def after_patching(
    name: str, ways: str | Iterable[str] = ("standard", "shared"), n: int = 8
) -> pd.DataFrame:
    """What becomes of the pages where gevent patches everything before anything is imported.

    Returns one row per way: stack, way, how, n, good (replies that were right), error (the type of
    the first exception, "" for none), message, peak_handshakes, truststore, source, measured_at,
    instead. Here a failure is what is asked for, and no time is told. Raises as `measure`.
    """
    patched = replace(_THREADS, script=_PATCHED_FIRST, ask=_try_patched, figures=_became)
    asked = _questions(as_list(ways), [n], 0.1)
    return patched.measure(name, asked).reindex(columns=_PATCHED)


def _questions(
    ways: list[str],
    sizes: list[int],
    delay_s: float,
    waits_in: Iterable[str] = (IN_HANDSHAKE,),
    known: Mapping[str, str] = WAYS,
) -> list[dict[str, Any]]:
    for given, possible in ((ways, known), (waits_in, (IN_HANDSHAKE, BEFORE_REPLY))):
        for each in given:
            if each not in possible:
                raise UsageError(f"{each!r} is not known here; choose from: {', '.join(possible)}")
    if not sizes or not all(1 <= n <= 100 for n in sizes) or not 0 < delay_s <= 10:
        raise UsageError(f"choose 1 to 100 threads, and a delay up to 10 s: {sizes}, {delay_s}")
    return [
        {"way": way, "n": n, "waits_in": place, "delay_s": delay_s}
        for way, n, place in product(ways, sizes, waits_in)
    ]


def _asked(
    environment: Environment, asked: Asked, probe: Path = PROBE
) -> tuple[dict[str, Any], dict[str, int]]:
    """What the probe says, not yet checked, and what its server counted."""
    n, delay_s, look_after = asked["n"], asked["delay_s"], asked.get("look_after")
    spec = {"way": asked["way"], "n": n, "look_after_s": look_after and look_after * delay_s}
    with SlowToShakeHands(**{f"{asked['waits_in']}_s": delay_s}) as slow:
        shown = {"SSL_CERT_FILE": str(slow.ca_file), "SSL_CERT_DIR": str(slow.folder / "nothing")}
        answer = scripts.ask(
            environment, probe, spec | {"url": slow.url}, 60 + 3 * n * delay_s,
            variables=shown, beside=[places.PROBES],
        )  # fmt: skip
        return answer, slow.counters()


def _checked(name: str, answer: dict[str, Any]) -> None:
    """Raise RunFailed unless each page is the right one."""
    if failed := answer["failed"]:
        said = f"page {failed['page']} failed with {failed['type']}: {failed['message']}"
        raise RunFailed(f"{name}: {said}. Nothing was recorded.")
    for row in answer["pages"]:
        if (row["status"], row["got_page"]) != (200, row["page"]):
            came = f"status {row['status']}, page {row['got_page']}"
            raise RunFailed(
                f"{name}: page {row['page']} came back as {came}. Nothing was recorded."
            )


def _ask(environment: Environment, asked: Asked, probe: Path = PROBE) -> dict[str, Any]:
    """Versions, the clock, and what the server counted, of a run whose replies are right."""
    answer, counted = _asked(environment, asked, probe)
    _checked(environment.stack.name, answer)
    kept = ("wall_s", "truststore", "context", "openssl")
    return {name: answer[name] for name in kept} | counted


def _figures(asked: Asked, answer: dict[str, Any]) -> dict[str, Any]:
    counted = {name: answer[name] for name in ("handshakes", "peak_handshakes", "peak_requests")}
    peak = "peak_handshakes" if asked["waits_in"] == IN_HANDSHAKE else "peak_requests"
    return counted | {
        "how": {**WAYS, **TASKS}[asked["way"]],
        "wall_s": answer["wall_s"],
        "verdict": verdict(asked["n"], counted[peak]),
        "truststore": answer["truststore"] or "",
        "context": answer["context"] or "",
        "openssl": answer["openssl"],
    }


def _look(environment: Environment, asked: Asked) -> dict[str, Any]:
    """The places where threads stand, with how many at each."""
    answer, _ = _asked(environment, asked)
    _checked(environment.stack.name, answer)
    stood = Counter(_place(calls) for calls in answer["stacks"])
    return {"places": [dict(place) | {"threads": many} for place, many in stood.most_common()]}


def _place(calls: list[list[Any]]) -> tuple[tuple[str, Any], ...]:
    """Where a thread stands, hashable: the innermost line, and where in truststore that is."""
    module, function, line, text = calls[-1]
    own = [call for call in calls[:-1] if str(call[0]).partition(".")[0] == "truststore"]
    under = f"{own[0][1]}: {own[0][3]}" if own else ""
    place = dict(module=module, function=function, line=line, text=text, under=under)
    return tuple(place.items())


def _try_patched(environment: Environment, asked: Asked) -> dict[str, Any]:
    answer, counted = _asked(environment, asked, _PATCHED_FIRST)
    return {
        "good": sum((p["status"], p["got_page"]) == (200, p["page"]) for p in answer["pages"]),
        "failed": answer["failed"],
        "peak_handshakes": counted["peak_handshakes"],
        "truststore": answer["truststore"],
    }


def _became(asked: Asked, answer: dict[str, Any]) -> dict[str, Any]:
    failed = answer["failed"] or {"type": "", "message": ""}
    return {
        "how": WAYS[asked["way"]],
        "good": answer["good"],
        "error": failed["type"],
        "message": failed["message"],
        "peak_handshakes": answer["peak_handshakes"],
        "truststore": answer["truststore"],
    }


_THREADS = Experiment(
    PROBE,
    _figures,
    made_of=(Path(__file__), *digests.files(server)),
    beside=(places.PROBES,),
    ask=_ask,
)
