"""The near-limit: the same pages, fetched by a client that costs next to nothing.

What Python takes longer than this is Python's; what this takes longer than one delay is the
machine's and the server's. It is near_limit.go (standard library only, built here, every response
checked); if no `go` is on the PATH, another machine's runs stand in.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, stacks
from casebook.cases.fetching import run_record, server, trust
from casebook.cases.fetching.bench import fetching, lab_server
from casebook.cases.fetching.runs import check_parameters
from casebook.errors import EnvironmentFailed, MissingInterpreter, RunFailed
from casebook.laboratory import measurements, rounds
from casebook.laboratory.experiment import Experiment, answers_in_rounds
from casebook.laboratory.rounds import as_list
from casebook.mistakes import for_readers
from casebook.stacks import Stack, commands, digests, environments

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


def is_here() -> bool:
    """Say whether the near-limit can be measured here.

    Otherwise it is answered by the machine file that the book is written from. Nothing is built.
    """
    return environments.is_another_machine() or shutil.which(GO) is not None


def build(source: Path = SOURCE) -> Path:
    """Build the program of a Go source, unless this Go has built this source already.

    Returns its path.

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
    """Measure the near-limit, a program in Go that loads its certificates once, like the cure.

    One row a run, columns run_record.FRAME_COLUMNS and `instead`; stack and client are `go`.

    n: sizes. beside: stacks that are measured in the same rounds, in turns with it. All trust a
    full bundle (trust.BUNDLE). until, looks: as for runs.measure. Without Go its rows are
    another machine's. Raises as runs.measure; RunFailed also if a response was not over a
    connection of its own.
    """
    sizes, numbers = as_list(n), rounds.numbers(repeats)
    check_parameters(sizes, delay_s)
    recorded_runs = pd.DataFrame() if is_here() else recorded(sizes)
    if recorded_runs.empty and not environments.is_another_machine():
        build()  # raises if there is no Go
    stacks_beside = list(map(stacks.get, beside))
    for stack in stacks_beside:
        environments.ensure(stack)
    experiments: list[tuple[Experiment, list[Stack], str]] = [
        (fetching(stack, stack.client), [stack], stack.client) for stack in stacks_beside
    ]
    if recorded_runs.empty:
        experiments.insert(0, (_experiment(), [], GO))
    parameters = {"delay_s": delay_s, "trust": trust.BUNDLE, "scheme": "https"}
    variants = [
        (experiment, of, parameters | {"n": size, "client": client})
        for size, (experiment, of, client) in product(sizes, experiments)
    ]
    measured = [answer for _, answer in answers_in_rounds(variants, numbers, "the near-limit")]
    frame = run_record.frame_of(measured, GO)
    if recorded_runs.empty:
        return frame
    recorded_runs = recorded_runs[recorded_runs["repeat"].isin(numbers)]
    return pd.concat([recorded_runs, frame], ignore_index=True) if measured else recorded_runs


@for_readers
def recorded(ns: Iterable[int]) -> pd.DataFrame:
    """Read the recorded runs of the near-limit at these sizes.

    If none of them was recorded, those at the nearest. Columns: run_record.FRAME_COLUMNS, and
    `instead`.
    """
    parameters = {"n": None, "delay_s": None, "trust": trust.BUNDLE, "client": GO}
    parameters |= {"scheme": "https"}
    nearest = {"n": list(ns), "delay_s": ()}
    return run_record.frame_of(_LIMIT.recorded([], parameters, nearest=nearest), GO)


def _question_parts(
    targets: Sequence[Any],  # noqa: ARG001  Experiment.form is given the stacks, and Go has none
    parameters: dict[str, Any],
    repeat: Any,
) -> Sequence[Any]:
    """Return the parts of the question, in the form that machine files have: Experiment.form."""
    return ({name: parameters[name] for name in ("n", "delay_s", "trust")} | {"repeat": repeat},)


#: Runs of the near-limit as machine files have them.
_LIMIT = Experiment(SOURCE, run_record.figures, form=_question_parts)


def _experiment() -> Experiment:
    """Return the experiment that runs the program of this machine's Go."""
    go_version = measurements.Using(GO, digests.tool(GO))
    files = (Path(__file__), *server.DEPENDENCIES)
    return replace(_LIMIT, depends_on=(*files, go_version, trust.dependency()), ask=_measure)


def _measure(parameters: Mapping[str, Any]) -> dict[str, Any]:
    n, delay_s = parameters["n"], parameters["delay_s"]
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
    stored = run_record.to_store(GO, n, answer, counters)
    if (counters["connections"], counters["requests"]) != (n, n):
        raise RunFailed(
            f"{GO}: {counters['requests']} requests over {counters['connections']} connections "
            f"reached the server, and not {n} over as many. Nothing was recorded."
        )
    return stored
