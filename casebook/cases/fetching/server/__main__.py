"""The server's own process: `python -m casebook.cases.fetching.server SCHEME PORT`.

Started by `fetching.server.start`, which holds the other end of this process's standard input and
reads one line of JSON from its standard output: `{"url", "ca_file"}`, or `{"error"}`. The owner
asks in lines, "counters 1", "reset 2"; each answer is a line of JSON with the question's number.
When the owner is gone, however it went, this process follows it.
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import gevent
from gevent.event import Event
from gevent.select import select

from casebook.cases.fetching.server import certificates, lab, limits

_CHECK_S = 1.0


def main(scheme: str, port: int) -> int:
    """Serve until told to stop. Returns the exit code; leaves nothing behind."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        gevent.signal_handler(number, stop.set)
    parent = os.getppid()
    room = limits.make_room()
    folder = tempfile.TemporaryDirectory(prefix="casebook-server-", ignore_cleanup_errors=True)
    with folder as name:  # readable by this user only
        try:
            issued = certificates.issue(Path(name)) if scheme == "https" else None
            with contextlib.closing(lab.LabServer(port, issued, room)) as running:
                running.start()
                url = f"{scheme}://127.0.0.1:{running.server_port}"
                _send(url=url, ca_file=None if issued is None else str(issued.ca_file))
                gevent.spawn(_attend, running, parent).link(lambda _: stop.set())
                stop.wait()
            return 0
        except Exception as error:  # whatever it was, the owner turns it into one line
            _send(error=str(error) or type(error).__name__)
            return 1


def _attend(running: lab.LabServer, parent: int) -> None:
    """Answer the owner until it is gone.

    While a child that it forked still holds the pipe, the kernel's word on our parent is sure.
    """
    while os.getppid() == parent:
        if not select([0], [], [], _CHECK_S)[0]:
            continue
        lines = os.read(0, 4096).decode().splitlines()
        if not lines:
            return
        for question, number in map(str.split, lines):
            _send(number=int(number), **running.answer(question))


def _send(**content: object) -> None:
    print(json.dumps(content), flush=True)


if __name__ == "__main__":
    code = main(sys.argv[1], int(sys.argv[2]))
    # No orderly end of thousands of greenlets that wait for clients who may stand still.
    os._exit(code)
