"""What carries packets from one end to the other: late, at a bandwidth, through a queue, or not.

    with Wire(ends.near, ends.far, there={"latency_s": 0.035}, back={"latency_s": 0.035}) as wire:
        ...
    wire.counts(), wire.packets

A direction, "there" (from near to far) or "back", is a dictionary:

latency_s   seconds until a packet that arrives is passed on
mbit        bandwidth in millions of bits a second (0: no limit)
queue       bytes that wait for their turn at most, where there is a bandwidth; more are dropped
lose        which packets are dropped: {} none; {"each": n} each n-th; {"share": 0.01, "seed": 1}
            at random; {"connection": 0, "byte": b, "count": 1} of the connection with that number,
            in the order of their beginning, the first packet with this byte of its data, and as
            many with data after it as make a burst of count; once

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

#: Packets are counted in windows of WINDOW_S seconds. In none may more come than this share of what
#: the line carries. Beyond it packets wait for their turn with the kernel, where nobody sees how
#: late they are.
WINDOW_S, SHARE = 0.05, 0.5

_TCP, _UDP = 6, 17
_SYN = 0x02


class TooMuchError(Exception):
    """The line could not keep up, so that what was timed over it says nothing.

    Packets were passed on much later than promised, the kernel had no room for them, or they came
    faster than the line carries them.
    """


class Wire:
    """Carries packets in a thread from __enter__ to __exit__.

    `packets`: those seen so far, each {"t_s" (when it arrived here, since the beginning),
    "direction", "connection" (the number of its TCP connection or of its pair of UDP ports, from
    0), "seq" (of its first byte of data, the connection's first being 0), "bytes" (of data),
    "is_again" (all of its data had been seen before), "dropped"}. A datagram of UDP has no
    number of its own: its seq is how many bytes of data came before it, and nobody can see whether
    it brings something again.

    Raises ValueError for conditions that are out of range.
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
        self._stop_reader, self._stop_writer = os.pipe()
        self._thread = threading.Thread(target=self._carry, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        os.write(self._stop_writer, b"x")
        self._thread.join()
        os.close(self._stop_writer)
        os.close(self._stop_reader)

    def counts(self):
        """Return what each direction carried.

        {direction: {"packets", "bytes" (of IP), "dropped", "queue_dropped" (of these, for want of
        room), "again" (packets with data that came a second time), "by_connection": [{"packets",
        "bytes", "dropped", "again"}]}}
        """
        return {direction.name: direction.counts() for direction in self._ways}

    def kept_up(self, carries):
        """Return how late packets were, and how many came in the busiest window.

        {"late_ms": by how much half of all packets were later than promised, "most_late_ms",
        "busiest": packets a second, of both directions, in the busiest window}

        carries: how many packets a second the line carries on this machine (flood.py). Raises
        TooMuchError.
        """
        late = [seconds for direction in self._ways for seconds in direction.late_s]
        median, maximum = (statistics.median(late), max(late)) if late else (0.0, 0.0)
        drops = sum(end.dropped() for end in self._ends) - self._dropped_before
        if drops:
            raise TooMuchError(f"the kernel had no room for {drops} packets")
        allowed = 0.002 + 0.2 * max(direction.latency_s for direction in self._ways)
        if median > allowed:
            raise TooMuchError(
                f"half of the packets were more than {1000 * median:.1f} ms late, and "
                f"{1000 * allowed:.1f} ms is what we allow"
            )
        busiest = self.busiest()
        if busiest > SHARE * carries:
            raise TooMuchError(
                f"for {1000 * WINDOW_S:.0f} ms packets came at {busiest:,} a second; it carries "
                f"{carries:,.0f} here, and {SHARE:.0%} of them is what we allow"
            )
        late = {"late_ms": round(1000 * median, 3), "most_late_ms": round(1000 * maximum, 3)}
        return {**late, "busiest": busiest}

    def busiest(self):
        """Return packets a second, of both directions, in the busiest window."""
        return round(max(self.windows.values(), default=0) / WINDOW_S)

    def number(self, key, is_new):
        """Return the number of a connection, a new one if it is new; None if it is not known."""
        if is_new:
            return self._connections.setdefault(key, len(self._connections))
        return self._connections.get(key)

    def _carry(self):
        with contextlib.suppress(OSError, AttributeError):
            # A line that waits for the processor is a longer line: first come, where we may.
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        sources = {direction.source.fileno(): direction for direction in self._ways}
        while True:
            dues = [direction.waiting[0][0] for direction in self._ways if direction.waiting]
            wait_s = max(0.0, min(dues) - time.monotonic()) if dues else None
            ready, _, _ = select.select([*sources, self._stop_reader], [], [], wait_s)
            if self._stop_reader in ready:
                return
            for fd in ready:
                sources[fd].receive()
            for direction in self._ways:
                direction.pass_on()


class _Direction:
    def __init__(self, name, source, target, conditions, began, wire):
        conditions = {"latency_s": 0.0, "mbit": 0, "queue": 256 * 1024, "lose": {}, **conditions}
        if not 0 <= conditions["latency_s"] <= LONGEST_S:
            raise ValueError("the latency is {latency_s:g} s; choose 0 to 1".format(**conditions))
        if not 0 <= conditions["mbit"] <= MOST_MBIT:
            raise ValueError(
                "the bandwidth is {:g} Mbit/s; choose up to {}, which this line carries, or 0 for "
                "no limit".format(conditions["mbit"], MOST_MBIT)
            )
        self.name, self.source, self.target = name, source, target
        self.latency_s, self._bytes_s = conditions["latency_s"], conditions["mbit"] * 1e6 / 8
        self._room, self._loses = conditions["queue"], _losing(conditions["lose"])
        self._began, self._wire, self._free_at = began, wire, 0.0
        self._all, self._queue_dropped = collections.Counter(), 0
        self._by_connection = collections.defaultdict(collections.Counter)
        self._first, self._seen = {}, {}
        self.waiting, self.late_s = collections.deque(), []

    def receive(self):
        """Record what has arrived, and put it in the queue or drop it."""
        for _ in range(64):
            packet = self.source.read()
            if packet is None:
                return
            if packet[:1] < b"\x40" or packet[:1] > b"\x4f":  # not IPv4
                continue
            now_s = time.monotonic()
            self._wire.windows[int(now_s / WINDOW_S)] += 1
            record = self._record(packet, now_s)
            is_lost = self._loses(record)
            due = max(now_s, self._free_at)
            if self._bytes_s and not is_lost:
                is_lost = (due - now_s) * self._bytes_s + len(packet) > self._room
                self._queue_dropped += is_lost
            record["dropped"] = bool(is_lost)
            for counter in (self._all, self._by_connection[record["connection"]]):
                counter["packets"] += 1
                counter["bytes"] += len(packet)
                counter["dropped"] += record["dropped"]
                counter["again"] += record["is_again"]
            if len(self._wire.packets) < RECORDED:
                self._wire.packets.append(record)
            if is_lost:
                continue
            if self._bytes_s:
                self._free_at = due = due + len(packet) / self._bytes_s
            self.waiting.append((due + self.latency_s, packet))

    def pass_on(self):
        """Pass on all that is due."""
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
                {name: self._by_connection[connection][name] for name in names}
                for connection in sorted(
                    number for number in self._by_connection if number is not None
                )
            ],
        }

    def _record(self, packet, now_s):
        head, protocol = 4 * (packet[0] & 15), packet[9]
        record = {"t_s": round(now_s - self._began, 6), "direction": self.name, "connection": None}
        record.update(seq=None, bytes=0, is_again=False)
        if protocol not in (_TCP, _UDP):
            return record
        ports = int.from_bytes(packet[head : head + 2], "big"), packet[head + 2 : head + 4]
        ports = ports[0], int.from_bytes(ports[1], "big")
        key = (protocol, *(ports if self.name == THERE else ports[::-1]))
        if protocol == _UDP:
            is_new = self.name == THERE  # and never what a store still says to who has gone
            record.update(connection=self._wire.number(key, is_new), bytes=len(packet) - head - 8)
            record["seq"] = self._seen.get(key, 0)
            self._seen[key] = record["seq"] + record["bytes"]
            return record
        flags, began = packet[head + 13], int.from_bytes(packet[head + 4 : head + 8], "big")
        # What began before this wire, and is only being closed, has no number.
        is_new = bool(flags & _SYN)
        record["connection"] = self._wire.number(key, is_new and self.name == THERE)
        if is_new:
            self._first[key] = began + 1
            return record
        size = len(packet) - head - 4 * (packet[head + 12] >> 4)
        seq = (began - self._first.get(key, began)) % (1 << 32)
        end, highest = seq + size, self._seen.get(key, 0)
        self._seen[key] = max(end, highest)
        return {**record, "seq": seq, "bytes": size, "is_again": bool(size) and end <= highest}


def _losing(lose):
    """Return a function that says whether a packet is dropped."""
    if not lose:
        return lambda _: False
    if "each" in lose:
        numbers = iter(range(1, 1 << 62))
        return lambda _: next(numbers) % lose["each"] == 0
    if "share" in lose:
        lot = random.Random(lose.get("seed", 1))
        return lambda _: lot.random() < lose["share"]
    remaining = [lose.get("count", 1)]

    def named(record):
        if record["connection"] != lose["connection"] or not record["bytes"] or not remaining[0]:
            return False
        if record["seq"] + record["bytes"] <= lose["byte"]:
            return False
        remaining[0] -= 1
        return True

    return named
