"""One run at a time: a server, a stack's environment, a probe in it, and the answer checked."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from casebook import analysis, environments, runs, server
from casebook.errors import RunFailed
from casebook.observations import Observation
from casebook.runs import Run, Store

PROBES = Path(__file__).parent / "probes"


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
    name = environment.stack.name
    probe = subprocess.Popen(
        [str(environment.python), str(PROBES / "fetch.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environments.clean_environ(environment) | (variables or {}),
        text=True,
    )
    try:
        out, err = probe.communicate(json.dumps(spec), timeout=bound_s)
    except subprocess.TimeoutExpired:
        raise RunFailed(
            f"{name}: no answer within {bound_s:.0f} s, so the run was ended. Nothing was "
            "recorded. Try a smaller n or delay."
        ) from None
    finally:
        if probe.poll() is None:
            probe.kill()
            probe.communicate()
    try:
        return json.loads(out), err
    except ValueError:
        last = err.strip().splitlines()[-1:] or ["it printed nothing"]
        raise RunFailed(
            f"{name}: the probe left with exit code {probe.returncode} and no answer "
            f"({last[0]}). Nothing was recorded."
        ) from None


def _made_of(stack, parameters: dict) -> str:
    """The digest of everything that makes a measurement of a stack what it is."""
    return runs.digest(
        PROBES,
        Path(server.__file__).parent,
        *(Path(module.__file__) for module in (sys.modules[__name__], runs, analysis)),
        environments.fingerprint(stack),
        asdict(stack),
        parameters,
    )


def may_reuse() -> bool:
    """Whether stored measurements count: only in a build. A reader's cell measures anew."""
    return os.environ.get("CASEBOOK_BUILD") == "1"


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
        self._store = Store()
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *exception) -> None:
        self._open.close()

    def _kept(self, stack, parameters: dict, take) -> dict:
        """A stored measurement in a build of the book; otherwise a new one, stored."""
        if not self.is_lab:
            return take()
        key = _made_of(stack, parameters | {"scheme": self.scheme})
        kept = self._store.load(key) if may_reuse() else None
        if kept is None:
            kept = take()
            self._store.save(key, kept)
        return kept

    def _ask(self, environment, n: int, delay_s: float, client: str, gather: tuple = ()):
        if self._target is None:
            self._target = self._open.enter_context(lab_server(self.scheme))
        spec = {
            "client": client,
            "steps": list(environment.stack.steps),
            "url": self._target.url,
            "n": n,
            "delay_s": delay_s,
            "ca_file": self._target.ca_file,
            "gather": gather,
        }
        self._target.reset()
        answer = ask_probe(environment, spec)
        return answer, self._target.counters()

    def run(self, environment, n: int, delay_s: float, client: str, repeat: int) -> Run:
        """One checked run. Raises RunFailed when any response is missing or wrong."""

        def take() -> dict:
            answer, counters = self._ask(environment, n, delay_s, client)
            asked = {"n": n, "delay_s": delay_s, "client": client, "repeat": repeat}
            asked |= {"stack": environment.stack.name, "scheme": self.scheme}
            return asdict(runs.from_answer(answer, counters, **asked))

        parameters = {"n": n, "delay_s": delay_s, "client": client, "repeat": repeat}
        return Run(**self._kept(environment.stack, parameters, take))

    def observation(
        self, environment, kind: str, n: int, delay_s: float, client: str
    ) -> Observation:
        """One checked run with an instrument in it. Raises RunFailed as `run` does."""

        def take() -> dict:
            answer, _ = self._ask(environment, n, delay_s, client, (kind,))
            runs.check(environment.stack.name, n, answer)
            return Observation(
                stack=environment.stack.name,
                kind=kind,
                n=n,
                delay_s=delay_s,
                python=answer["python"],
                steps=list(environment.stack.steps),
                measured_at=runs.now(),
                source=runs.LIVE,
                answer=answer,
            ).as_dict()

        parameters = {"n": n, "delay_s": delay_s, "client": client, "gather": kind}
        return Observation(**self._kept(environment.stack, parameters, take))
