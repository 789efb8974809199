"""Stacks and parameters -> validated runs, as frames.

Each run is a process of its own, in a declared environment, against a lab server that counts.
"""

import dataclasses
from collections.abc import Iterable
from itertools import product

import pandas as pd

from casebook import stacks, words
from casebook.cases.fetching import analysis, clients, modes, observations, run_record, server
from casebook.cases.fetching import trust as trusts
from casebook.cases.fetching.bench import Bench
from casebook.cases.fetching.observations import Observation
from casebook.cases.fetching.run_record import Run
from casebook.errors import UsageError
from casebook.laboratory import elsewhere, reference, rounds
from casebook.laboratory.experiment import can_run, runnable
from casebook.laboratory.progress import Progress
from casebook.laboratory.rounds import as_list, in_turns
from casebook.mistakes import for_readers
from casebook.stacks import Stack, environments

MAX_N = 5000

#: One way to fetch: stack, client, trust, scheme.
_Way = tuple[str, str, str, str]


def check_parameters(
    n: Iterable[int],
    delay_s: float,
    repeats: int,
    client: str | None,
    scheme: str,
    trust: str = trusts.AUTHORITY,
) -> None:
    """Raise UsageError, which names the range, if a parameter is out of range."""
    for parameter, value, unit, minimum, maximum in (
        *(("n", size, "", 1, MAX_N) for size in n),
        ("the delay", delay_s, " s", 0, server.MAX_DELAY_S),
        ("repeats", repeats, "", 1, 1000),
    ):
        if not minimum <= value <= maximum:  # also refuses NaN
            raise UsageError(f"{parameter} is {value}{unit}; choose {minimum} to {maximum:g}")
    if client is not None:
        clients.name_of(client)
    for parameter, name, names in (
        ("scheme", scheme, server.SCHEMES),
        ("trust", trust, trusts.NAMES),
    ):
        if name not in names:
            raise UsageError(f"the {parameter} is {name!r}; choose one of: {', '.join(names)}")
    if trust != trusts.AUTHORITY and scheme != "https":
        raise UsageError(f"the trust {trust!r} means nothing over {scheme}: choose https")


@for_readers
def recorded(
    stack: str,
    ns: Iterable[int],
    client: str | None = None,
    scheme: str = "https",
    trust: str = trusts.AUTHORITY,
    delay_s: float | None = None,
    repeats: int | range | None = None,
) -> pd.DataFrame:
    """Read what other machines recorded of a stack.

    Parameters:
        stack: its name.
        ns: sizes. If none of them was recorded, the nearest one is taken, and `instead` says so.
        client: None for the stack's own.
        scheme, trust: as for `measure`.
        delay_s: as ns; None takes whatever was recorded.
        repeats: only these rounds; a number takes that many from the first.

    Returns the rows of one machine, the reference machine among equals: columns
    run_record.FRAME_COLUMNS, and `instead`. Empty if nothing like it was recorded.
    """
    exactly = {"stack": stack, "client": _client(stacks.get(stack), client)}
    exactly |= {"scheme": scheme, "trust": trust}
    nearly = {} if delay_s is None else {"delay_s": [delay_s]}
    rows = reference.select_recorded(
        elsewhere.rows(run_record.RUNS), exactly, nearly | {"n": list(ns)}
    ).reindex(columns=[*run_record.FRAME_COLUMNS, "instead"])
    return rows if repeats is None else rows[rows["repeat"].isin(rounds.numbers(repeats))]


def measure_runs(
    names: Iterable[str],
    n: Iterable[int] | None = None,
    delay_s: float | None = None,
    repeats: int | range | None = None,
    client: str | Iterable[str | None] | None = None,
    scheme: str | Iterable[str] = "https",
    trust: str | Iterable[str] = trusts.AUTHORITY,
    target: server.Server | None = None,
    mode: modes.Mode | None = None,
) -> list[Run]:
    """Measure stacks here and now.

    Parameters:
        names, n, delay_s, repeats, client, scheme, trust: as for `measure`.
        target: a server to ask in place of the lab's own.
        mode: in place of the current one.

    Returns the runs, stack by stack. Raises UsageError for parameters out of range, RunFailed if a
    response is wrong, MissingInterpreter if a stack cannot run here.
    """
    mode = mode or modes.current()
    sizes = list(mode.ns if n is None else n)
    further = mode.ns_if_concurrent if n is None else ()
    delay_s = mode.delay_s if delay_s is None else delay_s
    repeats = rounds.numbers(mode.repeats if repeats is None else repeats)
    clients_, schemes, trusted = as_list(client), as_list(scheme), as_list(trust)
    for combination in product(clients_, schemes, trusted):
        check_parameters(sizes, delay_s, len(repeats), *combination)
    chosen = [stacks.get(name) for name in dict.fromkeys(names)]
    fetching = dict.fromkeys(_client(*pair) for pair in product(chosen, clients_))
    ready = {stack.name: environments.ensure(stack) for stack in chosen}
    runs: list[Run] = []

    def measure_all(combinations: Iterable[_Way], at_sizes: Iterable[int]) -> None:
        sized = list(product(dict.fromkeys(at_sizes), combinations))
        with Progress(len(sized) * len(repeats), words.join(fetching)) as progress:
            for repeat, (size, (stack, name, trusting, over)) in in_turns(sized, repeats):
                parameters = {"n": size, "client": name, "delay_s": delay_s, "trust": trusting}
                runs.append(Bench(over, target).run(ready[stack], repeat, **parameters))
                progress.step()

    # What is asked for twice, also by two names of the same client, is measured once.
    combinations = list(
        dict.fromkeys(
            (stack.name, _client(stack, client_name), trusting, over)
            for stack, client_name, trusting, over in product(chosen, clients_, trusted, schemes)
        )
    )
    measure_all(combinations, sizes)
    if further:
        columns = ["stack", "client", "trust", "scheme"]
        by_way = run_record.frame(runs).groupby(columns, sort=False)
        verdicts = {group: analysis.verdict_of(rows) for group, rows in by_way}
        measure_all(
            [
                combination
                for combination in combinations
                if verdicts[combination] == analysis.CONCURRENT
            ],
            further,
        )
    return sorted(runs, key=lambda run: [*ready].index(run.stack))


def _client(stack: Stack, client: str | None) -> str:
    """Return the client that was asked for, else the stack's own. Raises UsageError if there is
    none.
    """
    if not (client or stack.client):
        raise UsageError(
            f"{stack.name} is an environment for another experiment, and fetches nothing from "
            "the lab server: `casebook stacks` says what it is for."
        )
    return clients.name_of(client or stack.client)


@rounds.takes_until
def measure(
    names: str | Iterable[str],
    n: int | Iterable[int] | None = None,
    delay_s: float | None = None,
    repeats: int | range | None = None,
    client: str | Iterable[str | None] | None = None,
    scheme: str | Iterable[str] = "https",
    trust: str | Iterable[str] = trusts.AUTHORITY,
) -> pd.DataFrame:
    """Measure stacks in turns. Defaults come from the current mode.

    Parameters:
        names: of stacks, one or several. So for n, client, scheme and trust: every combination is
            run.
        n: pages per run.
        delay_s: seconds that the server waits before each response.
        repeats: rounds, in each of which everything is run once.
        client: of fetching/clients; None for the stack's own, mostly grequests.
        scheme: "https" or "http".
        trust: a name of casebook/cases/fetching/trust.py.
        until, looks: what is to be decided (casebook/laboratory/rounds.py).

    Returns one row a run, columns run_record.FRAME_COLUMNS and `instead`. If a stack's interpreter
    is missing, or its environment cannot be made, the rows are those of another machine, and
    `source` and `instead` say so.

    Raises UsageError for parameters out of range, RunFailed if a response is wrong, and what
    environments.ensure raises if nothing was recorded either.
    """
    names, mode = list(dict.fromkeys(as_list(names))), modes.current()
    sizes = None if n is None else as_list(n)
    delay_s = mode.delay_s if delay_s is None else delay_s
    runnable_names = runnable(names)
    runs = measure_runs(runnable_names, sizes, delay_s, repeats, client, scheme, trust)
    frame = run_record.frame(runs).assign(instead="")
    parts = []
    for name in names:
        if name in runnable_names:
            parts.append(frame[frame["stack"] == name])
            continue
        combinations = dict.fromkeys(
            (_client(stacks.get(name), client_name), over, trusting)
            for client_name, over, trusting in product(
                as_list(client), as_list(scheme), as_list(trust)
            )
        )
        frames = (
            recorded(name, sizes or mode.ns, *combination, delay_s, repeats)
            for combination in combinations
        )
        parts.append(pd.concat(frames))
        # Of later rounds, nothing may be recorded.
        if parts[-1].empty and (repeats is None or 1 in rounds.numbers(repeats)):
            environments.ensure(stacks.get(name))  # raises, and says what is missing
    return pd.concat(parts, ignore_index=True)


@for_readers
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
    """Run a stack once with an instrument in it. The result is no timing.

    Parameters:
        name: of the stack.
        kind: profile, trace, timeline, turns or provenance.
        n: pages. With 0, only the steps are taken and nothing is fetched (for provenance).
        delay_s, client, scheme, trust: as for `measure`.
        steps: in place of the stack's own.

    If the stack cannot run, another machine's observation of the same is returned, with source
    `reference`. Raises as `measure`.
    """
    if kind not in observations.KINDS:
        raise UsageError(f"{kind!r} is not observed; choose: {', '.join(observations.KINDS)}")
    delay_s = modes.current().delay_s if delay_s is None else delay_s
    check_parameters([n or 1], delay_s, 1, client, scheme, trust)
    stack = stacks.get(name)
    parameters = {"n": n, "delay_s": delay_s, "client": _client(stack, client), "trust": trust}
    if steps is not None:
        stack = dataclasses.replace(stack, steps=tuple(steps))
    if not can_run(stack):
        client_name = _client(stack, client)
        steps = stack.steps
        if recorded_observation := observations.recorded(
            name, kind, steps, n, delay_s, client_name, scheme, trust
        ):
            return recorded_observation
    return Bench(scheme).observation(environments.ensure(stack), kind, **parameters)
