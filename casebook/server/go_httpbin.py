"""go-httpbin, the server that the 2019 investigation was made with, in the lab server's place.

Source and flags: https://github.com/mccutchen/go-httpbin. With its own time-outs (one second for
the headers, five for the request) it closes the connections of a client that stands still, and a
serial stack looks four times faster than it is.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from casebook.errors import ServerFailed
from casebook.server.certificates import Certificates
from casebook.server.engine import Engine
from casebook.server.limits import MAX_DELAY_S

INSTALL = "go install github.com/mccutchen/go-httpbin/v2/cmd/go-httpbin@v2.26.0"

_PATIENCE = ("-srv-read-header-timeout", "120s", "-srv-read-timeout", "120s")
_READY_S = 10.0
_ATTEMPTS = 5
_PR_SET_PDEATHSIG = 1


def find() -> Path | None:
    """The installed go-httpbin: on PATH, in GOBIN, or in the bin folder of GOPATH."""
    folders = [os.environ.get("GOBIN", "")]
    gopath = os.environ.get("GOPATH") or str(Path.home() / "go")
    folders += [str(Path(part) / "bin") for part in gopath.split(os.pathsep)]
    places = [os.environ.get("PATH", os.defpath), *filter(None, folders)]
    found = shutil.which("go-httpbin", path=os.pathsep.join(places))
    return Path(found) if found else None


def run(port: int, certificates: Certificates | None, folder: Path) -> Engine:
    """Start go-httpbin on `port` (0: any free one) and wait until it accepts connections.

    Raises ServerFailed when it is not installed (with the command that installs it) or does not
    start. `folder` takes its log.
    """
    program = find()
    if program is None:
        raise ServerFailed(f"go-httpbin is not installed. Install it with: {INSTALL}")
    for _ in range(1 if port else _ATTEMPTS):
        # It cannot choose a free port itself: choose one, and choose again if it was taken since.
        chosen = port or _free_port()
        if _taken(chosen):
            continue
        process = _start(program, chosen, certificates, folder / "go-httpbin.log")
        if _accepts(process, chosen):
            return Engine(
                pid=process.pid,
                port=chosen,
                close=lambda process=process: _end(process),
                ended=lambda process=process: process.poll() is not None,
            )
        _end(process)
    log = folder / "go-httpbin.log"
    said = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    reason = said[-1] if said else f"port {port or chosen} is in use"
    raise ServerFailed(f"go-httpbin did not start: {reason}")


def _start(
    program: Path, port: int, certificates: Certificates | None, log: Path
) -> subprocess.Popen:
    command = [str(program), "-host", "127.0.0.1", "-port", str(port), *_PATIENCE]
    command += ["-max-duration", f"{MAX_DELAY_S:g}s", "-log-level", "ERROR"]
    if certificates is not None:
        command += ["-https-cert-file", str(certificates.chain_file)]
        command += ["-https-key-file", str(certificates.key_file)]
    with log.open("wb") as sink:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            preexec_fn=_follow_parent if sys.platform.startswith("linux") else None,
        )


def _follow_parent() -> None:
    # The process above us watches its owner; should it be killed itself, the kernel ends this one.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _accepts(process: subprocess.Popen, port: int) -> bool:
    deadline = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        if _taken(port):
            return process.poll() is None
        time.sleep(0.01)
    return False


def _end(process: subprocess.Popen) -> None:
    process.kill()  # it keeps nothing that wants an orderly end
    process.wait()
