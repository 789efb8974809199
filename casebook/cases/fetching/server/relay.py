"""A server from further away: a delay line in front of it, in a process of its own.

    with relay(store.url, latency_s=0.02) as url:
        ...                                     # any client: a round trip takes 0.04 s longer

What arrives at a time t leaves at t + latency_s, in its order, however much is on its way: unlike
a relay that sleeps and then passes on, this one lets nothing queue up. What it does not delay is
TCP's own handshake, which the kernel does.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from queue import SimpleQueue
from urllib.parse import urlsplit

from casebook.cases.fetching.server import limits, owner, process
from casebook.errors import UsageError

#: Seconds each way.
LONGEST_S = 1.0

#: What one connection may have on its way before it is read no further, in bytes.
_ROOM = 64 * 1024 * 1024

#: In place of data: its sender says no more; its sender is gone.
_END = b""
_GONE = None


@contextlib.contextmanager
def relay(url: str, latency_s: float) -> Iterator[str]:
    """Yield a URL behind which `url` is answered, from latency_s seconds further away.

    Each way takes latency_s seconds (0 to LONGEST_S) longer, so that a round trip takes twice as
    much. For a crowd of connections at a time (fetching.server.limits.CROWD). All connections, and
    the relay's process, end with the block.

    Raises UsageError for a time that is out of range or a URL without a port, ServerFailed if the
    relay does not start. A connection that the server refuses is reset.
    """
    if not 0 <= latency_s <= LONGEST_S:
        raise UsageError(f"the latency is {latency_s:g} s; choose 0 to {LONGEST_S:g}")
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:  # the number is not that of a port
        host = port = None
    if not (host and port):
        raise UsageError(f"a relay needs a URL with a port, not {url!r}")
    target = json.dumps([host, port, latency_s])
    relay_process, ready = process.begin("casebook.cases.fetching.server.relay", target)
    try:
        yield f"{parts.scheme}://127.0.0.1:{ready['port']}"
    finally:
        process.end(relay_process)


class _Line:
    """The delay line. Since each piece is held equally long, they leave in the order of arrival.

    A thread keeps the time: the loop's own timers are a millisecond late.
    """

    def __init__(self, latency_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._latency_s = latency_s
        self._held: deque[tuple[float, _Side, bytes | None]] = deque()
        self._dues: SimpleQueue[float] = SimpleQueue()
        threading.Thread(target=self._keep_time, daemon=True).start()

    def hold(self, side: "_Side", piece: bytes | None) -> None:
        """Keep a piece that came in on a side, for the other side."""
        if not self._latency_s:
            side.peer.send(piece)
            return
        due = self._loop.time() + self._latency_s
        self._held.append((due, side, piece))
        side.note_held(len(piece or b""))
        self._dues.put(due)

    def _keep_time(self) -> None:
        released = 0.0  # all that was due by then is on its way
        while True:
            due = self._dues.get()
            if due <= released:
                continue
            time.sleep(max(0.0, due - time.monotonic()))
            released = time.monotonic()
            self._loop.call_soon_threadsafe(self._release, released)

    def _release(self, deadline: float) -> None:
        while self._held and self._held[0][0] <= deadline:
            _, side, piece = self._held.popleft()
            side.peer.send(piece)
            side.note_held(-len(piece or b""))


class _Side(asyncio.Protocol):
    """One of the two connections of a client through the relay: its own, or the server's."""

    peer: "_Side"
    transport: asyncio.Transport

    def __init__(self, line: _Line) -> None:
        self._line = line
        self.is_connected = False
        self._bytes = 0
        self._eof_sent = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.is_connected = transport, True

    def data_received(self, data: bytes) -> None:
        self._line.hold(self, data)

    def eof_received(self) -> bool:
        self._line.hold(self, _END)
        return True  # the other way stays open

    def connection_lost(self, _: Exception | None) -> None:
        self._line.hold(self, _GONE)

    def note_held(self, change: int) -> None:
        """Note how many bytes more, or fewer, of what came in here are on their way."""
        self._bytes += change
        self._go_on()

    def send(self, piece: bytes | None) -> None:
        if self.transport.is_closing():
            return
        if piece is _GONE and self._eof_sent:
            self.transport.close()
        elif piece is _GONE:
            self.transport.abort()
        elif piece:
            self.transport.write(piece)
            self.peer._go_on()
        else:
            self._eof_sent = True
            with contextlib.suppress(OSError):  # the peer has gone before us
                self.transport.write_eof()
            if self.peer._eof_sent:
                self.transport.close()
                self.peer.transport.close()

    def resume_writing(self) -> None:
        self.peer._go_on()

    def _go_on(self) -> None:
        """Read on here if there is room for what comes, on the line and beyond it."""
        if self.transport.is_closing():
            return
        waiting = self.peer.transport.get_write_buffer_size()
        if self._bytes + waiting < _ROOM:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()


class _Near(_Side):
    """A client's connection: asks for the server's as soon as it is there."""

    def __init__(self, line: _Line, host: str, port: int) -> None:
        super().__init__(line)
        self._address = (host, port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.pause_reading()
        self.peer = _Side(self._line)
        self.peer.peer = self
        self._connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: self.peer, *self._address)
        except OSError:
            self.transport.abort()
        else:
            self._go_on()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.peer.is_connected:  # or not yet
            self._connecting.cancel()
        else:
            super().connection_lost(error)


async def _serve(host: str, port: int, latency_s: float) -> None:
    loop, line = asyncio.get_running_loop(), _Line(latency_s)
    listening = await loop.create_server(
        lambda: _Near(line, host, port), "127.0.0.1", 0, backlog=limits.BACKLOG
    )
    print(json.dumps({"port": listening.sockets[0].getsockname()[1]}), flush=True)
    await listening.serve_forever()


def main(target: str) -> None:
    """Relay until the owner, which holds the other end of standard input, is gone."""
    owner.follow(lambda: os._exit(0))
    limits.raise_open_files()
    asyncio.run(_serve(*json.loads(target)))


if __name__ == "__main__":
    main(sys.argv[1])
