"""go-httpbin, the server that the 2019 investigation was made with, beside the lab server.

Source and flags: https://github.com/mccutchen/go-httpbin. With its own time-outs (one second for
the headers, five for the request) it closes the connections of a client that stands still, and a
serial stack looks four times faster than it is; so these are longer here.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from here import eventually

from casebook.cases.fetching import server
from casebook.cases.fetching.server import certificates

INSTALL = "go install github.com/mccutchen/go-httpbin/v2/cmd/go-httpbin@v2.26.0"
PATIENCE = ("-srv-read-header-timeout", "120s", "-srv-read-timeout", "120s")


def find() -> str | None:
    """The installed go-httpbin: on the PATH, or where `go install` puts it."""
    gopath = os.environ.get("GOPATH") or str(Path.home() / "go")
    folders = [os.environ["PATH"], os.environ.get("GOBIN", ""), str(Path(gopath) / "bin")]
    return shutil.which("go-httpbin", path=os.pathsep.join(filter(None, folders)))


@contextlib.contextmanager
def running() -> Iterator[server.Server]:
    """go-httpbin over TLS on a free port, for as long as the block runs; it has no counters."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        made = certificates.issue(Path(folder))
        command = [find(), "-host", "127.0.0.1", "-port", str(port), *PATIENCE, "-max-duration"]
        command += [f"{server.MAX_DELAY_S:g}s", "-log-level", "ERROR"]
        command += ["-https-cert-file", made.chain_file, "-https-key-file", made.key_file]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
            try:
                assert eventually(lambda: process.poll() is not None or _listens(port))
                assert process.poll() is None, "go-httpbin ended"
                yield server.Server(f"https://127.0.0.1:{port}", made.ca_file)
            finally:
                process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
