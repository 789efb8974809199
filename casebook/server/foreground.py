"""The server in the foreground of a terminal, for any client."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Protocol

from casebook.errors import ServerFailed
from casebook.server.process import start

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Stop(BaseException):
    """Not an Exception: nothing on the way may take it for an error."""


class Running(Protocol):
    """A server that was started: a context manager that stops it."""

    @property
    def url(self) -> str: ...
    @property
    def ca_file(self) -> Path | None: ...
    @property
    def pid(self) -> int | None: ...
    def wait(self) -> int: ...
    def __enter__(self) -> "Running": ...
    def __exit__(self, *_: object) -> None: ...


def serve(port: int = 0, scheme: str = "https") -> int:
    """The lab server until Ctrl-C: see `run`. Raises also what `start` raises."""
    return run(lambda: start(scheme, port))


def run(starting: Callable[[], Running]) -> int:
    """Serve until Ctrl-C, SIGTERM or the end of the terminal. Returns the exit code, 0.

    Prints one line of JSON when ready: `{"url": ..., "ca_file": ..., "pid": ...}`. Leaves no
    process and no file behind. Raises what `starting` raises, and ServerFailed when the server
    fails later.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        # Under nohup SIGHUP is ignored, and stays so. SIGINT is ignored in a shell's background
        # jobs, but whoever sends it to this very process means it.
        if number != signal.SIGHUP or before[number] is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        with starting() as server:
            ca_file = None if server.ca_file is None else str(server.ca_file)
            ready = {"url": server.url, "ca_file": ca_file, "pid": server.pid}
            print(json.dumps(ready), flush=True)
            code = server.wait()
        if code != 0:
            raise ServerFailed(f"the server ended unexpectedly, with exit code {code}")
    except _Stop:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _stop(number: int, frame: FrameType | None) -> None:
    for each in _SIGNALS:  # once is enough: the end must not be interrupted
        signal.signal(each, signal.SIG_IGN)
    raise _Stop
