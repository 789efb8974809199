"""The lab server from further away (casebook/cases/fetching/server/relay.py), and an older TLS.

On loopback a server's half of a handshake is often there before the client can wait for it.
A few milliseconds of distance bring out every wait of a stack, which can then be counted.
"""

import dataclasses
import tempfile

from casebook import stacks
from casebook.cases.fetching import observations, server
from casebook.cases.fetching import trust as trusts
from casebook.cases.fetching.bench import fetching
from casebook.cases.fetching.observations import Observation
from casebook.cases.fetching.runs import check_parameters
from casebook.cases.fetching.server.relay import LONGEST_S, relay
from casebook.errors import UsageError
from casebook.mistakes import check_range, for_readers
from casebook.stacks import environments

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


@for_readers
def profile(  # noqa: PLR0913  what a reader may choose
    name: str,
    tls: str = "",
    latency_s: float = 0.005,
    n: int = 10,
    delay_s: float = 0.0,
    client: str = "grequests",
    trust: str = trusts.AUTHORITY,
) -> Observation:
    """Profile a stack whose server is latency_s seconds away in each direction.

    tls: the newest version that the stack may speak, "1.2" or "1.3" (which needs an OpenSSL of
    1.1.1 or newer in the stack); without one, whatever it speaks. The others: as for
    runs.observe. Nothing is stored. Raises UsageError, RunFailed, MissingInterpreter.
    """
    if tls and tls not in TLS:
        raise UsageError(f"TLS {tls!r} is not known here: choose {' or '.join(TLS)}")
    check_parameters([n], delay_s, client, trust=trust)
    check_range("the latency", latency_s, 0, LONGEST_S, " s")
    stack = stacks.get(name)
    environments.ensure(stack)  # raises: nothing that was recorded stands in
    parameters = {"n": n, "delay_s": delay_s, "client": client, "trust": trust}
    parameters |= {"scheme": "https", "gather": "profile"}
    with (
        tempfile.NamedTemporaryFile("w", suffix=".cnf") as configuration,
        server.start() as lab,
        relay(lab.url, latency_s) as url,
    ):
        configuration.write(_CONFIGURATION.format(tls))
        configuration.flush()
        variables = {"OPENSSL_CONF": configuration.name} if tls else {}
        at_distance = dataclasses.replace(lab, url=url)
        experiment = fetching(stack, client, "profile", at_distance, variables)
        return observations.from_measurement(experiment.first_answer([stack], parameters))
