"""Stacks and parameters -> validated runs, as frames.

    frame = measure(["stage-1-py27", "stage-2-py27"], n=[3, 10])
    seen = observe("stage-2-py27", "timeline", n=5)

Each run is a process of its own, in a declared environment, against a lab server that counts.
"""

import dataclasses
import sys
from collections.abc import Iterable

import pandas as pd
from tqdm import tqdm

from casebook import analysis, environments, modes, observations, runs, server, stacks, words
from casebook import trust as trusts
from casebook.bench import Bench, Target, may_reuse
from casebook.errors import MissingInterpreter, UsageError
from casebook.observations import Observation
from casebook.probes import clients
from casebook.runs import Run

CLIENTS = tuple(clients.CLIENTS)
SCHEMES = ("https", "http")
MAX_N = 5000


def check_parameters(
    n: Iterable[int],
    delay_s: float,
    repeats: int,
    client: str | None,
    scheme: str,
    trust: str = trusts.AUTHORITY,
) -> None:
    """Raise UsageError when a parameter is out of range, naming the range."""
    for value in n:
        if not 1 <= value <= MAX_N:
            raise UsageError(f"n is {value}; choose 1 to {MAX_N}")
    if not 0 <= delay_s <= server.MAX_DELAY_S:  # also refuses NaN
        raise UsageError(f"the delay is {delay_s} s; choose 0 to {server.MAX_DELAY_S:g}")
    if not 1 <= repeats <= 1000:
        raise UsageError(f"repeats is {repeats}; choose 1 to 1000")
    if client is not None and client not in CLIENTS:
        raise UsageError(f"the client is {client!r}; choose one of: {', '.join(CLIENTS)}")
    if scheme not in SCHEMES:
        raise UsageError(f"the scheme is {scheme!r}; choose one of: {', '.join(SCHEMES)}")
    if trust not in trusts.NAMES:
        raise UsageError(f"the trust is {trust!r}; choose one of: {', '.join(trusts.NAMES)}")
    if trust != trusts.AUTHORITY and scheme != "https":
        raise UsageError(f"the trust {trust!r} means nothing over {scheme}: choose https")


def _progress(total: int, label: str) -> tqdm:
    in_notebook = "ipykernel" in sys.modules and not may_reuse()
    shown = in_notebook or sys.stderr.isatty()
    return tqdm(total=total, desc=label, unit="run", leave=False, disable=not shown)


def recorded(
    stack: str,
    ns: Iterable[int],
    client: str | None = None,
    scheme: str = "https",
    trust: str = trusts.AUTHORITY,
) -> pd.DataFrame:
    """The reference machine's rows of a stack: those at ns, else all. Columns runs.FRAME_COLUMNS.

    client: None means the stack's own. Empty where nothing like it was recorded.
    """
    known = runs.reference()
    rows = known[
        (known["stack"] == stack)
        & (known["client"] == _client(stacks.get(stack), client))
        & (known["scheme"] == scheme)
        & (known["trust"] == trust)
    ]
    wanted = rows[rows["n"].isin(list(ns))]
    return rows if wanted.empty else wanted


def measure_runs(
    names: Iterable[str],
    n: Iterable[int] | None = None,
    delay_s: float | None = None,
    repeats: int | None = None,
    client: str | None = None,
    scheme: str = "https",
    trust: str = trusts.AUTHORITY,
    target: Target | None = None,
    mode: modes.Mode | None = None,
) -> list[Run]:
    """Measure stacks here and now: the runs, stack by stack.

    Parameters as for `measure`; target: another server than the lab's own; mode: in place of
    the current one. Raises UsageError for parameters out of range, RunFailed when a response
    is wrong, MissingInterpreter when a stack cannot run here.
    """
    mode = mode or modes.current()
    sizes = list(mode.ns if n is None else n)
    further = mode.ns_if_concurrent if n is None else ()
    delay_s = mode.delay_s if delay_s is None else delay_s
    repeats = mode.repeats if repeats is None else repeats
    check_parameters(sizes, delay_s, repeats, client, scheme, trust)
    those = [stacks.get(name) for name in names]
    fetching = {stack.name: _client(stack, client) for stack in those}
    ready = [environments.ensure(stack) for stack in those]
    measured: dict[str, list[Run]] = {environment.stack.name: [] for environment in ready}

    with Bench(scheme, target) as bench:

        def measure_all(those, at_sizes) -> None:
            # Repeats are the outer loop: a slow minute of the machine then touches all alike.
            todo = [
                (environment, size, repeat)
                for repeat in range(1, repeats + 1)
                for size in at_sizes
                for environment in those
            ]
            asked = {"delay_s": delay_s, "trust": trust}
            with _progress(len(todo), words.join(dict.fromkeys(fetching.values()))) as progress:
                for environment, size, repeat in todo:
                    name = fetching[environment.stack.name]
                    run = bench.run(environment, repeat, n=size, client=name, **asked)
                    measured[run.stack].append(run)
                    progress.update()

        measure_all(ready, sizes)
        measure_all([e for e in ready if _is_concurrent(measured[e.stack.name])], further)
    return [run for its_runs in measured.values() for run in its_runs]


def _client(stack, client: str | None) -> str:
    """Who fetches: the one asked for, else the stack's own. UsageError where there is none."""
    if not (client or stack.client):
        raise UsageError(
            f"{stack.name} is an environment for another experiment, and fetches nothing from "
            "the lab server: `casebook stacks` says what it is for."
        )
    return client or stack.client


def _is_concurrent(its_runs: list[Run]) -> bool:
    return analysis.verdict_of(runs.frame(its_runs)) == analysis.CONCURRENT


def _can_run(stack) -> bool:
    """Whether a stack's interpreter is here. Raises MissingInterpreter if it has to be."""
    try:
        environments.ensure(stack)
    except MissingInterpreter:
        if stack.python in environments.required():
            raise
        return False
    return True


def measure(
    names: str | Iterable[str],
    n: int | Iterable[int] | None = None,
    delay_s: float | None = None,
    repeats: int | None = None,
    client: str | None = None,
    scheme: str = "https",
    trust: str = trusts.AUTHORITY,
) -> pd.DataFrame:
    """Measure stacks; what is not said comes from the current mode.

    names: one stack or several. n: pages per run, one size or several. delay_s: seconds the
    server waits before each response. repeats: runs per stack and n. client: who fetches, of
    CLIENTS; None: the stack's own, mostly grequests. trust: of casebook/trust.py.

    Returns one row a run, columns runs.FRAME_COLUMNS. Where a stack's interpreter is missing
    the rows are those of the reference machine and say so in the column `source`.

    Raises UsageError for parameters out of range, RunFailed when a response is wrong,
    MissingInterpreter when there is nothing recorded to fall back to.
    """
    names = [names] if isinstance(names, str) else list(names)
    sizes = [n] if isinstance(n, int) else n
    here = [name for name in names if _can_run(stacks.get(name))]
    frame = runs.frame(measure_runs(here, sizes, delay_s, repeats, client, scheme, trust))
    parts = []
    for name in names:
        rows = frame[frame["stack"] == name]
        if name not in here:
            rows = recorded(name, sizes or modes.current().ns, client, scheme, trust)
            if rows.empty:
                environments.ensure(stacks.get(name))  # raises, and says what is missing
        parts.append(rows)
    return pd.concat(parts, ignore_index=True)


def observe(
    name: str,
    kind: str,
    n: int = 10,
    delay_s: float | None = None,
    client: str | None = None,
    scheme: str = "https",
    steps: Iterable[str] | None = None,
    trust: str = trusts.AUTHORITY,
) -> Observation:
    """Run a stack once with an instrument in it; what comes back is no timing.

    kind: profile, trace, timeline or provenance. steps: in place of the stack's own; with
    n = 0 only the steps are taken and nothing is fetched (for provenance).

    Where the interpreter is missing, the reference machine's observation is given, with
    source `reference`. Raises as `measure`.
    """
    if kind not in observations.KINDS:
        raise UsageError(f"{kind!r} is not observed; choose: {', '.join(observations.KINDS)}")
    delay_s = modes.current().delay_s if delay_s is None else delay_s
    check_parameters([n or 1], delay_s, 1, client, scheme, trust)
    stack = stacks.get(name)
    asked = {"n": n, "delay_s": delay_s, "client": _client(stack, client), "trust": trust}
    if steps is not None:
        stack = dataclasses.replace(stack, steps=tuple(steps))
    recorded = None if _can_run(stack) else observations.reference(name, kind, stack.steps)
    if recorded:
        return recorded
    environment = environments.ensure(stack)
    with Bench(scheme) as bench:
        return bench.observation(environment, kind, **asked)
