"""Tasks of an asyncio program that make clients and fetch a page each, beside a heartbeat.

    frame = measure(["httpx-each", "httpx-one"], n=10)

Counted are loads of certificates, and in which thread; between the beats nothing else had its turn.
The system's default bundle is certifi's with the lab's authority, as on most systems.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.cases.fetching import server, trust
from casebook.cases.fetching.bench import lab_server
from casebook.errors import RunFailed
from casebook.laboratory import measurements, rounds
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.laboratory.rounds import as_list
from casebook.mistakes import check_choice, check_range, for_readers

STACK = "on-the-loop-today"

#: How the tasks get their clients: what the probe calls it -> what it is called on a page.
WAYS = {
    "httpx-each": "httpx, a client each",
    "httpx-unverified": "httpx, a client each, verify=False",
    "httpx-one": "httpx, one client",
    "httpx-context": "httpx, a client each, one context",
    "httpx-thread": "httpx, a client each, one context made in a thread",
    "aiohttp-each": "aiohttp, a session each",
    "aiohttp-context-each": "aiohttp, a connector with a context each",
    "openai-each": "openai, a client each",
    "openai-pair-each": "openai, two clients each, as crewAI has them",
    "botocore-each": "botocore, a client each, nothing fetched",
    "botocore-asked-each": "botocore, a client each, asked in a thread",
    "botocore-asked-one": "botocore, one client, asked in threads",
    "aiobotocore-each": "aiobotocore, a client each",
    "aiobotocore-one": "aiobotocore, one client",
}

COLUMNS = [
    *("stack", "way", "how", "scheme", "repeat", "n", "delay_s", "wall_s", "at_import", "loads"),
    *("on_loop", "stall_ms", "beats", "openssl", "source", "measured_at", "instead"),
    *measurements.COLUMNS,
]


@rounds.takes_until
def measure(
    ways: str | Iterable[str],
    n: int | Iterable[int] = 10,
    delay_s: float = 0.2,
    scheme: str = "https",
    repeats: int | range = 1,
    stack: str = STACK,
) -> pd.DataFrame:
    """Have n tasks make clients, and fetch a page each if their way fetches one.

    ways: of WAYS, in turns. n: one number of tasks or several. delay_s: of the server; scheme: its
    "https" or "http". stack: which has the library; aiobotocore is in stacks of its own, since it
    wants a botocore of its own. until, looks: what is to be decided
    (casebook/laboratory/rounds.py).

    Returns one row per way, n and repeat, columns COLUMNS: at_import, loads of certificates while
    the library was imported; loads, since then, and on_loop, how many of them in the event loop's
    thread; stall_ms, the longest time without a heartbeat, which is due every 10 ms; beats, how
    many there were until all was fetched. Raises UsageError, RunFailed if a reply is wrong, and
    what Experiment.measure raises.
    """
    clients = replace(_CLIENTS, tells=lambda: {"url": lab_server(scheme).url})
    rows = clients.measure(stack, _questions(ways, n, delay_s, scheme), repeats)
    return rows.reindex(columns=COLUMNS)


@for_readers
def timeline(ways: Iterable[str], n: int = 10, delay_s: float = 0.2) -> pd.DataFrame:
    """Return when each load was, and each beat of the heart: a row for each.

    Returns columns stack, way, how, what ("load" or "beat"), start_s and end_s (since the tasks
    began), on_loop, and of COLUMNS those that say what was asked and where. Raises as `measure`.
    """
    return replace(_CLIENTS, figures=_moments).measure(STACK, _questions(ways, n, delay_s))


def _questions(
    ways: str | Iterable[str], n: int | Iterable[int], delay_s: float, scheme: str = "https"
) -> list[dict[str, Any]]:
    for way in as_list(ways):
        check_choice("the way", way, WAYS)
    for size in as_list(n):
        check_range("n", size, 1, 200)
    check_range("the delay", delay_s, 0, server.MAX_DELAY_S, " s")
    check_choice("the scheme", scheme, server.SCHEMES)  # before an environment is made
    server_parameters = {"delay_s": delay_s, "scheme": scheme}
    return [
        {"way": way, "n": size, **server_parameters} for way in as_list(ways) for size in as_list(n)
    ]


def _default_bundle() -> dict[str, str]:
    """Return variables that name the system's default, a file beside the lab's authority."""
    authority = lab_server().ca_file
    assert authority, "it speaks https"
    return trust.of_name(trust.BUNDLE, authority, authority.parent).variables


def _check(parameters: Parameters, answer: dict[str, Any]) -> None:
    """Raise RunFailed unless each page is the right one."""
    client = WAYS[parameters["way"]]
    if failed := answer["failed"]:
        failure = f"page {failed['page']} failed with {failed['type']}: {failed['message']}"
        raise RunFailed(f"{client}: {failure}. Nothing was recorded.")
    for row in answer["pages"]:
        if (row["status"], row["got_page"]) != (200, row["page"]):
            reply = f"status {row['status']}, page {row['got_page']}"
            raise RunFailed(f"{client}: page {row['page']} came as {reply}. Nothing was recorded.")


def _figures(parameters: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    _check(parameters, answer)
    beats = answer["beats_s"]
    gaps = [later - sooner for sooner, later in pairwise(beats) if later > 0]
    return {
        "how": WAYS[parameters["way"]],
        "wall_s": answer["wall_s"],
        "at_import": answer["at_import"],
        "loads": len(answer["loads"]),
        "on_loop": sum(load["on_loop"] for load in answer["loads"]),
        "stall_ms": 1000 * max(gaps),
        "beats": sum(0 < beat < answer["wall_s"] for beat in beats),
        "openssl": answer["openssl"],
    }


def _moments(parameters: Parameters, answer: dict[str, Any]) -> list[dict[str, Any]]:
    _check(parameters, answer)
    loads = [{"what": "load"} | load for load in answer["loads"]]
    beats = [
        {"what": "beat", "start_s": beat, "end_s": beat, "on_loop": True}
        for beat in answer["beats_s"]
    ]
    return [{"how": WAYS[parameters["way"]]} | moment for moment in loads + beats]


_CLIENTS = Experiment(
    Path(__file__).parent / "probes" / "clients_on_the_loop.py",
    _figures,
    within_s=300,
    depends_on=(Path(__file__), *server.DEPENDENCIES),  # this file, since it says what is trusted
    tells=lambda: {"url": lab_server().url},
    variables=_default_bundle,
    beside=(places.PROBES,),
)
