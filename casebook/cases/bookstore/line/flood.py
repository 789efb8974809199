"""Measure how many packets a second a line carries, with no latency and no bandwidth of its own.

One JSON object in (standard input), one out. In: {"way" (of ends.Ends), "bytes" (of a flood),
"times"}.

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
    """Send that many bytes on each connection: the far end."""
    bytes_ = bytes(int(size))
    with socket.create_server((address, 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            with listening.accept()[0] as peer:
                peer.sendall(bytes_)


def receive(address, port):
    """Receive a flood for each line of its input, until that ends: the near end."""
    for _ in sys.stdin:
        with socket.create_connection((address, int(port))) as peer:
            received, began = len(peer.recv(_CHUNK)), time.monotonic()
            while size := len(peer.recv(_CHUNK)):
                received += size
            took_s = time.monotonic() - began
        print(json.dumps({"bytes": received, "took_s": round(took_s, 6)}), flush=True)


def answer(parameters):
    """Open the line and both ends, and make the floods."""
    from ends import ADDRESSES, Ends

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with Ends(parameters["way"]) as line:
        far = [sys.executable, _HERE, "send", ADDRESSES["far"], str(parameters["bytes"])]
        sender = line.start("far", far, **pipes)
        port = sender.stdout.readline().strip()
        near = [sys.executable, _HERE, "receive", ADDRESSES["far"], port]
        receiver = line.start("near", near, **pipes)
        try:
            floods = [flood(line, receiver) for _ in range(parameters["times"])]
        finally:
            for process in (receiver, sender):
                process.kill()
                process.wait()
        return {"way": line.way, "floods": floods}


def flood(line, receiver):
    """Make one flood, and return what its receiver saw and what the line did for it."""
    from wire import Wire

    drops_before, used_s = line.near.dropped() + line.far.dropped(), time.process_time()
    with Wire(line.near, line.far, {}, {}) as wire:
        receiver.stdin.write("\n")
        receiver.stdin.flush()
        report = json.loads(receiver.stdout.readline())
    used_s = time.process_time() - used_s
    drops = line.near.dropped() + line.far.dropped() - drops_before
    packets = sum(direction["packets"] for direction in wire.counts().values())
    figures = {"packets": packets, "busiest": wire.busiest(), "lost": drops}
    return dict(report, line_cpu_s=round(used_s, 6), **figures)


if __name__ == "__main__":
    roles = {"send": send, "receive": receive}
    if sys.argv[1:]:
        roles[sys.argv[1]](*sys.argv[2:])
    else:
        from ends import NoLineError

        try:
            print(json.dumps(answer(json.load(sys.stdin))))
        except (NoLineError, OSError, ValueError) as error:
            print(json.dumps({"failed": str(error)}))
