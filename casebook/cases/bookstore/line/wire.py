"""What carries packets from one end to the other: late, at a bandwidth, through a queue, or not.

    with Wire(ends.near, ends.far, there={"latency_s": 0.035}, back={"latency_s": 0.035}) as wire:
        ...
    wire.counts(), wire.packets

A direction, "there" (from near to far) or "back", is a dictionary:

latency_s   seconds until a packet that arrives is passed on
mbit        bandwidth in millions of bits a second (0: no limit)
queue       bytes that wait for their turn at most, where there is a bandwidth; more are dropped
lose        which packets are dropped: {} none; {"each": n} each n-th; {"share": 0.01, "seed": 1}
            by lot; {"connection": 0, "byte": b, "count": 1} of the connection with that number, in
            the order of their beginning, the first packet with this byte of its data, and as many
            with data after it as make a burst of count; once

Standard library only.
"""

import collections
import contextlib
import os
import random
import select
import statistics
import threading
import time

THERE, BACK = "there", "back"

#: Bandwidths that can be asked for, in Mbit/s. How many packets a second the line carries on a
#: machine, `flood` measures there.
MOST_MBIT = 100

#: Seconds each way, at most.
LONGEST_S = 1.0

#: So many packets are recorded.
RECORDED = 20_000

#: Packets are counted by windows of so many seconds. In none may more come than this share of what
#: the line carries. Beyond it packets wait for their turn with the kernel, where nobody sees how
#: late they are.
WINDOW_S, SHARE = 0.05, 0.5

_TCP, _UDP = 6, 17
_SYN = 0x02


class TooMuch(Exception):
    """The line could not keep up: packets were passed on much later than promised, the kernel had
    no room for them, or they came faster than the line carries them. What was timed over it says
    nothing."""


class Wire:
    """Carries packets in a thread from __enter__ to __exit__. Raises ValueError for conditions
    that are out of range.

    `packets`: those seen so far, each {"t_s" (when it arrived here, since the beginning),
    "direction", "connection" (the number of its TCP connection or of its pair of UDP ports, from
    0), "seq" (of its first byte of data, the connection's first being 0), "bytes" (of data),
    "is_again" (all of its data had been seen before), "dropped"}. A datagram of UDP has no
    number of its own: its seq is how many bytes of data came before it, and nobody can see whether
    it brings something again.
    """

    def __init__(self, near, far, there, back):
        began = time.monotonic()
        self.packets = []
        self.windows = collections.Counter()
        self._connections = {}
        self._ways = [
            _Direction(THERE, near, far, there, began, self),
            _Direction(BACK, far, near, back, began, self),
        ]
        self._ends, self._dropped_before = (near, far), near.dropped() + far.dropped()
        self._said, self._say = os.pipe()
        self._thread = threading.Thread(target=self._carry, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        os.write(self._say, b"x")
        self._thread.join()
        os.close(self._say)
        os.close(self._said)

    def counts(self):
        """{direction: {"packets", "bytes" (of IP), "dropped", "queue_dropped" (of these, for want
        of room), "again" (packets with data that came a second time), "by_connection":
        [{"packets", "bytes", "dropped", "again"}]}}"""
        return {way.name: way.counts() for way in self._ways}

    def kept_up(self, carries):
        """{"late_ms": by how much half of all packets were later than promised, "most_late_ms",
        "busiest": packets a second, of both directions, in the busiest window}. Raises TooMuch.

        carries: how many packets a second the line carries on this machine (flood.py)."""
        late = [each for way in self._ways for each in way.late_s]
        median, most = (statistics.median(late), max(late)) if late else (0.0, 0.0)
        lost = sum(end.dropped() for end in self._ends) - self._dropped_before
        if lost:
            raise TooMuch(f"the kernel had no room for {lost} packets")
        allowed = 0.002 + 0.2 * max(way.latency_s for way in self._ways)
        if median > allowed:
            raise TooMuch(
                f"half of the packets were more than {1000 * median:.1f} ms late, and "
                f"{1000 * allowed:.1f} ms is what we allow"
            )
        busiest = self.busiest()
        if busiest > SHARE * carries:
            raise TooMuch(
                f"for {1000 * WINDOW_S:.0f} ms packets came at {busiest:,} a second; it carries "
                f"{carries:,.0f} here, and {SHARE:.0%} of them is what we allow"
            )
        late = {"late_ms": round(1000 * median, 3), "most_late_ms": round(1000 * most, 3)}
        return {**late, "busiest": busiest}

    def busiest(self):
        """Packets a second, of both directions, in the busiest window."""
        return round(max(self.windows.values(), default=0) / WINDOW_S)

    def number(self, key, begins):
        """The number of a connection, a new one where it begins; None for one that is not known."""
        if begins:
            return self._connections.setdefault(key, len(self._connections))
        return self._connections.get(key)

    def _carry(self):
        with contextlib.suppress(OSError, AttributeError):
            # A line that waits for the processor is a longer line: first come, where we may.
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        sources = {way.source.fileno(): way for way in self._ways}
        while True:
            dues = [way.waiting[0][0] for way in self._ways if way.waiting]
            wait_s = max(0.0, min(dues) - time.monotonic()) if dues else None
            ready, _, _ = select.select([*sources, self._said], [], [], wait_s)
            if self._said in ready:
                return
            for fd in ready:
                sources[fd].take()
            for way in self._ways:
                way.pass_on()


class _Direction:
    def __init__(self, name, source, target, asked, began, wire):
        asked = {"latency_s": 0.0, "mbit": 0, "queue": 256 * 1024, "lose": {}, **asked}
        if not 0 <= asked["latency_s"] <= LONGEST_S:
            raise ValueError("the latency is {latency_s:g} s; choose 0 to 1".format(**asked))
        if not 0 <= asked["mbit"] <= MOST_MBIT:
            raise ValueError(
                "the bandwidth is {:g} Mbit/s; choose up to {}, which this line carries, or 0 for "
                "no limit".format(asked["mbit"], MOST_MBIT)
            )
        self.name, self.source, self.target = name, source, target
        self.latency_s, self._bytes_s = asked["latency_s"], asked["mbit"] * 1e6 / 8
        self._room, self._loses = asked["queue"], _losing(asked["lose"])
        self._began, self._wire, self._free_at = began, wire, 0.0
        self._all, self._queue_dropped = collections.Counter(), 0
        self._each = collections.defaultdict(collections.Counter)
        self._first, self._seen = {}, {}
        self.waiting, self.late_s = collections.deque(), []

    def take(self):
        """What has arrived: noted, and put in the queue or dropped."""
        for _ in range(64):
            packet = self.source.read()
            if packet is None:
                return
            if packet[:1] < b"\x40" or packet[:1] > b"\x4f":  # not IPv4
                continue
            now = time.monotonic()
            self._wire.windows[int(now / WINDOW_S)] += 1
            seen = self._look(packet, now)
            lost = self._loses(seen)
            due = max(now, self._free_at)
            if self._bytes_s and not lost:
                lost = (due - now) * self._bytes_s + len(packet) > self._room
                self._queue_dropped += lost
            seen["dropped"] = bool(lost)
            for counter in (self._all, self._each[seen["connection"]]):
                counter["packets"] += 1
                counter["bytes"] += len(packet)
                counter["dropped"] += seen["dropped"]
                counter["again"] += seen["is_again"]
            if len(self._wire.packets) < RECORDED:
                self._wire.packets.append(seen)
            if lost:
                continue
            if self._bytes_s:
                self._free_at = due = due + len(packet) / self._bytes_s
            self.waiting.append((due + self.latency_s, packet))

    def pass_on(self):
        """All that is due."""
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            due, packet = self.waiting.popleft()
            self.late_s.append(time.monotonic() - due)
            self.target.write(packet)

    def counts(self):
        names = ("packets", "bytes", "dropped", "again")
        return {
            **{name: self._all[name] for name in names},
            "queue_dropped": self._queue_dropped,
            "by_connection": [
                {name: self._each[connection][name] for name in names}
                for connection in sorted(each for each in self._each if each is not None)
            ],
        }

    def _look(self, packet, now):
        head, protocol = 4 * (packet[0] & 15), packet[9]
        seen = {"t_s": round(now - self._began, 6), "direction": self.name, "connection": None}
        seen.update(seq=None, bytes=0, is_again=False)
        if protocol not in (_TCP, _UDP):
            return seen
        ports = int.from_bytes(packet[head : head + 2], "big"), packet[head + 2 : head + 4]
        ports = ports[0], int.from_bytes(ports[1], "big")
        key = (protocol, *(ports if self.name == THERE else ports[::-1]))
        if protocol == _UDP:
            begins = self.name == THERE  # and never what a store still says to who has gone
            seen.update(connection=self._wire.number(key, begins), bytes=len(packet) - head - 8)
            seen["seq"] = self._seen.get(key, 0)
            self._seen[key] = seen["seq"] + seen["bytes"]
            return seen
        flags, began = packet[head + 13], int.from_bytes(packet[head + 4 : head + 8], "big")
        # What began before this wire, and is only being closed, has no number.
        begins = bool(flags & _SYN)
        seen["connection"] = self._wire.number(key, begins and self.name == THERE)
        if begins:
            self._first[key] = began + 1
            return seen
        size = len(packet) - head - 4 * (packet[head + 12] >> 4)
        seq = (began - self._first.get(key, began)) % (1 << 32)
        ends, known = seq + size, self._seen.get(key, 0)
        self._seen[key] = max(ends, known)
        return {**seen, "seq": seq, "bytes": size, "is_again": bool(size) and ends <= known}


def _losing(asked):
    """From what was said of loss to a function: whether this packet is dropped."""
    if not asked:
        return lambda seen: False
    if "each" in asked:
        numbers = iter(range(1, 1 << 62))
        return lambda seen: next(numbers) % asked["each"] == 0
    if "share" in asked:
        lot = random.Random(asked.get("seed", 1))
        return lambda seen: lot.random() < asked["share"]
    left = [asked.get("count", 1)]

    def named(seen):
        if seen["connection"] != asked["connection"] or not seen["bytes"] or not left[0]:
            return False
        if seen["seq"] + seen["bytes"] <= asked["byte"]:
            return False
        left[0] -= 1
        return True

    return named
