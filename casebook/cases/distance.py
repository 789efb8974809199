"""The lab server from further away (casebook/server/relay.py), and an older TLS.

On loopback a server's half of a handshake is often there before the client can wait for it.
A few milliseconds of distance bring out every wait of a stack, which can then be counted.
"""

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator

from casebook import server, stacks
from casebook.errors import UsageError
from casebook.runs import measurements, run_record
from casebook.runs.bench import Bench, ask_probe
from casebook.runs.observations import Observation
from casebook.server import Server
from casebook.server.relay import relay
from casebook.stacks import environments
from casebook.words import LIVE

#: The newest TLS that a stack may speak.
TLS = ("1.2", "1.3")

# Read by OpenSSL 1.1.1 and newer when OPENSSL_CONF names it (config(5), "SSL Configuration").
_CONFIGURATION = """openssl_conf = start
[start]
ssl_conf = protocols
[protocols]
system_default = newest
[newest]
MaxProtocol = TLSv{}
"""


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
    with tempfile.NamedTemporaryFile("w", suffix=".cnf") as configuration, _lab(latency_s) as lab:
        configuration.write(_CONFIGURATION.format(tls))
        configuration.flush()
        answer, _ = ask_probe(
            environment, lab, n, delay_s, "grequests",
            gather=("profile",), variables={"OPENSSL_CONF": configuration.name},
        )  # fmt: skip
    run_record.check(name, n, answer)
    return Observation(
        name, "profile", n, delay_s, answer["python"], list(environment.stack.steps),
        measurements.now(), LIVE, answer,
    )  # fmt: skip


def observe(
    name: str, kind: str, client: str, trust: str, latency_s: float = 0.05, n: int = 10
) -> Observation:
    """As measure.observe, of a lab server that is latency_s seconds away in each direction.

    The server answers at once (delay 0). Nothing is stored. Raises UsageError, RunFailed,
    MissingInterpreter.
    """
    environment = environments.ensure(stacks.get(name))
    with _lab(latency_s) as lab, Bench(of_another=lab) as bench:
        return bench.observation(environment, kind, n=n, delay_s=0, client=client, trust=trust)


@contextlib.contextmanager
def _lab(latency_s: float) -> Iterator[Server]:
    with server.start() as lab, relay(lab.url, latency_s) as url:
        yield dataclasses.replace(lab, url=url)
