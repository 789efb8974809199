"""What the lock is for: many threads that configure one context, and processes that die of it."""

import json
import signal
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.cases.handshakes import server
from casebook.cases.handshakes.server import SlowToShakeHands
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import measurements
from casebook.laboratory.experiment import Asked, Experiment
from casebook.stacks import commands, digests, environments
from casebook.stacks.environments import Environment

#: So many rounds are taken at least, and no more than so many.
LEAST, MOST = 2, 20

COLUMNS = [
    *("stack", "processes", "died", "signals", "openssl", "source", "measured_at", "instead"),
    *measurements.COLUMNS,
]


def measure(names: str | Iterable[str], threads: int = 8, wraps: int = 500) -> pd.DataFrame:
    """How many processes die in each of which many threads use one context.

    Each thread wraps so many connections, and nobody connects. The system's default is a file and
    a folder, as it is on many systems. In each round every stack has one process; LEAST to MOST
    rounds, the last being the one in which a process died.

    Returns one row per stack, columns COLUMNS: died, how many a signal ended; signals, which; when
    and how it was measured is said of the first process. It is a matter of chance: that none died
    proves nothing. Raises UsageError, RunFailed where a process ended in another way, and what
    Experiment.measure raises.
    """
    if not (1 <= threads <= 100 and 1 <= wraps <= 10_000):
        raise UsageError(f"choose 1 to 100 threads and 1 to 10000 wraps, not {threads}, {wraps}")
    asked, ended = [{"threads": threads, "wraps": wraps}], pd.DataFrame()
    for round_ in range(1, MOST + 1):
        more = _CRASHES.measure(names, asked, range(round_, round_ + 1))
        ended = pd.concat([ended, more], ignore_index=True)
        if more.empty or (round_ >= LEAST and ended["signal"].any()):
            break
    its = ended.groupby("stack", sort=False)
    counted = its["signal"].agg(
        processes="size",
        died=lambda signals: sum(map(bool, signals)),
        signals=lambda signals: ", ".join(sorted({*signals} - {""})),
    )
    return counted.join(its.first()).reset_index().reindex(columns=COLUMNS)


def _ask(environment: Environment, asked: Asked) -> dict[str, Any]:
    """The name of the signal that ended a process, or ""; and the OpenSSL of this one."""
    with SlowToShakeHands() as host:
        variables = {"SSL_CERT_FILE": str(host.ca_file), "SSL_CERT_DIR": str(host.folder)}
        variables |= {"PYTHONPATH": str(places.PROBES)}
        done = commands.run(
            [environment.python, _CRASHES.script], environment.stack.name, 120,
            environments.clean_environ(environment) | variables, text=json.dumps(asked),
        )  # fmt: skip
    if done.returncode > 0:
        said = f"exit code {done.returncode} ({commands.last_line(done)})"
        raise RunFailed(f"{environment.stack.name} left with {said}. Nothing was recorded.")
    ended = signal.Signals(-done.returncode).name if done.returncode else ""
    return {"signal": ended, "openssl": ssl.OPENSSL_VERSION}


_CRASHES = Experiment(
    Path(__file__).parent / "probes" / "wrap_together.py",
    lambda asked, answer: {name: answer[name] for name in ("signal", "openssl")},
    made_of=(Path(__file__), *digests.files(server)),
    beside=(places.PROBES,),
    ask=_ask,
)
