"""A server in its own process, as its owner sees it."""

import contextlib
import itertools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Self

from casebook.errors import ServerFailed, UsageError
from casebook.mistakes import for_readers
from casebook.places import ROOT

SCHEMES = ("https", "http")

_READY_S = 60.0
_ENDS_S = 5.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: All that the server's process gets to know of this one's environment. No proxies, no CA files.
_ENVIRONMENT = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "PYTHONDONTWRITEBYTECODE",
)  # fmt: skip


@dataclass(frozen=True)
class Server:
    """A running server that clients may ask; a context manager that stops it.

    `url` is `https://127.0.0.1:PORT` (or http); `ca_file` is the PEM file to trust, None over
    plain HTTP or if it needs none. `process` is ours that serves; None for somebody else's
    server, which is neither counted nor stopped.
    """

    url: str
    ca_file: Path | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _asking: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _numbers: Iterator[int] = field(default_factory=itertools.count, repr=False)

    @property
    def pid(self) -> int | None:
        """Return the number of the process that serves; None for somebody else's server."""
        return self.process.pid if self.process else None

    def counters(self) -> dict | None:
        """Return what the server saw since the last reset.

        `connections`, `handshakes` (completed), `requests`, `peak_in_flight` (the most requests at
        once between being parsed and being answered), `protocols` (requests by HTTP version).
        Reading does not change them. None for somebody else's server. Raises ServerFailed if the
        server is gone.
        """
        return self._send("counters") if self.process else None

    def reset(self) -> None:
        """Set the counters to zero. A request still in flight does not come back in them."""
        if self.process:
            self._send("reset")

    def stop(self) -> None:
        """End the server and remove its files. Harmless when it has ended already."""
        if self.process is None:
            return
        end(self.process)
        if self.ca_file is not None:  # left there only if the server's process was killed
            shutil.rmtree(self.ca_file.parent, ignore_errors=True)

    def wait(self) -> int:
        """Wait until the server ends of itself; return its exit code."""
        return self.process.wait() if self.process else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _send(self, question: str) -> dict:
        with self._asking:
            number = next(self._numbers)
            try:
                assert self.process and self.process.stdin
                self.process.stdin.write(f"{question} {number}\n".encode())
                # An interrupted cell may have left the answer to an earlier question.
                while (answer := first_line(self.process)).pop("number") != number:
                    pass
                return answer
            except (OSError, ValueError, ServerFailed) as error:
                raise ServerFailed(
                    f"the server at {self.url} does not answer ({error}). Start it again."
                ) from error


@for_readers
def start(scheme: str = "https", port: int = 0) -> Server:
    """Start a lab server on 127.0.0.1 and wait until it is ready.

    `scheme` is one of SCHEMES, `port` 0 for any free one. The server dies with this process, also
    when this process is killed. Raises UsageError for what it does not know, ServerFailed when the
    server cannot be started (the port is in use).
    """
    if scheme not in SCHEMES:
        raise UsageError(f"unknown scheme {scheme!r}: choose https or http")
    if not 0 <= port <= 65535:
        raise UsageError(f"port {port} is out of range: choose 1 to 65535, or 0 for any free one")
    process, ready = begin("casebook.cases.fetching.server", scheme, str(port))
    return Server(ready["url"], Path(ready["ca_file"]) if ready["ca_file"] else None, process)


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
            # jobs, but a SIGINT sent to this very process is meant.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                undo.callback(signal.signal, number, signal.getsignal(number))
                signal.signal(number, _stop)
        server = undo.enter_context(starting())
        ca_file = None if server.ca_file is None else str(server.ca_file)
        ready = {"url": server.url, "ca_file": ca_file, "pid": server.pid}
        print(json.dumps(ready), flush=True)
        if code := server.wait():
            raise ServerFailed(f"the server ended unexpectedly, with exit code {code}")


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  a signal handler's
    for other_signal in _SIGNALS:  # once is enough: the end must not be interrupted
        signal.signal(other_signal, signal.SIG_IGN)
    raise _Stop


def begin(module: str, *arguments: str) -> tuple[subprocess.Popen[bytes], dict]:
    """Run a module of ours in a process of its own, whose standard input ends with this process.

    Returns that process, and its first line. Raises ServerFailed, and then the process is gone.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # unbuffered: the selector must see every line
        cwd=ROOT,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        # Its own session: neither an interrupted cell nor Ctrl-C reaches it, its owner decides.
        start_new_session=True,
    )
    try:
        return process, first_line(process)
    except BaseException:
        end(process)
        raise


def end(process: subprocess.Popen[bytes]) -> None:
    """End the server's process: ask, then kill. Afterwards it is gone."""
    assert process.stdin and process.stdout
    with contextlib.suppress(BrokenPipeError):  # it is gone, with a question that it never read
        process.stdin.close()  # it takes this for the death of its owner
    process.terminate()  # should a child that was forked here still hold the pipe
    try:
        process.wait(_ENDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def first_line(process: subprocess.Popen[bytes]) -> dict:
    """Read the next line of JSON that a server's process prints.

    Raises ServerFailed if there is none within a minute, if the process has ended, and for what it
    calls an error.
    """
    assert process.stdout
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(_READY_S):
            raise ServerFailed(f"the server was not ready within {_READY_S:g} s. Try again.")
    line = process.stdout.readline()
    if not line:
        raise ServerFailed(f"the server's process ended with exit code {process.wait()}")
    ready = json.loads(line)
    if "error" in ready:
        raise ServerFailed(f"the server did not start: {ready['error']}")
    return ready
