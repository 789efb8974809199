"""What a whole process costs, with its imports and its end, and what its requests spend that on.

The clock of a fetch does not see what a library has done when it was imported. Here each program
is a client of casebook/cases/fetching/clients in a process of its own, from its start to its end.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, stacks
from casebook.cases.fetching import clients, server, trust
from casebook.cases.fetching.bench import lab_server
from casebook.errors import RunFailed
from casebook.laboratory import rounds, scripts
from casebook.laboratory.experiment import Experiment, Parameters, in_rounds
from casebook.mistakes import check_range
from casebook.stacks import commands, environments
from casebook.stacks.environments import Environment

PROBE = places.PROBES / "whole_program.py"

#: What the probe charges time to, in words, if it is not the name of a package.
PARTS = {
    "handshake": "the handshake",
    "load": "the certificates",
    "shared_context": "the adapter",
    "http": "http.client",
}


def can_pin() -> bool:
    """Say whether this system can keep a program on one core."""
    return hasattr(os, "sched_setaffinity")


@rounds.takes_until
def of_programs(
    names: Iterable[str], n: int = 30, one_core: bool = False, repeats: int | range = 1
) -> pd.DataFrame:
    """Measure programs in turns, each with n requests in threads that trust a full bundle.

    They trust it by `verify=True`. names: stacks; one with the step `shared_context` installs the
    cure, compiled as an installed package is. one_core: keep the program on one core. until, looks:
    what is to be decided (casebook/laboratory/rounds.py).

    One row a program: stack, client, n, one_core, repeat, wall_s and cpu_s (of the process, with
    imports), fetch_cpu_s (of the requests alone), loads (of bundles), loads_before (those of
    imports among them), source, instead, measured_at, and measurements.COLUMNS. Raises RunFailed
    if a response is wrong, and what Experiment.measure raises.
    """
    return _programs(names, repeats, client="threads", n=n, one_core=one_core, sample=False)


@rounds.takes_until
def by_part(names: Iterable[str], n: int = 100, repeats: int | range = 1) -> pd.DataFrame:
    """Measure what n requests by grequests spend processor time on, without imports.

    Parameters as for `of_programs`. One row a part of a program: stack, client, n, repeat, part (a
    package, with what it calls of the standard library; or, in OpenSSL, the handshake, or the
    certificates, which are loads), cpu_ms (for one request), share (of the whole fetch), source,
    instead, measured_at, and measurements.COLUMNS. Raises as `of_programs`.
    """
    frame = _programs(names, repeats, client="grequests", n=n, one_core=False, sample=True)
    if frame.empty:
        return frame
    spent = pd.DataFrame(list(frame.pop("parts"))).fillna(0.0).rename(columns=PARTS)
    shares = spent.div(spent.sum(axis="columns"), axis="index")
    figures = pd.DataFrame({"cpu_s": spent.stack(), "share": shares.stack()})
    figures = figures.rename_axis(["row", "part"]).reset_index("part")
    frame = frame.join(figures).reset_index(drop=True)
    return frame.assign(cpu_ms=1000 * frame.pop("cpu_s") / frame["n"])


def _programs(names: Iterable[str], repeats: int | range, **parameters: Any) -> pd.DataFrame:
    """Measure programs in turns: a row each, with the parameters and the figures."""
    check_range("n", parameters["n"], 1, 1000)
    programs = [(_experiment_of(parameters["client"], name), name, parameters) for name in names]
    frame = in_rounds(programs, repeats, "whole programs")
    return frame.drop(columns="sample", errors="ignore")  # an empty frame has no such column


def _experiment_of(client: str, name: str) -> Experiment:
    """Return a client as a program of a stack, with the cure if the stack has it."""
    depends_on = [clients.file_of(client), Path(__file__), *server.DEPENDENCIES]
    if _is_cured(stacks.get(name)):
        depends_on.append(places.CURE)
    return Experiment(
        PROBE, _figures, depends_on=(*depends_on, trust.dependency()), ask=_run_program
    )


def _is_cured(stack: stacks.Stack) -> bool:
    return "shared_context" in stack.steps


def _run_program(environment: Environment, parameters: Parameters) -> dict[str, Any]:
    """Run a program and check its responses; return the probe's answer, and how long it took."""
    lab, n = lab_server(), parameters["n"]
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        full = trust.of_name(trust.BUNDLE, lab.ca_file, Path(folder))
        spec = {**parameters, "url": lab.url, "bundle": full.bundle}
        spec["client"] = clients.file_of(parameters["client"])
        spec["cure"] = _compiled(environment, folder) if _is_cured(environment.stack) else ""
        began = time.perf_counter()
        answer = scripts.answer_of(environment, PROBE, spec, 60 + n, variables=full.variables)
        wall_s = time.perf_counter() - began
    if answer["ok"] != n:
        raise RunFailed(
            f"{environment.stack.name}: {n - answer['ok']} of {n} responses were wrong or missing. "
            "Nothing was recorded."
        )
    return answer | {"wall_s": round(wall_s, 6)}


def _figures(parameters: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    if parameters["sample"]:
        parts = {part: float(cpu_s) for part, cpu_s in answer["parts"].items()}
        return {"wall_s": answer["wall_s"], "parts": parts}
    figures = ("wall_s", "fetch_cpu_s", "cpu_s", "loads", "loads_before")
    return {name: answer[name] for name in figures}


def _compiled(environment: Environment, folder: str) -> str:
    """Return a folder with the cure as it is when it is installed: with its bytecode."""
    commands.output(
        [environment.python, "-m", "py_compile", shutil.copy(places.CURE, folder)],
        "compiling the cure", 60,
        environments.clean_environ(environment) | {"PYTHONDONTWRITEBYTECODE": ""},
    )  # fmt: skip
    return folder
