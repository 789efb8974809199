"""One visit at a time: a store and its distance, a client in its environment, the figures."""

import contextlib
from pathlib import Path

from casebook import stacks
from casebook.cases.bookstore import inspection, readers, stock, store
from casebook.runs import measurements
from casebook.server import relay
from casebook.stacks import digests, environments, scripts
from casebook.words import LIVE

_PARTS = ("user", "sys", "wall")
_SECONDS = [f"{before}{part}_s" for before in ("", "process_") for part in _PARTS]


class Host:
    """The store that some visits go to, opened when the first of them needs it, and its relays.

    target: an open store of the caller's, in place of one of our own. What is opened is closed
    with open_things.
    """

    def __init__(
        self,
        engine: str,
        delay_s: float,
        slow: dict[str, float],
        target,
        open_things: contextlib.ExitStack,
    ):
        self.engine, self.delay_s, self.slow = engine, delay_s, slow
        self._is_mine = target is None
        self._store, self._open = target, open_things
        self._relays: dict = {}

    @property
    def store(self):
        """The store, open."""
        if self._store is None:
            opened = store.open_store(self.engine, delay_s=self.delay_s, slow=self.slow)
            self._store = self._open.enter_context(opened)
        return self._store

    def url(self, latency_ms: float) -> str:
        """Where the store is, so far away."""
        if not latency_ms:
            return self.store.url
        if latency_ms not in self._relays:
            far = relay.relay(self.store.url, latency_ms / 1000)
            self._relays[latency_ms] = self._open.enter_context(far)
        return self._relays[latency_ms]

    def visit(self, asked: dict, patience_s: float) -> dict:
        """A visit, stored if the store is one of our own: see measurements.

        asked: the columns that say what the visit is (recorded.WHAT, and repeat). Raises as `take`.
        """
        if not self._is_mine:  # what it is made of cannot be known
            return measurements.new(lambda: self.take(asked, patience_s))
        reader = readers.get(asked["client"])
        key = digests.of(
            measurements.SCHEMA,
            digests.executed(readers.SCRIPTS / "visit.py"),
            digests.executed(readers.SCRIPTS / f"{reader.script}.py"),
            digests.files(inspection, relay, scripts),
            Path(__file__),
            [reader.stack, reader.script, reader.protocol, reader.title],
            environments.fingerprint(stacks.get(reader.stack)),
            store.fingerprint(self.engine),
            asked,
        )
        return measurements.stored_or_new(key, lambda: self.take(asked, patience_s))

    def take(self, asked: dict, patience_s: float) -> dict:
        """One visit, made and checked: visits.COLUMNS, and "arrivals" as [id, seconds].

        Raises VisitFailed.
        """
        client, n = asked["client"], asked["n"]
        ids = None if n == len(stock.ids()) else readers.books(n)
        longest_s = asked["delay_s"] + 2 * asked["latency_ms"] / 1000 + 0.02
        how = readers.Manner(asked["at_once"], asked["connections"], asked["order"])
        reader = readers.get(client)
        environment = environments.ensure(stacks.get(reader.stack))
        place, url = self.store, self.url(asked["latency_ms"])
        place.reset()
        before_s = place.cpu_s()
        answer = readers.read(
            client,
            environment,
            place,
            ids,
            how,
            url,
            patience_s,
            60 + patience_s + 3 * n * longest_s,
        )
        server_cpu_s = place.cpu_s() - before_s
        counted = place.counters()
        inspection.check(client, answer, n)
        return asked | {name: answer[name] for name in _SECONDS} | {
            "label": readers.label(client, how),
            "stack": reader.stack,
            "library": reader.library,
            # http.client has no version of its own.
            "version": environment.versions.get(reader.library, answer["python"]),
            "python": answer["python"],
            "protocol": answer["protocol"],
            "cpu_percent": _share(*(answer[f"{part}_s"] for part in _PARTS)),
            "process_cpu_percent": _share(*(answer[f"process_{part}_s"] for part in _PARTS)),
            "server_cpu_s": round(server_cpu_s, 6),
            "server_connections": counted["connections"],
            "server_streams_peak": counted["peak_streams"],
            "opened": answer["connections"],
            "peak_in_flight": answer["peak_in_flight"],
            "books": len(answer["bodies"]),
            "recovered": "; ".join(answer["recovered"]),
            "source": LIVE,
            "instead": "",
            "measured_at": measurements.now(),
            "arrivals": answer["order"],
        }  # fmt: skip


def _share(user_s: float, sys_s: float, wall_s: float) -> float:
    """Per cent of one processor that a job got, as `time` prints it."""
    return round(100 * (user_s + sys_s) / wall_s, 1)
