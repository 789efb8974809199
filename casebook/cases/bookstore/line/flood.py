"""How many packets a second a line carries, with no latency and no bandwidth of its own: one JSON
object in (standard input), one out.

In: {"way" (of ends.Ends), "bytes" (of a flood), "times"}.

Out: {"way", "floods": [{"took_s" (from the first byte to the last, at the near end), "packets" (in
both directions), "bytes" (of data, at the near end), "busiest" (as wire.Wire has it), "lost"
(packets), "line_cpu_s" (CPU seconds of this process, which is the line)}]}. Or {"failed": what went
wrong, in words}.

Each flood is one connection of TCP from the far end, which sends as fast as it can. Both ends are
this file too. Standard library only.
"""

import json
import os
import socket
import subprocess
import sys
import time

_HERE = os.path.abspath(__file__)
_CHUNK = 1 << 18


def send(address, size):
    """The far end: so many bytes for each connection."""
    bytes_ = bytes(int(size))
    with socket.create_server((address, 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            with listening.accept()[0] as peer:
                peer.sendall(bytes_)


def take(address, port):
    """The near end: a flood for each line of its input, until that ends."""
    for _ in sys.stdin:
        with socket.create_connection((address, int(port))) as peer:
            got, began = len(peer.recv(_CHUNK)), time.monotonic()
            while more := len(peer.recv(_CHUNK)):
                got += more
            took_s = time.monotonic() - began
        print(json.dumps({"bytes": got, "took_s": round(took_s, 6)}), flush=True)


def answer(asked):
    from ends import ADDRESSES, Ends

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with Ends(asked["way"]) as ends:
        far = [sys.executable, _HERE, "send", ADDRESSES["far"], str(asked["bytes"])]
        sender = ends.start("far", far, **pipes)
        port = sender.stdout.readline().strip()
        near = [sys.executable, _HERE, "take", ADDRESSES["far"], port]
        taker = ends.start("near", near, **pipes)
        try:
            floods = [flood(ends, taker) for _ in range(asked["times"])]
        finally:
            for each in (taker, sender):
                each.kill()
                each.wait()
        return {"way": ends.way, "floods": floods}


def flood(ends, taker):
    """One flood: what its taker saw, and what the line did for it."""
    from wire import Wire

    before, used_s = ends.near.dropped() + ends.far.dropped(), time.process_time()
    with Wire(ends.near, ends.far, {}, {}) as wire:
        taker.stdin.write("\n")
        taker.stdin.flush()
        seen = json.loads(taker.stdout.readline())
    used_s = time.process_time() - used_s
    lost = ends.near.dropped() + ends.far.dropped() - before
    packets = sum(way["packets"] for way in wire.counts().values())
    its = {"packets": packets, "busiest": wire.busiest(), "lost": lost}
    return dict(seen, line_cpu_s=round(used_s, 6), **its)


if __name__ == "__main__":
    ends_ = {"send": send, "take": take}
    if sys.argv[1:]:
        ends_[sys.argv[1]](*sys.argv[2:])
    else:
        from ends import NoLine

        try:
            print(json.dumps(answer(json.load(sys.stdin))))
        except (NoLine, OSError, ValueError) as error:
            print(json.dumps({"failed": str(error)}))
