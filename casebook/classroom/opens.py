"""How often anybody opens a file, told by the system: nobody inside a program can take it back.

Linux says so (inotify). Two openings that nobody has read of yet may be told as one, so a number
here is a lower bound; elsewhere there is none.
"""

import contextlib
import ctypes
import os
import select
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_ACCESS, _CLOSE, _OPEN = 0x1, 0x10, 0x20
_HEAD = struct.Struct("iIII")


class Opens:
    """`count`: the openings seen until now; None where the system does not tell."""

    count: int | None = None


@contextlib.contextmanager
def watch(path: Path) -> Iterator[Opens]:
    """Count how often a file is opened while the block runs."""
    counter = Opens()
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    descriptor = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK) if libc else -1
    if not libc or descriptor < 0:
        yield counter
        return
    try:
        # Events between two openings keep them apart.
        if libc.inotify_add_watch(descriptor, os.fsencode(path), _ACCESS | _CLOSE | _OPEN) < 0:
            yield counter
            return
        counter.count = 0
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                if select.select([descriptor], [], [], 0.05)[0]:
                    _read_events(descriptor, counter)

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        yield counter
        over.set()
        listener.join()
        _read_events(descriptor, counter)
    finally:
        os.close(descriptor)


def _read_events(descriptor: int, counter: Opens) -> None:
    try:
        data = os.read(descriptor, 65536)
    except BlockingIOError:
        return
    while data:
        _, mask, _, length = _HEAD.unpack_from(data)
        data = data[_HEAD.size + length :]
        counter.count = (counter.count or 0) + bool(mask & _OPEN)
