"""Stacks and parameters -> validated runs, as frames.

Each run is a process of its own, in a declared environment, against a lab server that counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from casebook import stacks, words
from casebook.cases.fetching import analysis, clients, modes, observations, run_record, server
from casebook.cases.fetching import trust as trusts
from casebook.cases.fetching.bench import fetching
from casebook.cases.fetching.observations import Observation
from casebook.cases.fetching.run_record import Run
from casebook.errors import UsageError
from casebook.laboratory import rounds
from casebook.laboratory.experiment import answers_in_rounds, runnable
from casebook.laboratory.rounds import as_list
from casebook.mistakes import check_choice, check_range, for_readers
from casebook.stacks import Stack, environments

MAX_N = 5000


class FetchSetup(NamedTuple):
    """One way to fetch, by names: what a stack does with a client. The size is apart from it."""

    stack: str
    client: str
    trust: str
    scheme: str


def check_parameters(
    n: Iterable[int],
    delay_s: float,
    client: str | None = None,
    scheme: str = "https",
    trust: str = trusts.AUTHORITY,
) -> None:
    """Raise UsageError, which names the range, if a parameter is out of range."""
    for parameter, value, unit, minimum, maximum in (
        *(("n", size, "", 1, MAX_N) for size in n),
        ("the delay", delay_s, " s", 0, server.MAX_DELAY_S),
    ):
        check_range(parameter, value, minimum, maximum, unit)
    if client is not None:
        clients.name_of(client)
    for parameter, name, names in (
        ("scheme", scheme, server.SCHEMES),
        ("trust", trust, trusts.NAMES),
    ):
        check_choice(f"the {parameter}", name, names)
    if trust != trusts.AUTHORITY and scheme != "https":
        raise UsageError(f"the trust {trust!r} means nothing over {scheme}: choose https")


@for_readers
def recorded(
    stack: str,
    ns: Iterable[int],
    repeats: int | range | None = None,
    delay_s: float | None = None,
    **options: str | None,
) -> pd.DataFrame:
    """Read what other machines recorded of a stack.

    Parameters:
        stack: its name.
        ns: sizes. If none of them was recorded, the nearest one is taken, and `instead` says so.
        repeats: only these rounds; a number takes that many from the first.
        delay_s: as ns; None takes whatever was recorded.
        options: client, scheme and trust, as for `measure`.

    Returns the rows of one machine, the reference machine among equals: columns
    run_record.FRAME_COLUMNS, and `instead`. Empty if nothing like it was recorded.
    """
    if unknown := options.keys() - {"client", "scheme", "trust"}:
        raise UsageError(f"recorded knows no {min(unknown)}=; there is client, scheme, trust")
    if delay_s is not None:
        check_range("the delay", delay_s, 0, server.MAX_DELAY_S, " s")
    target = stacks.get(stack)
    parameters: dict[str, Any] = {"scheme": "https", "trust": trusts.AUTHORITY, **options}
    parameters["client"] = _client(target, options.get("client"))
    parameters |= {"delay_s": delay_s, "n": None}
    nearest: dict[str, list[float]] = {
        "delay_s": [] if delay_s is None else [delay_s],
        "n": list(ns),
    }
    return run_record.frame_of(run_record.FETCHES.recorded([target], parameters, repeats, nearest))


def measure_runs(
    names: Iterable[str],
    target: server.Server | None = None,
    mode: modes.Mode | None = None,
    **parameters: Any,
) -> list[Run]:
    """Measure stacks here and now.

    Parameters:
        names: of stacks.
        target: a server to ask in place of the lab's own.
        mode: in place of the current one.
        parameters: n, delay_s, repeats, client, scheme and trust, as for `measure`.

    Returns the runs, stack by stack. Raises UsageError for parameters out of range, RunFailed if a
    response is wrong, MissingInterpreter if a stack cannot run here.
    """
    chosen = [stacks.get(name) for name in dict.fromkeys(names)]
    plan = _Plan.from_parameters(mode or modes.current(), **parameters)
    fetches = plan.fetches(chosen)
    for stack in chosen:
        environments.ensure(stack)  # raises, and says what is missing
    return _planned_runs(plan, fetches, target)


@dataclass(frozen=True)
class _Plan:
    """What is asked of each stack: `measure` says what the fields are."""

    sizes: list[int]
    #: Of what comes out concurrent.
    further_sizes: Sequence[int]
    delay_s: float
    repeats: range
    clients: list[str | None]
    schemes: list[str]
    trusts: list[str]

    @classmethod
    def from_parameters(cls, mode: modes.Mode, **parameters: Any) -> "_Plan":
        """Return what was asked for, with the defaults of a mode. Raises UsageError."""
        given = {name: value for name, value in parameters.items() if value is not None}
        repeats = rounds.numbers(given.get("repeats", mode.repeats))
        plan = cls(
            as_list(given.get("n", mode.ns)),
            () if "n" in given else mode.ns_if_concurrent,
            given.get("delay_s", mode.delay_s),
            repeats,
            as_list(given.get("client", [None])),
            as_list(given.get("scheme", "https")),
            as_list(given.get("trust", trusts.AUTHORITY)),
        )
        for client, scheme, trust in product(plan.clients, plan.schemes, plan.trusts):
            check_parameters(plan.sizes, plan.delay_s, client, scheme, trust)
        return plan

    def fetches(self, chosen: Iterable[Stack]) -> list[FetchSetup]:
        """Return each way to fetch, stack by stack. Raises UsageError for a stack without a client.

        What is asked for twice, also by two names of the same client, is there once.
        """
        choices = product(chosen, self.clients, self.trusts, self.schemes)
        return list(
            dict.fromkeys(
                FetchSetup(stack.name, _client(stack, client), trust, scheme)
                for stack, client, trust, scheme in choices
            )
        )


def _planned_runs(
    plan: _Plan, fetches: list[FetchSetup], target: server.Server | None = None
) -> list[Run]:
    """Measure what is planned, and further sizes of what is concurrent; return it by stack."""
    runs = _runs(fetches, plan.sizes, plan, target)
    if plan.further_sizes:
        by_fetch = run_record.frame(runs).groupby([*FetchSetup._fields], sort=False)
        verdicts = {fetch: analysis.verdict_of(rows) for fetch, rows in by_fetch}
        concurrent = [fetch for fetch in fetches if verdicts[fetch] == analysis.CONCURRENT]
        runs += _runs(concurrent, plan.further_sizes, plan, target)
    names = list(dict.fromkeys(fetch.stack for fetch in fetches))
    return sorted(runs, key=lambda run: names.index(run.stack))


def _runs(
    fetches: list[FetchSetup], sizes: Iterable[int], plan: _Plan, target: server.Server | None
) -> list[Run]:
    """Measure in turns: each size, each way to fetch."""
    variants = [
        (
            fetching(stacks.get(fetch.stack), fetch.client, target=target),
            fetch.stack,
            {
                "n": size,
                "client": fetch.client,
                "delay_s": plan.delay_s,
                "trust": fetch.trust,
                "scheme": target.url.partition(":")[0] if target else fetch.scheme,
            },
        )
        for size, fetch in product(dict.fromkeys(sizes), fetches)
    ]
    label = words.join(dict.fromkeys(fetch.client for fetch in fetches))
    return [
        run_record.from_measurement(measurement)
        for _, measurement in answers_in_rounds(variants, plan.repeats, label)
    ]


def _client(stack: Stack, client: str | None) -> str:
    """Return the client that was asked for, else the stack's own.

    Raises UsageError if there is none.
    """
    if not (client or stack.client):
        raise UsageError(
            f"{stack.name} is an environment for another experiment, and fetches nothing from "
            "the lab server: `casebook stacks` says what it is for."
        )
    return clients.name_of(client or stack.client)


@rounds.takes_until
def measure(  # noqa: PLR0913  what a reader may choose
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
        names: one stack name or several; n, client, scheme and trust also take several, and every
            combination is run.
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
    names = list(dict.fromkeys(as_list(names)))
    parameters: dict[str, Any] = {"n": n, "delay_s": delay_s, "repeats": repeats}
    parameters |= {"client": client, "scheme": scheme, "trust": trust}
    plan = _Plan.from_parameters(modes.current(), **parameters)
    runnable_names = runnable(names)
    fetches_here = plan.fetches(map(stacks.get, runnable_names))
    frame = run_record.frame(_planned_runs(plan, fetches_here)).assign(instead="")
    frames = [
        frame[frame["stack"] == name] if name in runnable_names else _stand_ins(name, plan, repeats)
        for name in names
    ]
    return pd.concat(frames, ignore_index=True)


def _stand_ins(name: str, plan: _Plan, repeats: int | range | None) -> pd.DataFrame:
    """Return what another machine recorded, for a stack that cannot run here.

    It may be nothing, if only later rounds are asked for. If there is no first round either, this
    raises what environments.ensure raises.
    """
    stack = stacks.get(name)
    frame = pd.concat(
        recorded(
            name, plan.sizes, repeats, plan.delay_s,
            client=fetch.client, scheme=fetch.scheme, trust=fetch.trust,
        )
        for fetch in plan.fetches([stack])
    )  # fmt: skip
    if frame.empty and (repeats is None or 1 in rounds.numbers(repeats)):
        environments.ensure(stack)  # raises, and says what is missing
    return frame


@for_readers
def observe(  # noqa: PLR0913  what a reader may choose
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
    check_choice("the kind", kind, observations.KINDS)
    delay_s = modes.current().delay_s if delay_s is None else delay_s
    check_parameters([n or 1], delay_s, client, scheme, trust)
    stack = stacks.get(name)
    parameters = {"n": n, "delay_s": delay_s, "client": _client(stack, client), "trust": trust}
    parameters |= {"gather": kind, "scheme": scheme}
    if steps is not None:
        stack = replace(stack, steps=tuple(steps))
    experiment = fetching(stack, str(parameters["client"]), kind)
    return observations.from_measurement(experiment.first_answer([stack], parameters))
