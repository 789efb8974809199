"""The store: a server of the books in a process and an environment of its own.

    with open_store() as store:
        ...                        # any client: store.url, store.ca_file
        print(store.cpu_s(), store.counters())

A server that does not speak what was promised, and would have its clients fall back to HTTP/1.1
without a word, is refused at the start.
"""

import hashlib
import itertools
import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from casebook import stacks
from casebook.cases.bookstore import greeting, stock
from casebook.cases.bookstore.ways import ENGINES, LACKS, Ways, check
from casebook.errors import ServerFailed
from casebook.server import certificates
from casebook.server.limits import BACKLOG
from casebook.server.process import end, first_line
from casebook.stacks import environments
from casebook.stacks.environments import Environment

__all__ = ["ENGINES", "LACKS", "Store", "Ways", "fingerprint", "open_store"]

SERVING = Path(__file__).parent / "serving"


@dataclass(frozen=True)
class Store:
    """A running store; a context manager that stops it.

    `url` is https://127.0.0.1:PORT; `ca_file` the PEM file to trust; `pid` the process that
    serves; `engine` one of ENGINES; `protocol` what a client that offers both gets, "h2" or
    "http/1.1"; `max_streams` how many requests a connection may have open at a time, as the
    server's own SETTINGS say (None: over HTTP/1.1, or without a limit); `library` such as
    "Twisted 26.10.0"; `python` the version of the Python that serves.
    """

    url: str
    ca_file: Path
    pid: int
    engine: str
    protocol: str
    max_streams: int | None
    library: str
    python: str
    ways: Ways
    _process: subprocess.Popen = field(repr=False)
    _asking: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _numbers: Iterator[int] = field(default_factory=itertools.count, repr=False)

    def cpu_s(self) -> float:
        """User and system CPU seconds of the server's process since it began, its start
        included: take differences."""
        used = self._ask("cpu")
        return used["user_s"] + used["sys_s"]

    def counters(self) -> dict:
        """What was asked since the start or the last reset: `connections` (that asked for
        something), `requests`, `peak_streams` (the most requests that one connection had open
        at once) and `protocols` (requests by "HTTP/1.1" and "HTTP/2").

        Granian counts a request as open until its answer is known, Twisted until it is sent.
        """
        return self._ask("counters")

    def reset(self) -> None:
        """Set the counters to zero."""
        self._ask("reset")

    def stop(self) -> None:
        """End the server and remove its files. Harmless when it has ended already."""
        end(self._process)
        shutil.rmtree(self.ca_file.parent, ignore_errors=True)

    def wait(self) -> int:
        """Wait until the server ends of itself; its exit code."""
        return self._process.wait()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _ask(self, question: str) -> dict:
        with self._asking:
            number = next(self._numbers)
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(f"{question} {number}\n".encode())
                # An interrupted cell may have left the answer to an earlier question.
                while (answer := first_line(self._process)).pop("number") != number:
                    pass
                return answer
            except (OSError, ValueError, ServerFailed) as error:
                raise ServerFailed(
                    f"the store at {self.url} does not answer ({error}). Open it again."
                ) from error


def open_store(
    engine: str = "twisted",
    http1_only: bool = False,
    delay_s: float = 0.0,
    slow: dict[str, float] | None = None,
    *,
    port: int = 0,
    lacks: str = "",
    refuse: bool = True,
    goaway_after: int | None = None,
    cut_short: tuple[str, ...] = (),
) -> Store:
    """Open a store on 127.0.0.1 and wait until it serves. It dies with this process.

    engine: one of ENGINES. http1_only: offer no HTTP/2. delay_s: seconds before each book is
    answered (the list of ids never waits); slow: other seconds for some ids. port: 0 for any free
    one. lacks: one of LACKS. refuse: end a server that does not speak HTTP/2 though it should;
    with False it stays, and `Store.protocol` says what it speaks.

    For the tests of clients, Twisted alone: goaway_after closes each connection when so many
    requests are answered (over HTTP/2 with a GOAWAY that names the last of them); of the books in
    cut_short only half is sent.

    Raises UsageError for what it does not know, ServerFailed when the server does not start or is
    refused, and what environments.ensure raises.
    """
    ways = Ways(http1_only, delay_s, dict(slow or {}), lacks, goaway_after, tuple(cut_short))
    check(engine, port, ways)
    name, script = ENGINES[engine]
    environment = environments.ensure(stacks.get(name))
    folder = Path(tempfile.mkdtemp(prefix="casebook-store-"))  # readable by this user only
    process = None
    try:
        made = certificates.make_nameless(folder) if lacks == "names" else certificates.make(folder)
        options = asdict(ways) | {
            "books": str(stock.FILE),
            "folder": str(folder),
            "chain_file": str(made.chain_file),
            "key_file": str(made.key_file),
            "port": port,
            "backlog": BACKLOG,
        }
        process = _start(environment, script, options)
        started = _ready(process, folder)
        heard = greeting.greet(started["port"], made.ca_file, named=lacks != "names")
        if refuse and not http1_only and heard.protocol != "h2":
            raise ServerFailed(_refusal(engine, heard))
        store = Store(
            url=f"https://127.0.0.1:{started['port']}",
            ca_file=made.ca_file,
            pid=process.pid,
            engine=engine,
            protocol=heard.protocol or "http/1.1",
            max_streams=heard.max_streams,
            library=_library(engine, environment),
            python=environment.python_version,
            ways=ways,
            _process=process,
        )
        store.reset()  # the greeting was no visit
        return store
    except BaseException:
        if process is not None:
            end(process)
        shutil.rmtree(folder, ignore_errors=True)
        raise


def fingerprint(engine: str) -> str:
    """A digest of all that makes a store what it is: environment, scripts, books.

    Raises MissingInterpreter."""
    digest = hashlib.sha256(environments.fingerprint(stacks.get(ENGINES[engine][0])).encode())
    for path in [*sorted(SERVING.glob("*.py")), Path(__file__), stock.FILE]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _start(environment: Environment, script: str, options: dict) -> subprocess.Popen:
    with (Path(options["folder"]) / "server.log").open("wb") as log:
        return subprocess.Popen(
            [str(environment.python), str(SERVING / script), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            bufsize=0,  # a line that is kept back in a buffer is none that can be waited for
            env=environments.clean_environ(environment),
            # Its own session: neither an interrupted cell nor Ctrl-C reaches it.
            start_new_session=True,
        )


def _ready(process: subprocess.Popen, folder: Path) -> dict:
    try:
        return first_line(process)
    except ServerFailed as error:
        said = (folder / "server.log").read_text(errors="replace").strip().splitlines()
        raise ServerFailed(f"{error}: {said[-1]}" if said else str(error)) from None


def _refusal(engine: str, heard: greeting.Greeting) -> str:
    said = f"the store on {engine} was refused: "
    if heard.protocol is None:
        return said + (
            "it negotiates no protocol (ALPN), so that every client would silently get HTTP/1.1. "
            "Listen with a TLS endpoint and a Site that offers h2, on OpenSSL 1.0.2 or newer; or "
            "ask for http1_only."
        )
    return said + (
        f"it was to speak HTTP/2 and negotiates {heard.protocol} instead, as Twisted does without "
        "a word where the package h2 is not installed. Install twisted[http2] ([h2] is no extra of "
        "it); or ask for http1_only."
    )


def _library(engine: str, environment: Environment) -> str:
    name = engine.partition("-")[0]
    return f"{name.capitalize()} {environment.versions[name]}"
