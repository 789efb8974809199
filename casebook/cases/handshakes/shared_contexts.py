"""Threads that share a context, and how many of their handshakes the server handles at once.

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
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.laboratory.rounds import as_list
from casebook.mistakes import check_range, for_readers
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

#: When `where_they_wait` looks, in delays after all began: in the middle of the second handshake.
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


def verdict_of_handshakes(n: int, peak: int) -> str:
    """Judge threads by the peak of their handshakes: `serial`, `concurrent` or `between`.

    The threads begin together, and each handshake lasts as long as the server waits. So threads
    that do not wait for each other are all in it at once: `concurrent` if more than half of them
    were, `serial` if there never were two. A few at once may be one that begins while another ends,
    and decide nothing; requests are judged by analysis.verdict_by_peak.

    peak: the most of n that the server handled at once.
    """
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
    context, the module of the shared context's class ("" if none is shared).

    Raises UsageError, RunFailed when a reply is wrong or missing, and what Experiment.measure
    raises.
    """
    questions = _questions(as_list(ways), as_list(n), delay_s, as_list(waits_in))
    return _THREADS.measure(names, questions, repeats).reindex(columns=COLUMNS)


@for_readers
def measure_tasks(
    name: str, ways: str | Iterable[str] = tuple(TASKS), n: int = 8, delay_s: float = 0.1
) -> pd.DataFrame:
    """Have n tasks on one event loop fetch a page each, in each of the ways.

    ways: of TASKS. Returns one row per way, and raises, as `measure`.
    """
    questions = _questions(as_list(ways), [n], delay_s, possible_ways=TASKS)
    on_a_loop = replace(_THREADS, script=_TASKS, ask=partial(_run_checked, probe=_TASKS))
    return on_a_loop.measure(name, questions).reindex(columns=COLUMNS)


@for_readers
def where_they_wait(
    name: str, way: str = "shared", n: int = 8, delay_s: float = 0.2
) -> pd.DataFrame:
    """Show where each thread waits, a delay and a half after all began: a row for each place.

    Returns columns stack, module, function, line, text (that line of code), threads (how many),
    under (the first line of truststore that led there, "" for none), n, delay_s, source,
    measured_at, instead. Threads that are done do not count. Raises as `measure`.
    """
    questions = [
        question | {"look_after": _LOOK_AFTER} for question in _questions([way], [n], delay_s)
    ]
    looking = replace(_THREADS, ask=_find_places, figures=lambda _, answer: answer["places"])
    return looking.measure(name, questions).reindex(columns=_PLACES)


@for_readers
def after_patching(
    name: str, ways: str | Iterable[str] = ("standard", "shared"), n: int = 8
) -> pd.DataFrame:
    """Show what becomes of the pages if gevent patches everything before anything is imported.

    Returns one row per way: stack, way, how, n, good (replies that were right), error (the type of
    the first exception, "" for none), message, peak_handshakes, truststore, source, measured_at,
    instead. Here a failure is what is asked for, and no time is told. Raises as `measure`.
    """
    patched = replace(_THREADS, script=_PATCHED_FIRST, ask=_try_patched, figures=_patching_figures)
    questions = _questions(as_list(ways), [n], 0.1)
    return patched.measure(name, questions).reindex(columns=_PATCHED)


def _questions(
    ways: list[str],
    sizes: list[int],
    delay_s: float,
    waits_in: Iterable[str] = (IN_HANDSHAKE,),
    possible_ways: Mapping[str, str] = WAYS,
) -> list[dict[str, Any]]:
    for choices, possible in (
        (ways, possible_ways),
        (waits_in, (IN_HANDSHAKE, BEFORE_REPLY)),
    ):
        for choice in choices:
            if choice not in possible:
                raise UsageError(
                    f"{choice!r} is not known here; choose from: {', '.join(possible)}"
                )
    for n in sizes:
        check_range("n", n, 1, 100)
    check_range("the delay", delay_s, 1e-3, 10, " s")
    return [
        {"way": way, "n": n, "waits_in": place, "delay_s": delay_s}
        for way, n, place in product(ways, sizes, waits_in)
    ]


def _ask_probe(
    environment: Environment, parameters: Parameters, probe: Path = PROBE
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the probe's answer, not yet checked, and what its server counted."""
    n, delay_s, look_after = parameters["n"], parameters["delay_s"], parameters.get("look_after")
    spec = {"way": parameters["way"], "n": n, "look_after_s": look_after and look_after * delay_s}
    with SlowToShakeHands(**{f"{parameters['waits_in']}_s": delay_s}) as slow:
        variables = {
            "SSL_CERT_FILE": str(slow.ca_file),
            "SSL_CERT_DIR": str(slow.folder / "nothing"),
        }
        answer = scripts.answer_of(
            environment, probe, spec | {"url": slow.url}, 60 + 3 * n * delay_s,
            variables=variables, beside=[places.PROBES],
        )  # fmt: skip
        return answer, slow.counters()


def _check_pages(name: str, answer: dict[str, Any]) -> None:
    """Raise RunFailed unless each page is the right one."""
    if failed := answer["failed"]:
        failure = f"page {failed['page']} failed with {failed['type']}: {failed['message']}"
        raise RunFailed(f"{name}: {failure}. Nothing was recorded.")
    for row in answer["pages"]:
        if (row["status"], row["got_page"]) != (200, row["page"]):
            reply = f"status {row['status']}, page {row['got_page']}"
            raise RunFailed(
                f"{name}: page {row['page']} came back as {reply}. Nothing was recorded."
            )


def _run_checked(
    environment: Environment, parameters: Parameters, probe: Path = PROBE
) -> dict[str, Any]:
    """Return versions, the clock, and what the server counted, of a run with the right replies."""
    answer, counters = _ask_probe(environment, parameters, probe)
    _check_pages(environment.stack.name, answer)
    stored = ("wall_s", "truststore", "context", "openssl")
    return {name: answer[name] for name in stored} | counters


def _figures(parameters: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    counters = {name: answer[name] for name in ("handshakes", "peak_handshakes", "peak_requests")}
    peak = "peak_handshakes" if parameters["waits_in"] == IN_HANDSHAKE else "peak_requests"
    return counters | {
        "how": {**WAYS, **TASKS}[parameters["way"]],
        "wall_s": answer["wall_s"],
        "verdict": verdict_of_handshakes(parameters["n"], counters[peak]),
        "truststore": answer["truststore"] or "",
        "context": answer["context"] or "",
        "openssl": answer["openssl"],
    }


def _find_places(environment: Environment, parameters: Parameters) -> dict[str, Any]:
    """Return the places where threads wait, with the number of threads at each."""
    answer, _ = _ask_probe(environment, parameters)
    _check_pages(environment.stack.name, answer)
    counts = Counter(_place(calls) for calls in answer["stacks"])
    return {"places": [dict(place) | {"threads": count} for place, count in counts.most_common()]}


def _place(calls: list[list[Any]]) -> tuple[tuple[str, Any], ...]:
    """Return where a thread waits, hashable: the innermost line, and the place in truststore."""
    module, function, line, text = calls[-1]
    in_truststore = [call for call in calls[:-1] if str(call[0]).partition(".")[0] == "truststore"]
    under = f"{in_truststore[0][1]}: {in_truststore[0][3]}" if in_truststore else ""
    place = dict(module=module, function=function, line=line, text=text, under=under)
    return tuple(place.items())


def _try_patched(environment: Environment, parameters: Parameters) -> dict[str, Any]:
    answer, counters = _ask_probe(environment, parameters, _PATCHED_FIRST)
    return {
        "good": sum((p["status"], p["got_page"]) == (200, p["page"]) for p in answer["pages"]),
        "failed": answer["failed"],
        "peak_handshakes": counters["peak_handshakes"],
        "truststore": answer["truststore"],
    }


def _patching_figures(parameters: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    failed = answer["failed"] or {"type": "", "message": ""}
    return {
        "how": WAYS[parameters["way"]],
        "good": answer["good"],
        "error": failed["type"],
        "message": failed["message"],
        "peak_handshakes": answer["peak_handshakes"],
        "truststore": answer["truststore"],
    }


_THREADS = Experiment(
    PROBE,
    _figures,
    depends_on=(Path(__file__), *digests.files(server)),
    beside=(places.PROBES,),
    ask=_run_checked,
)
