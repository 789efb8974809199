"""A model of how long a visit takes over a line: round trips, flights of packets, and losses.

    seconds("six connections", n=13, body=27_000, trip_s=0.07)
    [seconds("streams, wide window", n=13, body=27_000, trip_s=0.07, loss=0.01, seed=i)
     for i in range(100)]

The model knows packets and no processor: what a visit takes beyond it is computing. Chapter 20
derives it, and the calculator of the last chapter of its part draws it: casebook/charts/
calculator.js says the same once more, and tests/charts/test_calculator.py holds both equal.

- TCP's handshake takes a round trip, TLS 1.3's another one, and then comes the list of books.
- A sender sends ten packets at first (RFC 6928), and with each round trip in which none is lost
  twice as many as before, as long as it has that many to send (RFC 5681, slow start).
- Over connections, the others open when the list is in; a book goes to whichever is free first.
- As streams, all books are one long answer; HTTP/2's window is a second limit.
- A packet that is lost, with others behind it, costs a round trip, and halves what may be sent at a
  time; from then on it grows by one packet a round trip (reno). The last one to leave costs a round
  trip more, for until then nothing is behind it. Behind the last of all nothing ever is, nor behind
  one that was alone. They wait for a timer: a round trip and 200 ms after the sender last heard
  something. Then it sends one packet, and later more. These 200 ms are Linux's, unless somebody
  sets another floor (tcp_rto_min_us); the probe of RFC 8985 waits as long where a single packet is
  out. Of TCP's handshake the timer is a second (RFC 6298).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

#: Bytes of data in a packet: 1,500, less the heads of IP and TCP.
PACKET = 1_448
#: So many packets leave at first.
FIRST = 10
#: What HTTP/2 and TLS put around a book: one of 109 bytes comes to 186 (over HTTP/1.1 to 268, and
#: still in one packet). And the list of books.
AROUND, LIST = 77, 27_000
#: HTTP/2's own window, in bytes, and how many streams the store allows at a time.
OWN_WINDOW, STREAMS = 65_535, 100
#: Seconds: Linux's shortest timer, and the timer of a handshake that was not answered.
SHORTEST_S, HANDSHAKE_S = 0.2, 1.0
#: So many lots are drawn where packets are lost.
DRAWS = 40

#: The ways to fetch: how many connections (0: one for each book), and the window of streams in
#: bytes (0: no streams).
WAYS = {
    "one connection": (1, 0),
    "six connections": (6, 0),
    "a connection for each": (0, 0),
    "streams, own window": (1, OWN_WINDOW),
    "streams, wide window": (1, 1 << 24),
}


def seconds(way: str, n: int, body: int, trip_s: float, loss: float = 0.0, seed: int = 0) -> float:
    """Compute how long a visit takes by the model.

    way: of WAYS. n: books, at least 1; body: bytes of each; trip_s: there and back. loss: the
    share of the server's packets that is lost, by a lot that the seed decides.
    """
    return _seconds(way, n, body, _Line(trip_s, loss, _lot(seed)))


def round_trips(way: str, n: int, body: int, tls: int = 1) -> float:
    """Compute how many round trips a visit takes if nothing is lost.

    tls: round trips of the handshake of TLS, 2 for a whole one of TLS 1.2.
    """
    return _seconds(way, n, body, _Line(1.0, 0.0, iter(())), tls)


def _seconds(way: str, n: int, body: int, line: "_Line", tls: int = 1) -> float:
    connections, window = WAYS[way]
    first = _Sender(line)
    began = first.shake_hands(tls) + first.send(LIST)
    size = body + AROUND
    if window:
        first.most = max(1, window // PACKET)
        waits = -(-n // STREAMS) * line.trip_s
        return began + max(waits, first.send(n * size))
    senders, free = [first], [began]
    for _ in range(min(connections or n, n) - 1):
        senders.append(_Sender(line))
        free.append(began + senders[-1].shake_hands(tls))
    for _ in range(n):
        index = free.index(min(free))
        free[index] += senders[index].send(size)
    return max(free)


def spread(
    way: str, n: int, body: int, trip_s: float, loss: float = 0.0
) -> tuple[float, float, float]:
    """Compute seconds by the model, for DRAWS lots: their median, and between what most lie.

    The ends are those of the middle eight tenths. Three times the same if nothing is lost.
    Parameters as for `seconds`.
    """
    draws = DRAWS if loss else 1
    walls = sorted(seconds(way, n, body, trip_s, loss, i) for i in range(draws))
    low, middle, high = (walls[int(share * (draws - 1))] for share in (0.1, 0.5, 0.9))
    return middle, low, high


@dataclass
class _Line:
    trip_s: float
    loss: float
    lot: Iterator[float]

    def drops(self) -> bool:
        """Draw whether the next packet is lost."""
        return self.loss > 0 and next(self.lot) < self.loss


@dataclass
class _Sender:
    """The server's end of one connection: how many packets it may send at a time."""

    line: _Line
    may: int = FIRST
    calm: int = field(default=1 << 30)  # packets up to which it doubles
    most: int = 1 << 30

    def shake_hands(self, tls: int) -> float:
        """Return the seconds of the handshakes of TCP and TLS."""
        took_s, timer_s = self.line.trip_s, HANDSHAKE_S
        while self.line.drops():
            took_s, timer_s = took_s + timer_s, 2 * timer_s
        for _ in range(tls):
            took_s += self.send(1)
        return took_s

    def send(self, size: int) -> float:
        """Send some bytes, and return the seconds until the sender knows that they came."""
        remaining, took_s = -(-size // PACKET), 0.0
        while remaining:
            packets = min(remaining, self.may, self.most)
            flight_s, arrived = self._flight(packets, is_last=packets == remaining)
            took_s, remaining = took_s + flight_s, remaining - arrived
        return took_s

    def _flight(self, packets: int, is_last: bool) -> tuple[float, int]:
        """Send some packets at once: seconds until the sender knows what came, and how many did.

        is_last: there is nothing to send behind them.
        """
        drops = [self.line.drops() for _ in range(packets)] if self.line.loss else []
        losses = sum(drops)
        if not losses:
            if self.may < self.calm:
                self.may = max(self.may, min(2 * packets, self.calm))
            elif packets >= self.may:
                self.may += 1
            return self.line.trip_s, packets
        self.calm = self.may = max(2, self.may // 2)
        took_s = self.line.trip_s
        if drops[-1] and losses < packets:
            took_s += self.line.trip_s
        if losses == packets or (drops[-1] and is_last):
            took_s, self.may = took_s + SHORTEST_S, 1
        return took_s, packets - losses


def _lot(seed: int) -> Iterator[float]:
    """Yield numbers from 0 to 1, the same in every language that has 32 bits: mulberry32."""
    state = (seed * 0x9E3779B9) & 0xFFFFFFFF
    while True:
        state = (state + 0x6D2B79F5) & 0xFFFFFFFF
        mixed = ((state ^ state >> 15) * (1 | state)) & 0xFFFFFFFF
        mixed = (mixed + (((mixed ^ mixed >> 7) * (61 | mixed)) & 0xFFFFFFFF)) & 0xFFFFFFFF ^ mixed
        yield ((mixed ^ mixed >> 14) & 0xFFFFFFFF) / 4294967296
