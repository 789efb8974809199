"""Tasks of an asyncio program that make clients and fetch a page each, beside a heartbeat.

    frame = measure(["httpx-each", "httpx-one"], n=10)

Counted are loads of certificates, and in which thread; between the beats nothing else had its turn.
The system's default bundle is certifi's with the lab's authority, as on most systems.
"""

import tempfile
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, stacks
from casebook.cases.fetching import server, trust
from casebook.cases.fetching.bench import lab_server
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import measurements, rounds, scripts
from casebook.laboratory.progress import Progress
from casebook.laboratory.rounds import as_list, in_turns
from casebook.stacks import digests, environments

STACK = "on-the-loop-today"
_PROBE = Path(__file__).parent / "probes" / "clients_on_the_loop.py"

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
    """Have n tasks make clients, and fetch a page each where their way fetches one.

    ways: of WAYS, in turns. n: one number of tasks or several. delay_s: of the server; scheme: its
    "https" or "http". stack: which has the library; aiobotocore is in stacks of its own, since it
    wants a botocore of its own. until, looks: what is to be decided
    (casebook/laboratory/rounds.py).

    Returns one row per way, n and repeat, columns COLUMNS: at_import, loads of certificates while
    the library was imported; loads, since then, and on_loop, how many of them in the event loop's
    thread; stall_ms, the longest time without a heartbeat, which is due every 10 ms; beats, how
    many there were until all was fetched. Raises UsageError, RunFailed when a reply is wrong, and
    EnvironmentFailed.
    """
    asked = [(way, size) for way in as_list(ways) for size in as_list(n)]
    for way, size in asked:
        _check(way, size, delay_s)
    numbers, rows = rounds.numbers(repeats), []
    with Progress(len(asked) * len(numbers), "clients on a loop") as progress:
        for repeat, (way, size) in in_turns(asked, numbers):
            found = _answer(stack, way, size, delay_s, scheme, repeat)
            rows.append(found | _figures(found) | {"way": way, "how": WAYS[way], "repeat": repeat})
            progress.step()
    return pd.DataFrame(rows, columns=COLUMNS)


def timeline(ways: Iterable[str], n: int = 10, delay_s: float = 0.2) -> pd.DataFrame:
    """When each load was, and each beat of the heart: a row for each.

    Returns columns stack, way, how, what ("load" or "beat"), start_s and end_s (since the tasks
    began), on_loop, source, measured_at. Raises as `measure`.
    """
    rows = []
    for way in ways:
        _check(way, n, delay_s)
        found = _answer(STACK, way, n, delay_s, "https", 1)
        its = {"stack": STACK, "way": way, "how": WAYS[way]}
        its |= {name: found[name] for name in ("source", "measured_at", *measurements.COLUMNS)}
        rows += [its | {"what": "load"} | load for load in found["answer"]["loads"]]
        rows += [
            its | {"what": "beat", "start_s": beat, "end_s": beat, "on_loop": True}
            for beat in found["answer"]["beats_s"]
        ]
    return pd.DataFrame(rows)


def _check(way: str, n: int, delay_s: float) -> None:
    if way not in WAYS:
        raise UsageError(f"the way is {way!r}; choose of: {', '.join(WAYS)}")
    if not 1 <= n <= 200 or not 0 <= delay_s <= server.MAX_DELAY_S:
        most = f"{server.MAX_DELAY_S:g}"
        raise UsageError(f"choose 1 to 200 tasks and a delay up to {most} s, not {n}, {delay_s}")


def _answer(
    stack: str, way: str, n: int, delay_s: float, scheme: str, repeat: int
) -> dict[str, Any]:
    """What the probe said, stored or new, and what was asked of it."""
    environment = environments.ensure(stacks.get(stack))
    code = [Path(__file__), *digests.executed(_PROBE, beside=[places.PROBES]), *server.MADE_OF]
    key = measurements.key_of(code, environment.stack, way, n, delay_s, scheme, repeat)

    def ask() -> list[dict]:
        lab, spec = lab_server(scheme), {"way": way, "n": n, "delay_s": delay_s}
        with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
            authority = lab.ca_file or lab_server().ca_file
            shown = trust.of_name(trust.BUNDLE, authority, Path(folder)).variables
            spec |= {"url": lab.url}
            answer = scripts.ask(environment, _PROBE, spec, variables=shown, beside=[places.PROBES])
        _checked(way, answer)
        return [{"stack": stack, "scheme": scheme, "n": n, "delay_s": delay_s, "answer": answer}]

    return measurements.rows(ask, key)[0]


def _checked(way: str, answer: dict) -> None:
    """Raise RunFailed unless each page is the right one."""
    if failed := answer["failed"]:
        said = f"page {failed['page']} failed with {failed['type']}: {failed['message']}"
        raise RunFailed(f"{WAYS[way]}: {said}. Nothing was recorded.")
    for row in answer["pages"]:
        if (row["status"], row["got_page"]) != (200, row["page"]):
            came = f"status {row['status']}, page {row['got_page']}"
            raise RunFailed(
                f"{WAYS[way]}: page {row['page']} came as {came}. Nothing was recorded."
            )


def _figures(found: dict[str, Any]) -> dict[str, Any]:
    answer = found["answer"]
    beats = answer["beats_s"]
    gaps = [later - sooner for sooner, later in pairwise(beats) if later > 0]
    return {
        "wall_s": answer["wall_s"],
        "at_import": answer["at_import"],
        "loads": len(answer["loads"]),
        "on_loop": sum(load["on_loop"] for load in answer["loads"]),
        "stall_ms": 1000 * max(gaps),
        "beats": sum(0 < beat < answer["wall_s"] for beat in beats),
        "openssl": answer["openssl"],
    }
