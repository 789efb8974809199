"""One run at a time: a server, a stack's environment, a probe in it, and the answer checked."""

import atexit
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from casebook import places
from casebook.cases.fetching import clients, run_record, server
from casebook.cases.fetching import trust as trusts
from casebook.cases.fetching.observations import Observation
from casebook.cases.fetching.run_record import Run
from casebook.cases.fetching.server import Server
from casebook.laboratory import measurements, scripts
from casebook.stacks import Stack, digests
from casebook.stacks.environments import Environment
from casebook.words import LIVE

_FETCH = places.PROBES / "fetch.py"

#: The probe's modules that only some runs execute, by the instrument that was asked for.
_INSTRUMENTS = {
    "profile": {"profiling", "thread_profile"},
    "trace": {"calltrace"},
    "timeline": {"timeline"},
    "turns": {"turns"},
}


def ask_probe(
    environment: Environment,
    lab: Server,
    n: int,
    delay_s: float,
    client: str = "",
    gather: tuple[str, ...] = (),
    variables: dict[str, str] | None = None,
    **further: Any,
) -> tuple[dict[str, Any], str]:
    """Have a probe in a stack's environment fetch pages 0 to n - 1 of a server, once.

    client: the stack's own if none is named. gather: names of instruments. variables: further
    environment variables. further: what else fetching/probes/fetch.py reads (steps in the place of
    the stack's, verify, bundle, trace_limit). Returns the answer, not yet checked, and what the
    stack said on standard error. Raises RunFailed when there is no answer within a generous bound
    (serial time three times over, and a minute), UsageError for an unknown client.
    """
    spec = {
        "client": clients.file_of(client or environment.stack.client),
        "steps": environment.stack.steps,
        "url": lab.url,
        "n": n,
        "delay_s": delay_s,
        "ca_file": lab.ca_file,
        "gather": gather,
    }
    return scripts.ask_and_listen(
        environment, _FETCH, spec | further, 60 + 3 * n * (delay_s + 0.1),
        advice="Try a smaller n or delay.", variables=variables,
    )  # fmt: skip


def _executed(stack: Stack, parameters: dict[str, Any]) -> list[Path]:
    """Return the files that a measurement of a stack executes, without other instruments and
    clients.

    parameters: `gather` among them names the instrument, if there is one.
    """
    excluded = [
        modules for name, modules in _INSTRUMENTS.items() if name != parameters.get("gather")
    ]
    executed = [_FETCH, *digests.executed(_FETCH, set().union(*excluded)), Path(__file__)]
    executed.append(clients.file_of(parameters["client"]))
    if {"shared_context", "preload"} & set(stack.steps):
        executed.append(places.CURE)
    return [*executed, *server.MADE_OF]


#: Lab servers by scheme.
_labs: dict[str, Server] = {}


def lab_server(scheme: str = "https") -> Server:
    """Return the lab server of this process, started when the first measurement needs one."""
    lab = _labs.get(scheme)
    if lab is None or not lab.process or lab.process.poll() is not None:
        lab = _labs[scheme] = server.start(scheme)
        atexit.register(lab.stop)
    return lab


class Bench:
    """Takes single measurements against one server, and remembers those of the lab server.

    of_another: a server of the caller's; without one, the lab server of this process is used. Only
    measurements against that one are stored: what another server is made of cannot be known.
    variables: further environment variables of the stacks.
    """

    def __init__(
        self,
        scheme: str = "https",
        of_another: Server | None = None,
        variables: dict[str, str] | None = None,
    ):
        self.scheme = of_another.url.partition(":")[0] if of_another else scheme
        self._another, self._variables = of_another, variables or {}

    def run(self, environment: Environment, repeat: int, **parameters: Any) -> Run:
        """Take one run and check it. parameters: n, delay_s, client, trust.

        Raises RunFailed if any response is missing or wrong.
        """
        stack = environment.stack

        def measure() -> dict[str, Any]:
            answer, counters = self._fetch(environment, **parameters)
            identity = parameters | {"stack": stack.name, "scheme": self.scheme, "repeat": repeat}
            return run_record.to_store(run_record.from_answer(answer, counters, **identity))

        stored = self._stored_or_new(stack, parameters | {"repeat": repeat}, measure)
        return run_record.from_stored(stored)

    def observation(self, environment: Environment, kind: str, **parameters: Any) -> Observation:
        """Take one run with an instrument in it and check it; parameters and errors as for
        `run`.
        """
        stack = environment.stack

        def measure() -> dict[str, Any]:
            answer, _ = self._fetch(environment, **parameters, gather=(kind,))
            run_record.check(stack.name, parameters["n"], answer)
            return vars(
                Observation(
                    stack.name, kind, parameters["n"], parameters["delay_s"], answer["python"],
                    " ".join(stack.steps), measurements.now(), LIVE, answer,
                )
            )  # fmt: skip

        stored = self._stored_or_new(stack, parameters | {"gather": kind}, measure)
        return Observation(**measurements.of_class(Observation, stored))

    def _stored_or_new(
        self, stack: Stack, parameters: dict[str, Any], measure: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        if self._another:
            return measurements.new(measure)
        executed = _executed(stack, parameters)
        key = measurements.key_of(executed, stack, parameters, self.scheme, trusts.dependency())
        return measurements.stored_or_new(key, measure)

    def _fetch(
        self, environment: Environment, trust: str, **parameters: Any
    ) -> tuple[dict[str, Any], dict[str, int] | None]:
        """Return the probe's answer, and the server's counters meanwhile, if it has any."""
        lab = self._another or lab_server(self.scheme)
        with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
            trusted = trusts.of_name(trust, lab.ca_file, Path(folder))
            lab.reset()
            answer, _ = ask_probe(
                environment, lab, **parameters,
                verify=trusted.verify, bundle=trusted.bundle,
                variables=self._variables | trusted.variables,
            )  # fmt: skip
        return answer | {"versions": environment.versions}, lab.counters()
