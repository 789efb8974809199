"""What the lock is for: many threads that configure one context, and processes that die of it."""

import json
import signal
import ssl
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from casebook import places, stacks
from casebook.cases.handshakes import server
from casebook.cases.handshakes.server import SlowToShakeHands
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import measurements
from casebook.laboratory.rounds import as_list, in_turns
from casebook.stacks import commands, digests, environments
from casebook.stacks.environments import Environment

_PROBE = Path(__file__).parent / "probes" / "wrap_together.py"

#: So many rounds are taken at least, and no more than so many.
LEAST, MOST = 2, 20

COLUMNS = [
    *("stack", "processes", "died", "signals", "openssl", "source", "measured_at"),
    *measurements.COLUMNS,
]


def measure(names: str | Iterable[str], threads: int = 8, wraps: int = 500) -> pd.DataFrame:
    """How many processes die in each of which many threads use one context.

    Each thread wraps so many connections, and nobody connects. The system's default is a file and
    a folder, as it is on many systems. In each round every stack has one process; LEAST to MOST
    rounds, the last being the one in which a process died.

    Returns one row per stack, columns COLUMNS: died, how many a signal ended; signals, which. It
    is a matter of chance: that none died proves nothing. Raises UsageError, RunFailed where a
    process ended in another way, and EnvironmentFailed.
    """
    if not (1 <= threads <= 100 and 1 <= wraps <= 10_000):
        raise UsageError(f"choose 1 to 100 threads and 1 to 10000 wraps, not {threads}, {wraps}")
    its = [environments.ensure(stacks.get(name)) for name in as_list(names)]
    made_by = [
        Path(__file__),
        *digests.executed(_PROBE, beside=[places.PROBES]),
        *digests.files(server),
    ]
    key = measurements.key_of(made_by, *(each.stack for each in its), threads, wraps)
    rows = measurements.rows(lambda: _rows(its, threads, wraps), key)
    return pd.DataFrame(rows, columns=COLUMNS)


def _rows(its: list[Environment], threads: int, wraps: int) -> list[dict]:
    ended: dict[str, list[str]] = {each.stack.name: [] for each in its}
    spec = {"threads": threads, "wraps": wraps}
    with SlowToShakeHands() as host:
        shown = {"SSL_CERT_FILE": str(host.ca_file), "SSL_CERT_DIR": str(host.folder)}
        for round_, environment in in_turns(its, MOST):
            if round_ > LEAST and any(any(signals[: round_ - 1]) for signals in ended.values()):
                break
            ended[environment.stack.name].append(_signal(environment, spec, shown))
    return [
        {
            "stack": name,
            "processes": len(signals),
            "died": sum(map(bool, signals)),
            "signals": ", ".join(sorted({each for each in signals if each})),
            "openssl": ssl.OPENSSL_VERSION,
        }
        for name, signals in ended.items()
    ]


def _signal(environment: Environment, spec: dict, variables: dict[str, str]) -> str:
    """The name of the signal that ended a process, or ""."""
    importable = {"PYTHONPATH": str(places.PROBES)}
    environ = environments.clean_environ(environment) | importable | variables
    done = commands.run(
        [environment.python, _PROBE], environment.stack.name, 120, environ, text=json.dumps(spec)
    )
    if done.returncode > 0:
        said = f"exit code {done.returncode} ({commands.last_line(done)})"
        raise RunFailed(f"{environment.stack.name} left with {said}. Nothing was recorded.")
    return signal.Signals(-done.returncode).name if done.returncode else ""
