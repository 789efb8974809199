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
from casebook.errors import NotInFile, RunFailed
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.mistakes import check_range, for_readers
from casebook.stacks import commands, digests, environments
from casebook.stacks.environments import Environment

#: Rounds are taken until DEATHS processes have died, or until there were MOST rounds. If three
#: stacks ran the same risk, all DEATHS would fall on one given stack in one build of 81.
DEATHS, MOST = 4, 20

COUNTED = ["stack", "processes", "died", "signals", "openssl", "source"]


@for_readers
def measure(
    names: str | Iterable[str], threads: int = 8, contexts: int = 50, wraps: int = 10
) -> pd.DataFrame:
    """Run processes in each of which many threads use one context, then the next, and so on.

    The threads begin with a context together, and each wraps `wraps` connections from it; nobody
    connects. The system's default is a file and a folder, as it is on many systems. In each round
    every stack has one process. The last round is the one by which DEATHS processes have died, or
    MOST.

    Parameters:
        threads, wraps: of each context; a context is at risk while its first connections are made,
            which is why many contexts with few connections show more than few with many.

    Returns one row per process: stack, repeat, signal (that ended it, or ""), openssl, and what
    Experiment.measure adds. It is a matter of chance: that none died proves nothing. Raises
    UsageError, RunFailed if a process ended in another way, and what Experiment.measure raises.
    """
    check_range("threads", threads, 1, 100)
    check_range("contexts", contexts, 1, 1000)
    check_range("wraps", wraps, 1, 10_000)
    questions, processes = (
        [{"threads": threads, "contexts": contexts, "wraps": wraps}],
        pd.DataFrame(),
    )
    for round_ in range(1, MOST + 1):
        try:
            round_rows = _CRASHES.measure(names, questions, range(round_, round_ + 1))
        except NotInFile:  # the machine of that file took no further round
            if processes.empty:
                raise
            break
        processes = pd.concat([processes, round_rows], ignore_index=True)
        if round_rows.empty or (processes["signal"] != "").sum() >= DEATHS:
            break
    return processes


@for_readers
def count_deaths(processes: pd.DataFrame) -> pd.DataFrame:
    """Count how many processes of each stack a signal ended, and which signal.

    processes: rows of `measure`. Returns one row per stack, columns COUNTED.
    """
    by_stack = processes.groupby("stack", sort=False)
    counts = by_stack["signal"].agg(
        processes="size",
        died=lambda signals: sum(map(bool, signals)),
        signals=lambda signals: ", ".join(sorted({*signals} - {""})),
    )
    return (
        counts.join(by_stack[["openssl", "source"]].first()).reset_index().reindex(columns=COUNTED)
    )


def _run_process(environment: Environment, parameters: Parameters) -> dict[str, Any]:
    """Return the name of the signal that ended a process, or "", and the OpenSSL of this one."""
    with SlowToShakeHands() as host:
        variables = {"SSL_CERT_FILE": str(host.ca_file), "SSL_CERT_DIR": str(host.folder)}
        variables |= {"PYTHONPATH": str(places.PROBES)}
        process = commands.run(
            [environment.python, _CRASHES.script], environment.stack.name, 120,
            environments.clean_environ(environment) | variables, text=json.dumps(parameters),
        )  # fmt: skip
    if process.returncode > 0:
        ending = f"exit code {process.returncode} ({commands.last_line(process)})"
        raise RunFailed(f"{environment.stack.name} left with {ending}. Nothing was recorded.")
    signal_name = signal.Signals(-process.returncode).name if process.returncode else ""
    return {"signal": signal_name, "openssl": ssl.OPENSSL_VERSION}


_CRASHES = Experiment(
    Path(__file__).parent / "probes" / "wrap_together.py",
    lambda _, answer: {name: answer[name] for name in ("signal", "openssl")},
    depends_on=(Path(__file__), *digests.files(server)),
    beside=(places.PROBES,),
    ask=_run_process,
)
