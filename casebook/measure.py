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

from casebook import analysis, environments, modes, observations, runs, server, stacks
from casebook.bench import Bench, Target, may_reuse
from casebook.errors import MissingInterpreter, UsageError
from casebook.observations import Observation
from casebook.runs import Run

CLIENTS = ("grequests", "requests")
SCHEMES = ("https", "http")
MAX_N = 5000


def check_parameters(
    n: Iterable[int], delay_s: float, repeats: int, client: str, scheme: str
) -> None:
    """Raise UsageError when a parameter is out of range, naming the range."""
    for value in n:
        if not 1 <= value <= MAX_N:
            raise UsageError(f"n is {value}; choose 1 to {MAX_N}")
    if not 0 <= delay_s <= server.MAX_DELAY_S:  # also refuses NaN
        raise UsageError(f"the delay is {delay_s} s; choose 0 to {server.MAX_DELAY_S:g}")
    if not 1 <= repeats <= 1000:
        raise UsageError(f"repeats is {repeats}; choose 1 to 1000")
    if client not in CLIENTS:
        raise UsageError(f"the client is {client!r}; choose one of: {', '.join(CLIENTS)}")
    if scheme not in SCHEMES:
        raise UsageError(f"the scheme is {scheme!r}; choose one of: {', '.join(SCHEMES)}")


def _progress(total: int, label: str) -> tqdm:
    in_notebook = "ipykernel" in sys.modules and not may_reuse()
    shown = in_notebook or sys.stderr.isatty()
    return tqdm(total=total, desc=label, unit="run", leave=False, disable=not shown)


def _recorded(stack: str, ns: Iterable[int], client: str, scheme: str) -> pd.DataFrame:
    """Reference rows in place of a stack that cannot run here: those at ns, else all."""
    known = runs.reference()
    rows = known[
        (known["stack"] == stack) & (known["client"] == client) & (known["scheme"] == scheme)
    ]
    wanted = rows[rows["n"].isin(list(ns))]
    return rows if wanted.empty else wanted


def measure_runs(
    names: Iterable[str],
    n: Iterable[int] | None = None,
    delay_s: float | None = None,
    repeats: int | None = None,
    client: str = "grequests",
    scheme: str = "https",
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
    check_parameters(sizes, delay_s, repeats, client, scheme)
    ready = [environments.ensure(stacks.get(name)) for name in names]
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
            with _progress(len(todo), f"{client} over {bench.scheme}") as progress:
                for environment, size, repeat in todo:
                    run = bench.run(environment, size, delay_s, client, repeat)
                    measured[run.stack].append(run)
                    progress.update()

        measure_all(ready, sizes)
        measure_all([e for e in ready if _is_concurrent(measured[e.stack.name])], further)
    return [run for its_runs in measured.values() for run in its_runs]


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
    client: str = "grequests",
    scheme: str = "https",
) -> pd.DataFrame:
    """Measure stacks; what is not said comes from the current mode.

    names: one stack or several. n: pages per run, one size or several. delay_s: seconds the
    server waits before each response. repeats: runs per stack and n.

    Returns one row a run, columns runs.FRAME_COLUMNS. Where a stack's interpreter is missing
    the rows are those of the reference machine and say so in the column `source`.

    Raises UsageError for parameters out of range, RunFailed when a response is wrong,
    MissingInterpreter when there is nothing recorded to fall back to.
    """
    names = [names] if isinstance(names, str) else list(names)
    sizes = [n] if isinstance(n, int) else n
    here = [name for name in names if _can_run(stacks.get(name))]
    frame = runs.frame(measure_runs(here, sizes, delay_s, repeats, client, scheme))
    parts = []
    for name in names:
        rows = frame[frame["stack"] == name]
        if name not in here:
            rows = _recorded(name, sizes or modes.current().ns, client, scheme)
            if rows.empty:
                environments.ensure(stacks.get(name))  # raises, and says what is missing
        parts.append(rows)
    return pd.concat(parts, ignore_index=True)


def observe(
    name: str,
    kind: str,
    n: int = 10,
    delay_s: float | None = None,
    client: str = "grequests",
    scheme: str = "https",
    steps: Iterable[str] | None = None,
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
    check_parameters([n or 1], delay_s, 1, client, scheme)
    stack = stacks.get(name)
    if steps is not None:
        stack = dataclasses.replace(stack, steps=tuple(steps))
    recorded = None if _can_run(stack) else observations.reference(name, kind, stack.steps)
    if recorded:
        return recorded
    environment = environments.ensure(stack)
    with Bench(scheme) as bench:
        return bench.observation(environment, kind, n, delay_s, client)
