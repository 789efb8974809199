"""The smallest site: a few lines of Twisted (SCRIPT), run as they are, with the log that they keep.

And Twisted's own client (AGENT).

with serve() as site:
    ...                        # any client: site.url, site.ca_file
    print(site.log(1)[-1])     # the line about the first request
"""

import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from casebook.cases.bookstore import opening
from casebook.cases.fetching import programs
from casebook.cases.fetching.server.process import Server
from casebook.errors import ServerFailed
from casebook.mistakes import for_readers

#: What is run: it takes a private key and a certificate, and says nothing of protocols.
SCRIPT = Path(__file__).parent / "hello_site.py"

#: The same with the books, which it takes from a third file.
BOOKS = Path(__file__).parent / "book_site.py"

#: A client that prints the protocol of its answer: it takes a URL and the file of an authority.
AGENT = Path(__file__).parent / "hello_agent.py"

_READY_S, _LOGGED_S, _CHECK_S = 60.0, 10.0, 0.02


@dataclass(frozen=True)
class Site(Server):
    """A running site; a context manager that stops it.

    `url` is https://127.0.0.1:PORT, `ca_file` the PEM file to trust.
    """

    @for_readers
    def log(self, requests: int = 0) -> list[str]:
        """Return Twisted's log so far, line by line, once it tells of that many requests.

        Raises ServerFailed when it does not within ten seconds.
        """
        assert self.process and self.ca_file
        return _log(self.process, self.ca_file, ' "GET ', requests, _LOGGED_S)


@for_readers
def serve(stack: str = "twisted-today", without: str = "", script: Path = SCRIPT) -> Site:
    """Run a script in a stack's environment on a free port of 127.0.0.1, and wait until it serves.

    It dies with this process. without: a package that is to be as if it were not installed. script:
    SCRIPT or BOOKS. Raises ServerFailed when it does not start, and what environments.ensure
    raises.
    """
    site = opening.serving(stack, "listed_site.py", without=without, script=script)
    with site as (process, files):
        lines = _log(process, files.ca_file, r"\(TLS\) starting on (\d+)", 1, _READY_S)
        (port,) = re.findall(r"\(TLS\) starting on (\d+)", "\n".join(lines))
        return Site(f"https://127.0.0.1:{port}", files.ca_file, process)


def asked_by_agent(server: Server, stack: str = "twisted-today") -> str:
    """Return the protocol over which Twisted's own client gets a server's first page: "HTTP/1.1".

    Raises as programs.run.
    """
    arguments = server.url + "/", str(server.ca_file)
    return programs.run(stack, AGENT.read_text(encoding="utf-8"), *arguments).strip()


def _log(
    process: subprocess.Popen, ca_file: Path, pattern: str, times: int, within_s: float
) -> list[str]:
    """Return the log once that many of its lines have the pattern."""
    deadline = time.monotonic() + within_s
    while True:
        has_ended = process.poll() is not None
        lines = opening.log_lines(ca_file)
        if sum(bool(re.search(pattern, line)) for line in lines) >= times:
            return lines
        if has_ended:
            message = lines[-1] if lines else "it said nothing"
            raise ServerFailed(f"the site ended with exit code {process.returncode}: {message}")
        if time.monotonic() > deadline:
            raise ServerFailed(
                f"the site's log has {pattern!r} fewer than {times} times after {within_s:g} s. "
                "Ask the site so often first, or for fewer."
            )
        time.sleep(_CHECK_S)
