"""A server from further away: a delay line in front of it, in a process of its own.

    with relay(store.url, latency_s=0.02) as url:
        ...                                     # any client: a round trip takes 0.04 s longer

What arrives at a time t leaves at t + latency_s, in its order, however much is on its way: unlike
a relay that sleeps and then passes on, this one lets nothing queue up. What it does not delay is
TCP's own handshake, which the kernel does.

It can also hold up one connection, as the loss of a packet does: see `Held`.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from queue import SimpleQueue
from urllib.parse import urlsplit

from casebook.errors import UsageError
from casebook.server import limits, owner, process

#: Seconds each way.
LONGEST_S = 1.0

#: What is read at a time, in bytes at most, and how many such pieces one way of a connection may
#: have before it is read no further.
_PIECE = 1 << 16
_ROOM = 4_096

#: In place of data: its sender is gone. One who has said all leaves an empty piece.
_GONE = None


@dataclass(frozen=True)
class Held:
    """What is held up once: of the first connection, all that the server sends after so many
    bytes, for so many seconds (0 to LONGEST_S). Then it goes on, in its order."""

    after_bytes: int
    for_s: float


@contextlib.contextmanager
def relay(url: str, latency_s: float, held: Held | None = None) -> Iterator[str]:
    """A URL behind which `url` is answered, from latency_s seconds further away.

    Each way takes latency_s seconds (0 to LONGEST_S) longer, so that a round trip takes twice as
    much. For a crowd of connections at a time (casebook.server.limits.CROWD). held: what is held
    up once, None for nothing. All connections, and the relay's process, end with the block.

    Raises UsageError for a time that is out of range or a URL without a port, ServerFailed when
    the relay does not start. A connection that the server refuses is reset.
    """
    for what, seconds in (("latency", latency_s), ("hold", held.for_s if held else 0)):
        if not 0 <= seconds <= LONGEST_S:
            raise UsageError(f"the {what} is {seconds:g} s; choose 0 to {LONGEST_S:g}")
    where = urlsplit(url)
    try:
        host, port = where.hostname, where.port
    except ValueError:  # the number is none of a port
        host = port = None
    if not (host and port):
        raise UsageError(f"a relay needs a URL with a port, not {url!r}")
    asked = [host, port, latency_s, held and astuple(held)]
    running, ready = process.begin("casebook.server.relay", json.dumps(asked))
    try:
        yield f"{where.scheme}://127.0.0.1:{ready['port']}"
    finally:
        process.end(running)


class _Latency:
    """Seconds that are over for one piece after the other.

    A thread keeps the time: the loop's own timers are a millisecond late.
    """

    def __init__(self, latency_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._latency_s = latency_s
        self._begun: SimpleQueue[tuple[float, asyncio.Future[None]]] = SimpleQueue()
        threading.Thread(target=self._keep_time, daemon=True).start()

    def begin(self) -> asyncio.Future[None]:
        """Done when the seconds that begin now are over."""
        over = self._loop.create_future()
        if self._latency_s:
            self._begun.put((time.monotonic() + self._latency_s, over))
        else:
            over.set_result(None)
        return over

    def _keep_time(self) -> None:
        while True:
            due, over = self._begun.get()
            time.sleep(max(0.0, due - time.monotonic()))
            self._loop.call_soon_threadsafe(over.set_result, None)


async def _read(reader: asyncio.StreamReader, line: asyncio.Queue, latency: _Latency) -> None:
    """Put what comes in on the line, with its latency, up to the empty piece or _GONE."""
    piece: bytes | None = b"none yet"
    while piece:
        try:
            piece = await reader.read(_PIECE)
        except OSError:
            piece = _GONE
        await line.put((latency.begin(), piece))


async def _pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    latency: _Latency,
    held: Held | None = None,
) -> None:
    """One way of a connection, to its end."""
    line: asyncio.Queue[tuple[asyncio.Future, bytes | None]] = asyncio.Queue(_ROOM)
    reading = asyncio.create_task(_read(reader, line, latency))
    passed, piece = 0, None
    while True:
        over, piece = await line.get()
        await over
        if not piece:
            break
        passed += len(piece)
        if held and passed > held.after_bytes:
            await asyncio.sleep(held.for_s)
            held = None
        if not writer.is_closing():
            writer.write(piece)
            with contextlib.suppress(OSError):  # the peer has gone: its other way ends too
                await writer.drain()
    await reading
    if piece is _GONE:
        writer.transport.abort()
    else:
        with contextlib.suppress(OSError):  # the peer has gone before us
            writer.write_eof()


async def _serve(host: str, port: int, latency_s: float, held: Held | None) -> None:
    latency, holds = _Latency(latency_s), iter([held])
    connections = set()  # the loop itself forgets a task that waits

    async def relay_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hold = next(holds, None)
        try:
            far_reader, far_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.transport.abort()
            return
        connections.add(asyncio.current_task())
        await asyncio.gather(
            _pass_on(reader, far_writer, latency), _pass_on(far_reader, writer, latency, hold)
        )
        for each in (writer, far_writer):
            each.close()
        connections.discard(asyncio.current_task())

    listening = await asyncio.start_server(relay_one, "127.0.0.1", 0, backlog=limits.BACKLOG)
    print(json.dumps({"port": listening.sockets[0].getsockname()[1]}), flush=True)
    await listening.serve_forever()


def main(asked: str) -> None:
    """Relay until the owner, which holds the other end of standard input, is gone."""
    owner.follow(lambda: os._exit(0))
    limits.raise_open_files()
    host, port, latency_s, held = json.loads(asked)
    asyncio.run(_serve(host, port, latency_s, held and Held(*held)))


if __name__ == "__main__":
    main(sys.argv[1])
