"""Threads that share a context, and how many handshakes of theirs the server has in hand at once.

    frame = measure(["truststore-0.10.4-today", "truststore-0.10.5-today"], "shared")

The threads begin together and fetch a page each, over a connection each, from a server that waits:
in the handshake or before its reply (server.py). Each reply is checked. They trust one authority,
the server's own: a bundle of certificates would take its time in each handshake of truststore, and
what is asked here is who waits for whom.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from casebook import places, stacks
from casebook.cases.fetching.analysis import BETWEEN, CONCURRENT, SERIAL
from casebook.cases.handshakes import server
from casebook.cases.handshakes.server import SlowToShakeHands
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import measurements, rounds, scripts
from casebook.laboratory.progress import Progress
from casebook.laboratory.rounds import as_list, in_turns
from casebook.stacks import digests, environments
from casebook.stacks.environments import Environment

_PROBES = Path(__file__).parent / "probes"
PROBE = _PROBES / "threads_shake_hands.py"
_PATCHED = _PROBES / "threads_patched_first.py"

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

#: Where the server can wait.
IN_HANDSHAKE, BEFORE_REPLY = "handshake", "reply"

COLUMNS = [
    *("stack", "way", "how", "waits_in", "repeat", "n", "delay_s", "wall_s", "handshakes"),
    *("peak_handshakes", "peak_requests", "verdict", "truststore", "context", "openssl"),
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

    Raises UsageError, RunFailed when a reply is wrong or missing, and EnvironmentFailed.
    """
    sizes, places_ = as_list(n), as_list(waits_in)
    _check(as_list(ways), sizes, delay_s, places_)
    its = [environments.ensure(stacks.get(name)) for name in as_list(names)]
    asked = [
        (environment, way, size, place)
        for environment in its
        for way in as_list(ways)
        for size in sizes
        for place in places_
    ]
    numbers, rows = rounds.numbers(repeats), []
    with Progress(len(asked) * len(numbers), "threads, shaking hands") as progress:
        for repeat, each in in_turns(asked, numbers):
            rows += _rows(each, delay_s, repeat)
            progress.step()
    return pd.DataFrame(rows, columns=COLUMNS)


def where_they_wait(
    name: str, way: str = "shared", n: int = 8, delay_s: float = 0.2
) -> pd.DataFrame:
    """Where each thread stands, a delay and a half after all began: a row for each place.

    Returns columns stack, module, function, line, text (that line of code), threads (how many),
    under (the first line of truststore that led there, "" for none), n, delay_s, source,
    measured_at. Threads that are done do not count. Raises as `measure`.
    """
    _check([way], [n], delay_s, [IN_HANDSHAKE])
    environment = environments.ensure(stacks.get(name))

    def look() -> list[dict]:
        answer, _ = _asked(environment, PROBE, way, n, IN_HANDSHAKE, delay_s, 1.5 * delay_s)
        _checked(name, answer)
        stood = Counter(_place(calls) for calls in answer["stacks"])
        asked = {"stack": name, "n": n, "delay_s": delay_s}
        return [asked | dict(place) | {"threads": many} for place, many in stood.most_common()]

    key = _key(PROBE, environment, way, n, "where", delay_s)
    columns = ["stack", "module", "function", "line", "text", "under", "threads", "n", "delay_s"]
    shown = [*columns, "source", "measured_at", *measurements.COLUMNS]
    return pd.DataFrame(measurements.rows(look, key), columns=shown)


def _place(calls: list[list]) -> tuple:
    """Where a thread stands, hashable: the innermost line, and where in truststore that is."""
    module, function, line, text = calls[-1]
    own = [call for call in calls[:-1] if str(call[0]).partition(".")[0] == "truststore"]
    under = f"{own[0][1]}: {own[0][3]}" if own else ""
    place = dict(module=module, function=function, line=line, text=text, under=under)
    return tuple(place.items())


def after_patching(
    name: str, ways: Iterable[str] = ("standard", "shared"), n: int = 8
) -> pd.DataFrame:
    """What becomes of the pages where gevent patches everything before anything is imported.

    Returns one row per way: stack, way, how, n, good (replies that were right), error (the type of
    the first exception, "" for none), message, peak_handshakes, truststore, source, measured_at.
    Here a failure is what is asked for, and no time is told. Raises UsageError, RunFailed.
    """
    ways = as_list(ways)
    _check(ways, [n], 0.1, [IN_HANDSHAKE])
    environment = environments.ensure(stacks.get(name))

    def try_all() -> list[dict]:
        rows = []
        for way in ways:
            answer, counted = _asked(environment, _PATCHED, way, n, IN_HANDSHAKE, 0.1)
            failed = answer["failed"] or {"type": "", "message": ""}
            good = sum((p["status"], p["got_page"]) == (200, p["page"]) for p in answer["pages"])
            rows.append({
                "stack": name, "way": way, "how": WAYS[way], "n": n, "good": good,
                "error": failed["type"], "message": failed["message"],
                "peak_handshakes": counted["peak_handshakes"], "truststore": answer["truststore"],
            })  # fmt: skip
        return rows

    key = _key(_PATCHED, environment, *ways, n)
    columns = ["stack", "way", "how", "n", "good", "error", "message", "peak_handshakes"]
    shown = [*columns, "truststore", "source", "measured_at", *measurements.COLUMNS]
    return pd.DataFrame(measurements.rows(try_all, key), columns=shown)


def _check(ways: list[str], sizes: list[int], delay_s: float, waits_in: list[str]) -> None:
    for given, known in ((ways, WAYS), (waits_in, (IN_HANDSHAKE, BEFORE_REPLY))):
        for each in given:
            if each not in known:
                raise UsageError(f"{each!r} is not known here; choose from: {', '.join(known)}")
    if not sizes or not all(1 <= n <= 100 for n in sizes) or not 0 < delay_s <= 10:
        raise UsageError(f"choose 1 to 100 threads, and a delay up to 10 s: {sizes}, {delay_s}")


def _key(probe: Path, environment: Environment, *asked: object) -> measurements.Key:
    made_by = [
        Path(__file__),
        *digests.executed(probe, beside=[places.PROBES]),
        *digests.files(server),
    ]
    return measurements.key_of(made_by, probe.stem, environment.stack, *asked)


def _rows(each: tuple[Environment, str, int, str], delay_s: float, repeat: int) -> list[dict]:
    """The row of one run, stored or new."""
    environment, way, n, place = each
    key = _key(PROBE, environment, way, n, place, delay_s, repeat)
    return [
        row | {"repeat": repeat}
        for row in measurements.rows(lambda: [_row(environment, way, n, place, delay_s)], key)
    ]


def _row(environment: Environment, way: str, n: int, place: str, delay_s: float) -> dict:
    """One run whose replies are right, or RunFailed."""
    answer, counted = _asked(environment, PROBE, way, n, place, delay_s)
    _checked(environment.stack.name, answer)
    peak = counted["peak_handshakes" if place == IN_HANDSHAKE else "peak_requests"]
    return {
        "stack": environment.stack.name, "way": way, "how": WAYS[way], "waits_in": place, "n": n,
        "delay_s": delay_s, "wall_s": answer["wall_s"], "handshakes": counted["handshakes"],
        "peak_handshakes": counted["peak_handshakes"], "peak_requests": counted["peak_requests"],
        "verdict": verdict(n, peak), "truststore": answer["truststore"] or "",
        "context": answer["context"] or "", "openssl": answer["openssl"],
    }  # fmt: skip


def _asked(
    environment: Environment, probe: Path, way: str, n: int, place: str, delay_s: float,
    look_after_s: float | None = None,
) -> tuple[dict, dict[str, int]]:  # fmt: skip
    """What the probe says, not yet checked, and what its server counted."""
    waits = {f"{place}_s": delay_s}
    spec = {"way": way, "n": n, "look_after_s": look_after_s}
    with SlowToShakeHands(**{"handshake_s": 0.0, **waits}) as slow:
        shown = {"SSL_CERT_FILE": str(slow.ca_file), "SSL_CERT_DIR": str(slow.folder / "nothing")}
        answer = scripts.ask(
            environment, probe, spec | {"url": slow.url}, 60 + 3 * n * delay_s,
            variables=shown, beside=[places.PROBES],
        )  # fmt: skip
        return answer, slow.counters()


def _checked(name: str, answer: dict) -> None:
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
