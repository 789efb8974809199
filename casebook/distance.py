"""The lab server from further away: a relay that holds each piece back, and an older TLS.

On loopback a server's half of a handshake is often there before the client can wait for it.
A few milliseconds of distance bring out every wait of a stack, which can then be counted.
"""

import contextlib
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from casebook import environments, runs, stacks
from casebook.bench import hear_probe, lab_server
from casebook.errors import UsageError
from casebook.observations import Observation

#: The newest TLS that a stack may speak: the words of this module and those of OpenSSL.
TLS = {"1.2": "TLSv1.2", "1.3": "TLSv1.3"}

# Read by OpenSSL 1.1.1 and newer when OPENSSL_CONF names it (config(5), "SSL Configuration").
_CONFIGURATION = """openssl_conf = start
[start]
ssl_conf = protocols
[protocols]
system_default = newest
[newest]
MaxProtocol = {}
"""


@contextlib.contextmanager
def relay(url: str, latency_s: float) -> Iterator[str]:
    """A URL behind which `url` is answered, with each piece held back for latency_s seconds.

    Each way is delayed, so that a round trip takes 2 x latency_s longer. For a few dozen
    connections: each takes two threads. All connections end with the block.
    """
    target = urlsplit(url)
    opened: list[socket.socket] = []

    def carry(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):  # one of the two hung up: so does the relay
            while piece := source.recv(65536):
                time.sleep(latency_s)
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with contextlib.suppress(OSError):  # closed at the end of the block
            while True:
                near, _ = listener.accept()
                far = socket.create_connection((target.hostname, target.port))
                opened.extend([near, far])
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=carry, args=ends, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"{target.scheme}://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            for one in opened:
                one.close()


def profile(
    name: str, tls: str = "1.3", latency_s: float = 0.005, n: int = 10, delay_s: float = 0.1
) -> Observation:
    """The profile of a stack whose server is latency_s seconds away in each direction.

    tls: the newest version that the stack may speak, "1.2" or "1.3" (which needs an OpenSSL of
    1.1.1 or newer in the stack). Raises UsageError, RunFailed, MissingInterpreter.
    """
    if tls not in TLS:
        raise UsageError(f"TLS {tls!r} is not known here: choose {' or '.join(TLS)}")
    environment = environments.ensure(stacks.get(name))
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        configuration = Path(folder) / "openssl.cnf"
        configuration.write_text(_CONFIGURATION.format(TLS[tls]))
        with lab_server("https") as lab, relay(lab.url, latency_s) as url:
            spec = {
                "client": "grequests",
                "steps": list(environment.stack.steps),
                "url": url,
                "n": n,
                "delay_s": delay_s,
                "ca_file": lab.ca_file,
                "gather": ["profile"],
            }
            answer, _ = hear_probe(environment, spec, {"OPENSSL_CONF": str(configuration)})
    runs.check(name, n, answer)
    return Observation(
        stack=name,
        kind="profile",
        n=n,
        delay_s=delay_s,
        python=answer["python"],
        steps=spec["steps"],
        measured_at=runs.now(),
        source=runs.LIVE,
        answer=answer,
    )
