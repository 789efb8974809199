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
from casebook.laboratory.experiment import Asked, Experiment
from casebook.mistakes import for_readers
from casebook.stacks import commands, digests, environments
from casebook.stacks.environments import Environment

#: So many rounds are taken at least, and no more than so many.
LEAST, MOST = 2, 20

COUNTED = ["stack", "processes", "died", "signals", "openssl", "source"]


@for_readers
def measure(
    names: str | Iterable[str], threads: int = 8, contexts: int = 50, wraps: int = 10
) -> pd.DataFrame:
    """Processes in each of which many threads use one context, and then the next, and so on.

    The threads begin with a context together, and each wraps so many connections from it; nobody
    connects. The system's default is a file and a folder, as it is on many systems. In each round
    every stack has one process; LEAST to MOST rounds, the last being the one in which a process
    died.

    Parameters:
        threads, wraps: of each context; a context is at risk while its first connections are made,
            so many contexts with few connections show more than few with many.

    Returns one row per process: stack, repeat, signal (that ended it, or ""), openssl, and what
    Experiment.measure adds. It is a matter of chance: that none died proves nothing. Raises
    UsageError, RunFailed where a process ended in another way, and what Experiment.measure raises.
    """
    if not (1 <= threads <= 100 and 1 <= contexts <= 1000 and 1 <= wraps <= 10_000):
        raise UsageError(
            "choose 1 to 100 threads, 1 to 1000 contexts and 1 to 10000 wraps, not "
            f"{threads}, {contexts}, {wraps}"
        )
    asked, ended = [{"threads": threads, "contexts": contexts, "wraps": wraps}], pd.DataFrame()
    for round_ in range(1, MOST + 1):
        more = _CRASHES.measure(names, asked, range(round_, round_ + 1))
        ended = pd.concat([ended, more], ignore_index=True)
        if more.empty or (round_ >= LEAST and ended["signal"].any()):
            break
    return ended


def counted(ended: pd.DataFrame) -> pd.DataFrame:
    """Of the processes of each stack (rows of `measure`), how many a signal ended, and which.

    Returns one row per stack, columns COUNTED.
    """
    its = ended.groupby("stack", sort=False)
    found = its["signal"].agg(
        processes="size",
        died=lambda signals: sum(map(bool, signals)),
        signals=lambda signals: ", ".join(sorted({*signals} - {""})),
    )
    return found.join(its[["openssl", "source"]].first()).reset_index().reindex(columns=COUNTED)


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
