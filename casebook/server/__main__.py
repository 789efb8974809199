"""The server's own process: `python -m casebook.server ENGINE SCHEME PORT`.

Started by `casebook.server.start`, which holds the other end of this process's standard input and
reads one line of JSON from its standard output: `{"url", "ca_file", "pid"}`, or `{"error"}`.
When standard input ends, the owner is gone, however it went, and this process follows it.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import gevent
from gevent.event import Event
from gevent.socket import wait_read

from casebook.server import certificates, go_httpbin, lab, limits

_CHECK_S = 1.0


def main(engine: str, scheme: str, port: int) -> int:
    """Serve until told to stop. Returns the exit code; leaves nothing behind."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        gevent.signal_handler(number, stop.set)
    gevent.spawn(_watch_pipe, stop)
    parent = os.getppid()
    gevent.spawn(_watch, stop, lambda: os.getppid() != parent)
    for sentence in limits.make_room():
        print(f"casebook: {sentence}", file=sys.stderr, flush=True)
    folder = Path(tempfile.mkdtemp(prefix="casebook-server-"))  # readable by this user only
    running = None
    try:
        made = certificates.make(folder) if scheme == "https" else None
        if engine == "go-httpbin":
            running = go_httpbin.run(port, made, folder)
        else:
            running = lab.run(port, made)
        _say(
            url=f"{scheme}://127.0.0.1:{running.port}",
            ca_file=None if made is None else str(made.ca_file),
            pid=running.pid,
        )
        gevent.spawn(_watch, stop, running.ended)
        stop.wait()
        return 0
    except Exception as error:  # whatever it was, the owner turns it into one line
        _say(error=str(error) or type(error).__name__)
        return 1
    finally:
        if running is not None:
            running.close()
        shutil.rmtree(folder, ignore_errors=True)


def _say(**content: object) -> None:
    print(json.dumps(content), flush=True)


def _watch_pipe(stop: Event) -> None:
    wait_read(0)  # nobody writes to it: readable means ended
    stop.set()


def _watch(stop: Event, ended: Callable[[], bool]) -> None:
    # The pipe says at once that the owner is gone, unless a child that the owner forked still
    # holds it. The kernel's word on our parent has no such gap.
    while not ended():
        gevent.sleep(_CHECK_S)
    stop.set()


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    # No orderly end of thousands of greenlets that wait for clients who may stand still.
    os._exit(code)
