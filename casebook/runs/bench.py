"""One run at a time: a server, a stack's environment, a probe in it, and the answer checked."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from casebook import digests, places, server
from casebook.probes import clients
from casebook.runs import measurements, runs, trust
from casebook.runs.observations import Observation
from casebook.runs.runs import Run
from casebook.stacks import environments, scripts

PROBES = places.PROBES
#: What a step of the probes takes into a stack: the cure of the second case.
CURE = places.CURE


@dataclass(frozen=True)
class Target:
    """A server that probes may ask: its URL, its CA file (None: the stack's own), counters."""

    url: str
    ca_file: str | None = None
    lab: object = None

    def reset(self) -> None:
        """Set the server's counters to zero, where it has any."""
        if self.lab:
            self.lab.reset()

    def counters(self) -> dict | None:
        """What the server counted since the reset; None where it does not count."""
        return self.lab.counters() if self.lab else None


@contextlib.contextmanager
def lab_server(scheme: str = "https", engine: str = "lab") -> Iterator[Target]:
    """A lab server of our own for as long as the block runs."""
    with server.start(scheme=scheme, engine=engine) as running:
        ca_file = str(running.ca_file) if running.ca_file else None
        yield Target(running.url, ca_file, running)


def ask_probe(environment, spec: dict) -> dict:
    """Run the probe once inside a stack's environment: its answer, not yet checked.

    spec: what casebook/probes/fetch.py reads. Raises RunFailed when the probe gives no
    answer within a generous bound (serial time three times over, and a minute).
    """
    answer, _ = hear_probe(environment, spec)
    return answer


def hear_probe(environment, spec: dict, variables: dict | None = None) -> tuple[dict, str]:
    """As `ask_probe`, with further environment variables; the answer, and what the stack said
    on standard error."""
    bound_s = 60 + 3 * spec["n"] * (spec["delay_s"] + 0.1)
    return scripts.hear(
        environment, PROBES / "fetch.py", spec, bound_s,
        advice="Try a smaller n or delay.", variables=variables,
    )  # fmt: skip


#: The probe's modules that only some runs execute, by the instrument that was asked for.
_INSTRUMENTS = {
    "profile": {"profiling", "recording"},
    "trace": {"calltrace"},
    "timeline": {"timeline"},
}


def digest(stack, asked: dict) -> str:
    """The digest of everything that makes a measurement of a stack what it is.

    asked: the parameters; `gather` names the instrument, where there is one. Only what this kind
    of run executes counts: a change to another instrument leaves it as it is.
    """
    without = {
        module
        for gather, modules in _INSTRUMENTS.items()
        if gather != asked.get("gather")
        for module in modules
    }
    if asked["client"] not in clients.OF_TODAY:
        without.add("clients_of_today")
    return digests.of(
        measurements.SCHEMA,
        digests.executed(PROBES / "fetch.py", without),
        [CURE] if {"shared_context", "preload"} & set(stack.steps) else "without the cure",
        server.MADE_OF,
        [Path(module.__file__) for module in (scripts, trust)],
        environments.fingerprint(stack),
        [stack.name, list(stack.steps), stack.patch],
        asked,
    )


class Bench:
    """Takes single measurements against one server, and remembers those of the lab server.

    target: a server of the caller's; without one, a lab server is started when the first
    measurement needs it, and ends with the `with` block. Only measurements against the lab
    server are stored: what another server is made of cannot be known.
    """

    def __init__(self, scheme: str = "https", target: Target | None = None):
        self.scheme = target.url.partition(":")[0] if target else scheme
        self.is_lab = target is None
        self._target = target
        self._open = contextlib.ExitStack()
        self._bundles: Path | None = None

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *exception) -> None:
        self._open.close()

    def target(self) -> Target:
        """The server, started now if nothing has needed it yet."""
        if self._target is None:
            self._target = self._open.enter_context(lab_server(self.scheme))
        return self._target

    def _taken(self, stack, asked: dict, take) -> dict:
        """A measurement, stored if it is one of the lab server: see measurements."""
        if not self.is_lab:
            return measurements.new(take)
        return measurements.stored_or_new(digest(stack, asked | {"scheme": self.scheme}), take)

    def _ask(self, environment, asked: dict, gather: tuple = ()):
        target = self.target()
        told = trust.of_name(asked["trust"], target.ca_file, self._folder())
        spec = {
            "client": asked["client"],
            "steps": list(environment.stack.steps),
            "url": target.url,
            "n": asked["n"],
            "delay_s": asked["delay_s"],
            "ca_file": target.ca_file,
            "verify": told.verify,
            "bundle": told.bundle,
            "gather": gather,
        }
        target.reset()
        answer, _ = hear_probe(environment, spec, told.variables)
        return answer | {"versions": environment.versions}, target.counters()

    def _folder(self) -> Path:
        """A folder for bundles, as long as the `with` block runs."""
        if self._bundles is None:
            folder = tempfile.TemporaryDirectory(prefix="casebook-")
            self._bundles = Path(self._open.enter_context(folder))
        return self._bundles

    def run(self, environment, repeat: int, **asked) -> Run:
        """One checked run. asked: n, delay_s, client, trust.

        Raises RunFailed when any response is missing or wrong.
        """

        def take() -> dict:
            answer, counters = self._ask(environment, asked)
            of = {"stack": environment.stack.name, "scheme": self.scheme, "repeat": repeat}
            return asdict(runs.from_answer(answer, counters, **asked, **of))

        return runs.from_stored(self._taken(environment.stack, asked | {"repeat": repeat}, take))

    def observation(self, environment, kind: str, **asked) -> Observation:
        """One checked run with an instrument in it; asked and errors as for `run`."""
        n = asked["n"]

        def take() -> dict:
            answer, _ = self._ask(environment, asked, (kind,))
            runs.check(environment.stack.name, n, answer)
            return Observation(
                stack=environment.stack.name,
                kind=kind,
                n=n,
                delay_s=asked["delay_s"],
                python=answer["python"],
                steps=list(environment.stack.steps),
                measured_at=measurements.now(),
                source=runs.LIVE,
                answer=answer,
            ).as_dict()

        found = self._taken(environment.stack, asked | {"gather": kind}, take)
        known = {f.name for f in fields(Observation)}
        return Observation(**{name: value for name, value in found.items() if name in known})
