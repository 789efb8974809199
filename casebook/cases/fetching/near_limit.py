"""The near-limit: the same pages, fetched by a client that costs next to nothing.

What Python takes longer than this is Python's; what this takes longer than one delay is the
machine's and the server's. It is near_limit.go (standard library only, built here, every response
checked); if no `go` is on the PATH, the reference machine's runs stand in.

An Experiment asks a script in a stack. This is a program in no stack, which is measured in turns
with runs of clients and compared with them as a run; so it has a loop of its own.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, stacks
from casebook.cases.fetching import run_record, server, trust
from casebook.cases.fetching.bench import Bench, lab_server
from casebook.cases.fetching.run_record import Run
from casebook.cases.fetching.runs import check_parameters
from casebook.errors import EnvironmentFailed, MissingInterpreter, RunFailed
from casebook.laboratory import elsewhere, measurements, reference, rounds
from casebook.laboratory.rounds import as_list, in_turns
from casebook.mistakes import for_readers
from casebook.stacks import commands, digests, environments

#: What its runs are called in the columns `stack` and `client`.
GO = "go"

SOURCE = Path(__file__).with_suffix(".go")
#: No module is needed, none may be fetched, and no other Go than the one that is here.
_OFFLINE = {
    "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GO111MODULE": "auto",
    "GOWORK": "off", "CGO_ENABLED": "0",
}  # fmt: skip
_PASSED_ON = ("PATH", "HOME", "TMPDIR", "GOROOT", "GOCACHE", "XDG_CACHE_HOME")
_BUILT_WITHIN_S = 600


def _limits(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return run_record.RUNS.of_answer(answer) if answer.get("stack") == GO else []


#: Runs of the near-limit as machine files have them.
LIMITS = elsewhere.Kind("near_limit", _limits, run_record.RUNS.numbers, others=(GO,))


def is_here() -> bool:
    """Say whether the near-limit can be measured here, or is answered by the machine file that the
    book is written from. Nothing is built.
    """
    return environments.is_another_machine() or shutil.which(GO) is not None


def build(source: Path = SOURCE) -> Path:
    """Build the program of a Go source, unless this Go has built this source already. Returns its
    path.

    Raises MissingInterpreter if there is no `go`, EnvironmentFailed with the compiler's words if
    it cannot be built.
    """
    if not is_here():
        raise MissingInterpreter("the near-limit needs Go (https://go.dev/dl/) on the PATH.")
    program = places.LOCAL / source.stem / digests.digest(source, digests.tool(GO)) / source.stem
    if not program.exists():
        environments.report(f"building {source.relative_to(places.ROOT)}")
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            draft = Path(folder) / source.stem
            environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            commands.output(
                [GO, "build", "-trimpath", "-o", draft, source],
                "`go build` (without go on the PATH, the reference run stands in)",
                _BUILT_WITHIN_S, environ | _OFFLINE, failed=EnvironmentFailed,
            )  # fmt: skip
            draft.replace(program)
    return program


@rounds.takes_until
def measure(
    n: int | Iterable[int],
    delay_s: float = 1.0,
    repeats: int | range = 1,
    beside: Iterable[str] = (),
) -> pd.DataFrame:
    """Measure the near-limit: one row a run, columns run_record.FRAME_COLUMNS and `instead`; stack
    and client are `go`. It loads its certificates once, like the cure.

    n: sizes. beside: stacks that are measured in the same rounds, in turns with it. All trust a
    full bundle (trust.BUNDLE). until, looks: as for measure.measure. Without Go its rows are the
    reference machine's. Raises as measure.measure; RunFailed also if a response was not over a
    connection of its own.
    """
    sizes, repeats = as_list(n), rounds.numbers(repeats)
    check_parameters(sizes, delay_s, len(repeats), client=None, scheme="https")
    can_measure, recorded_runs = is_here(), recorded(sizes)
    if (can_measure or recorded_runs.empty) and not environments.is_another_machine():
        build()  # raises where there is no Go
    ready = [environments.ensure(stacks.get(name)) for name in beside]
    combinations = product(sizes, [None, *ready] if can_measure else ready)
    parameters: dict[str, Any] = {"delay_s": delay_s, "trust": trust.BUNDLE}
    runs = [
        Bench().run(environment, repeat, n=size, client=environment.stack.client, **parameters)
        if environment
        else _run(n=size, repeat=repeat, **parameters)
        for repeat, (size, environment) in in_turns(combinations, repeats)
    ]
    frame = run_record.frame(runs).assign(instead="")
    if can_measure:
        return frame
    recorded_runs = recorded_runs[recorded_runs["repeat"].isin(repeats)]
    return pd.concat([recorded_runs, frame], ignore_index=True) if runs else recorded_runs


@for_readers
def recorded(ns: Iterable[int]) -> pd.DataFrame:
    """Read the recorded runs of the near-limit at these sizes, or at the nearest if none of
    them was recorded: columns run_record.FRAME_COLUMNS, and `instead`.
    """
    rows = elsewhere.rows(LIMITS)
    return reference.select_recorded(rows, {"stack": GO}, {"n": list(ns)}).reindex(
        columns=[*run_record.FRAME_COLUMNS, "instead"]
    )


def _run(**parameters: Any) -> Run:
    code = [SOURCE, Path(__file__), *server.MADE_OF]
    go_version = measurements.Using(GO, digests.tool(GO))
    key = measurements.key_of(code, go_version, parameters, trust.dependency())
    measure_now = partial(_measure_now, **parameters)
    return run_record.from_stored(measurements.stored_or_new(key, measure_now))


def _measure_now(n: int, delay_s: float, **parameters: Any) -> dict[str, Any]:
    # Generous: all at once is one delay and some milliseconds of handshake for each.
    within_s = 60 + delay_s + 0.05 * n
    lab = lab_server()
    lab.reset()
    with tempfile.TemporaryDirectory() as folder:
        trusted = trust.of_name(parameters["trust"], lab.ca_file, Path(folder)).bundle
        spec = {"url": lab.url, "n": n, "delay_s": delay_s, "trusted": trusted, "bound_s": within_s}
        # No variables: neither proxies nor certificates of this shell.
        output = commands.output(
            [build()], "near_limit.go", within_s + 10, {}, text=json.dumps(spec)
        )
    answer, counters = json.loads(output) | {"python": "", "openssl": None}, lab.counters() or {}
    identity = {"stack": GO, "client": GO, "scheme": "https", "n": n, "delay_s": delay_s}
    run = run_record.from_answer(answer, counters, **identity, **parameters)
    if (counters["connections"], counters["requests"]) != (n, n):
        raise RunFailed(
            f"{GO}: {counters['requests']} requests over {counters['connections']} connections "
            f"reached the server, and not {n} over as many. Nothing was recorded."
        )
    return run_record.to_store(run)
