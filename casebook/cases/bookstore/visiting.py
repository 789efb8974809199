"""One visit at a time: a store and its distance, a client in its environment, the figures."""

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from casebook import stacks
from casebook.cases.bookstore import inspection, readers, stock, store
from casebook.runs import measurements
from casebook.server import relay
from casebook.stacks import digests, environments
from casebook.words import LIVE

#: Columns that a client's own answer gives as they are.
_AS_ANSWERED = (
    *("protocol", "python", "peak_in_flight", "arrivals", "wall_s", "user_s", "sys_s"),
    *("process_wall_s", "process_user_s", "process_sys_s"),
)


@dataclass(frozen=True, kw_only=True)
class Visit(readers.Manner):
    """What a visit is: who visits which store, for how many books, in which manner, and from how
    far.

    latency_ms: each way. delay_s, slow: how the store answers (slow in words). repeat: the number
    of the round.
    """

    client: str
    engine: str
    n: int
    latency_ms: float
    delay_s: float
    slow: str
    repeat: int = 1


class Host(contextlib.ExitStack):
    """The store that some visits go to, opened when the first of them needs it, and its relays.

    target: an open store of the caller's, in place of one of our own. What was opened is closed at
    the end of the `with` block.
    """

    def __init__(self, engine: str, delay_s: float = 0.0, slow: dict | None = None, target=None):
        super().__init__()
        self.engine, self.delay_s, self.slow = engine, delay_s, slow
        self._target, self._urls = target, dict[float, str]()

    @cached_property
    def store(self):
        """The store, open."""
        if self._target:
            return self._target
        return self.enter_context(store.open_store(self.engine, False, self.delay_s, self.slow))

    def url(self, latency_ms: float) -> str:
        """Where the store is, so far away."""
        if not latency_ms:
            return self.store.url
        if latency_ms not in self._urls:
            far = relay.relay(self.store.url, latency_ms / 1000)
            self._urls[latency_ms] = self.enter_context(far)
        return self._urls[latency_ms]

    def stored_or_new(self, measure: Callable[[], dict], made_by: list[Path], *of) -> dict:
        """A measurement, stored if the store is one of our own.

        made_by, of: what else it depends on, as measurements.key_of takes it.
        """
        if self._target:  # what it is made of cannot be known
            return measurements.new(measure)
        key = measurements.key_of(made_by, store.fingerprint(self.engine), *of)
        return measurements.stored_or_new(key, measure)

    def visit(self, visit: Visit, patience_s: float) -> dict:
        """A checked visit: visits.COLUMNS, and "arrivals" as [id, seconds]. Raises VisitFailed."""
        reader = readers.get(visit.client)
        made_by = [
            *digests.executed(readers.VISIT),
            *digests.executed(readers.SCRIPTS / f"{reader.script}.py"),
            *digests.files(inspection, relay),
            Path(__file__),
        ]
        of = stacks.get(reader.stack), asdict(visit), reader.protocol, reader.title
        return self.stored_or_new(lambda: self._made(visit, patience_s), made_by, *of)

    def _made(self, visit: Visit, patience_s: float) -> dict:
        ids = None if visit.n == stock.SIZE else stock.ids()[: visit.n]
        longest_s = visit.delay_s + 2 * visit.latency_ms / 1000 + 0.02
        within_s = 60 + patience_s + 3 * visit.n * longest_s
        place, url = self.store, self.url(visit.latency_ms)
        place.reset()
        before_s = place.cpu_s()
        answer = readers.read(
            visit.client, place, ids, visit, within_s, url=url, timeout_s=patience_s
        )
        server_cpu_s = place.cpu_s() - before_s
        counted = place.counters()
        inspection.check(visit.client, answer, visit.n)
        return {
            **asdict(visit),
            **_figures(answer, visit.connections),
            **_reader(visit, answer["python"]),
            "server_cpu_s": round(server_cpu_s, 6),
            "server_connections": counted["connections"],
            "server_streams_peak": counted["peak_streams"],
            "source": LIVE,
            "instead": "",
        }


def _reader(visit: Visit, python: str) -> dict:
    """The columns that say who visited."""
    reader = readers.get(visit.client)
    versions = environments.ensure(stacks.get(reader.stack)).versions
    return {
        "label": readers.label(visit.client, visit),
        "stack": reader.stack,
        "library": reader.library,
        "version": versions.get(reader.library, python),  # http.client has none of its own
    }


def _figures(answer: dict, planned: int) -> dict:
    """The columns that a client's own answer gives.

    More connections than planned mean that some were lost, and that it asked again over a new one.
    """
    again = [
        f"connection {i} (of {planned} planned) after {books} books"
        for i, books in enumerate(answer["opened"], 1)
        if i > planned
    ]
    return {name: answer[name] for name in _AS_ANSWERED} | {
        "cpu_percent": _percent(answer, ""),
        "process_cpu_percent": _percent(answer, "process_"),
        "opened": len(answer["opened"]),
        "recovered": "; ".join(again),
        "books": len(answer["bodies"]),
    }


def _percent(answer: dict, of: str) -> float:
    """The processor time in per cent of one processor, as `time` prints it."""
    return round(100 * (answer[f"{of}user_s"] + answer[f"{of}sys_s"]) / answer[f"{of}wall_s"], 1)
