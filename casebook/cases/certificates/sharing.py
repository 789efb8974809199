"""Whose certificate clients show that share a context.

    leaks("httpx", "httpx-today")  # True: the next client shows it, too

A host of our own (hosts.py) says whom it was shown. What shares the context is made anew for each
request, so that nothing else is shared.
"""

from pathlib import Path
from typing import Any

from casebook.cases.certificates import hosts
from casebook.cases.certificates.hosts import Hosts
from casebook.errors import RunFailed
from casebook.laboratory import scripts
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.stacks import digests
from casebook.stacks.environments import Environment

PROBE = Path(__file__).parent / "probes" / "sharing.py"

#: The clients that take a context of ours and a certificate beside it: httpx as it comes, the
#: others by an adapter.
CLIENTS = ("requests", "httpx", "niquests")

#: Who brings a certificate.
ALICE = "alice"


def leaks(client: str, stack: str) -> bool | None:
    """Return whether a client shows the certificate of another with which it shares a context.

    None for what is none of CLIENTS. Raises RunFailed if the host is not shown nobody first and
    then the certificate that was brought, and what Experiment.measure raises.
    """
    if client not in CLIENTS:
        return None
    return bool(_SHARING.measure(stack, [{"client": client}])["leaks"].iloc[0])


def _run_probe(environment: Environment, parameters: Parameters) -> dict[str, Any]:
    with Hosts() as there:
        spec = {
            "client": parameters["client"],
            "url": there.urls[0],
            "ca_file": str(there.ca_file),
            "certificate": there.client_certificate(ALICE),
        }
        return scripts.answer_of(environment, PROBE, spec)


def _figures(parameters: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    first, own, third = answer["shown"]
    if (first, own) != (hosts.NOBODY, ALICE):
        raise RunFailed(
            f"{parameters['client']}: the host was shown {first}, and then {own}. Nothing was "
            "recorded."
        )
    return {"leaks": third != hosts.NOBODY}


_SHARING = Experiment(
    PROBE, _figures, depends_on=(Path(__file__), *digests.files(hosts)), ask=_run_probe
)
