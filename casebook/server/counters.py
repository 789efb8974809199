"""What the lab server saw since its counters were last set to zero.

Reading must not disturb what is read. So a connection that asks for nothing but counters is not
counted at all, and a reset starts a new *epoch* instead of zeroing numbers in place: a request
that was in flight at the reset is finished in the epoch in which it began, and can neither raise
the new epoch's peak nor push its number in flight below zero.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Epoch:
    """The numbers between two resets."""

    connections: int = 0
    handshakes: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    protocols: Counter[str] = field(default_factory=Counter)

    def report(self) -> dict:
        """What casebook.server.Server.counters gives."""
        return {
            "connections": self.connections,
            "handshakes": self.handshakes,
            "requests": sum(self.protocols.values()),
            "peak_in_flight": self.peak_in_flight,
            "protocols": dict(self.protocols),
        }


class Connection:
    """One connection, accepted in an epoch, and what it has been counted as so far."""

    __slots__ = ("_asked", "_counted_in", "_shaken")

    def __init__(self, epoch: Epoch) -> None:
        self._counted_in: Epoch | None = epoch
        epoch.connections += 1
        self._shaken = False
        self._asked = False

    def handshake(self) -> None:
        """Its TLS handshake is complete. It counts in the epoch of the connection, not later."""
        self._shaken = True
        if self._counted_in is not None:
            self._counted_in.handshakes += 1

    def control(self) -> None:
        """It asks for counters. If it never asked for anything else, it is none of the clients."""
        epoch = self._counted_in
        if epoch is not None and not self._asked:
            epoch.connections -= 1
            epoch.handshakes -= self._shaken
            self._counted_in = None

    @contextmanager
    def request(self, epoch: Epoch, protocol: str) -> Iterator[None]:
        """A request, parsed in an epoch, in flight until its answer is known (and not yet written):
        a client that asks again when it has read the last answer is never in flight twice."""
        self._asked = True
        if self._counted_in is None:  # it read counters first: it is a client after all
            self._counted_in = epoch
            epoch.connections += 1
            epoch.handshakes += self._shaken
        epoch.protocols[protocol] += 1
        epoch.in_flight += 1
        epoch.peak_in_flight = max(epoch.peak_in_flight, epoch.in_flight)
        try:
            yield
        finally:
            epoch.in_flight -= 1
