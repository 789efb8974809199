"""The smallest site: a few lines of Twisted (SCRIPT), run as they are, with the log that they keep.

with serve() as site:
    ...                        # any client: site.url, site.ca_file
    print(site.log(1)[-1])     # the line about the first request
"""

import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from casebook import stacks
from casebook.cases.bookstore import stock
from casebook.errors import ServerFailed
from casebook.server import certificates
from casebook.stacks import environments

#: What is run: it takes a private key and a certificate, and says nothing of protocols.
SCRIPT = Path(__file__).parent / "hello_site.py"

#: The same with the books, which it takes from a third file.
BOOKS = Path(__file__).parent / "book_site.py"

_READY_S, _LOGGED_S, _CHECK_S, _ENDS_S = 60.0, 10.0, 0.02, 5.0

#: Runs a script, and ends it with its owner: when our end of its standard input is closed, or, as
#: a child that was forked here may still hold that, when its parent is another. Its files go too.
_GUARD = """
import os, runpy, shutil, sys, threading, time
folder, parent = sys.argv[1], os.getppid()
def end():
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
def listen():
    sys.stdin.read()
    end()
def watch():
    while os.getppid() == parent:
        time.sleep(1)
    end()
for each in (listen, watch):
    threading.Thread(target=each, daemon=True).start()
if sys.argv[2]:
    sys.modules[sys.argv[2]] = None
del sys.argv[:3]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Site:
    """A running site; a context manager that stops it. `url` is https://127.0.0.1:PORT, `ca_file`
    the PEM file to trust."""

    url: str
    ca_file: Path
    _process: subprocess.Popen = field(repr=False)

    def log(self, requests: int = 0) -> list[str]:
        """Twisted's log so far, line by line, once it tells of so many requests.

        Raises ServerFailed when it does not within ten seconds.
        """
        deadline = time.monotonic() + _LOGGED_S
        while True:
            lines = _log(self.ca_file.parent).splitlines()
            if sum(' "GET ' in line for line in lines) >= requests:
                return lines
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"the log of {self.url} tells of fewer than {requests} requests after "
                    f"{_LOGGED_S:g} s. Ask the site so often first, or for fewer."
                )
            time.sleep(_CHECK_S)

    def stop(self) -> None:
        """End the site and remove its files. Harmless when it has ended already."""
        _end(self._process, self.ca_file.parent)

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def serve(stack: str = "twisted-today", without: str = "", script: Path = SCRIPT) -> Site:
    """Run a script in a stack's environment on a free port of 127.0.0.1, and wait until it serves.
    It dies with this process.

    without: a package that is to be as if it were not installed. script: SCRIPT or BOOKS. Raises
    ServerFailed when it does not start, and what environments.ensure raises.
    """
    environment = environments.ensure(stacks.get(stack))
    folder = Path(tempfile.mkdtemp(prefix="casebook-hello-"))  # readable by this user only
    process = None
    try:
        made = certificates.make(folder)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *(environment.python, "-c", _GUARD, folder, without),
                    *(script, made.key_file, made.chain_file, stock.FILE),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environments.clean_environ(environment),
                # Its own session: neither an interrupted cell nor Ctrl-C reaches it.
                start_new_session=True,
            )
        return Site(f"https://127.0.0.1:{_port(process, folder)}", made.ca_file, process)
    except BaseException:
        _end(process, folder)
        raise


def _port(process: subprocess.Popen, folder: Path) -> int:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        found = re.search(r"\(TLS\) starting on (\d+)", _log(folder))
        if found:
            return int(found[1])
        if ended:
            said = _log(folder).strip().splitlines()[-1:] or ["it said nothing"]
            raise ServerFailed(f"the site ended with exit code {process.returncode}: {said[0]}")
        time.sleep(_CHECK_S)
    raise ServerFailed(f"the site was not ready within {_READY_S:g} s. Try again.")


def _log(folder: Path) -> str:
    return (folder / "log").read_text(encoding="utf-8", errors="replace")


def _end(process: subprocess.Popen | None, folder: Path) -> None:
    if process is not None:
        assert process.stdin is not None
        process.stdin.close()  # it takes this for the death of its owner
        process.terminate()
        try:
            process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)
