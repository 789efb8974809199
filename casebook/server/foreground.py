"""The server in the foreground of a terminal, for any client."""

import contextlib
import json
import signal
from collections.abc import Callable
from types import FrameType

from casebook.errors import ServerFailed
from casebook.server.process import Server, start

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Stop(BaseException):
    """Not an Exception: nothing on the way may take it for an error."""


def serve(starting: Callable[[], Server] = start) -> None:
    """Serve until Ctrl-C, SIGTERM or the end of the terminal.

    Prints one line of JSON when ready: `{"url": ..., "ca_file": ..., "pid": ...}`. Leaves no
    process and no file behind. Raises what `starting` raises, and ServerFailed when the server
    fails later.
    """
    with contextlib.suppress(_Stop), contextlib.ExitStack() as undo:
        for number in _SIGNALS:
            # Under nohup SIGHUP is ignored, and stays so. SIGINT is ignored in a shell's background
            # jobs, but whoever sends it to this very process means it.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                undo.callback(signal.signal, number, signal.getsignal(number))
                signal.signal(number, _stop)
        server = undo.enter_context(starting())
        ca_file = None if server.ca_file is None else str(server.ca_file)
        ready = {"url": server.url, "ca_file": ca_file, "pid": server.pid}
        print(json.dumps(ready), flush=True)
        if code := server.wait():
            raise ServerFailed(f"the server ended unexpectedly, with exit code {code}")


def _stop(number: int, frame: FrameType | None) -> None:
    for each in _SIGNALS:  # once is enough: the end must not be interrupted
        signal.signal(each, signal.SIG_IGN)
    raise _Stop
