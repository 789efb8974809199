"""Whole programs: a client with its imports and its end, and what its processor time is spent on.

The clock of a fetch does not see what a library has done when it was imported. Here a program is
one process, from its start to its end.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import clients, places, server, stacks
from casebook.errors import RunFailed
from casebook.runs import decisions, measurements, trust
from casebook.runs.decisions import Question
from casebook.runs.measure import in_turns
from casebook.stacks import digests, environments, scripts
from casebook.stacks.environments import Environment
from casebook.words import LIVE

PROBE = places.PROBES / "whole_program.py"

#: What the probe charges time to, in words, where it is not the name of a package.
PARTS = {
    "handshake": "the handshake",
    "load": "the certificates",
    "shared_context": "the adapter",
    "http": "http.client",
}

_STEP_OF_THE_CURE = "shared_context"


def can_pin() -> bool:
    """Whether this system can keep a program on one core."""
    return hasattr(os, "sched_setaffinity")


def measure(
    names: Iterable[str],
    n: int = 30,
    client: str = "threads",
    one_core: bool = False,
    until: Question | Iterable[Question] = (),
    looks: Iterable[int] = decisions.LOOKS,
) -> pd.DataFrame:
    """Programs in turns, each with n requests that trust a full bundle by `verify=True`.

    names: stacks; one with the step `shared_context` installs the cure, compiled as an installed
    package is. client: of casebook/clients. one_core: keep the program on one core. until, looks:
    what is to be decided (casebook/runs/decisions.py); without, one round.

    One row a program: stack, client, n, one_core, repeat, wall_s and cpu_s (of the process, with
    imports), fetch_cpu_s (of the requests alone), loads (of bundles), loads_before (those of
    imports among them), source, measured_at, and measurements.COLUMNS. Raises RunFailed when a
    response is wrong, and MissingInterpreter.
    """
    asked = {"client": client, "n": n, "one_core": one_core, "sample": False}
    return _in_rounds(list(names), asked, until, looks, pd.DataFrame)


def by_part(
    names: Iterable[str],
    n: int = 100,
    client: str = "grequests",
    until: Question | Iterable[Question] = (),
    looks: Iterable[int] = decisions.LOOKS,
) -> pd.DataFrame:
    """What n requests spend processor time on, without imports. Parameters as for `measure`.

    One row a part of a program: stack, client, n, repeat, part (a package, with what it calls of
    the standard library; or, in OpenSSL, the handshake, or the certificates, which are loads),
    cpu_ms (for one request), share (of the whole fetch), source, measured_at, and
    measurements.COLUMNS. Raises as `measure`.
    """
    asked = {"client": client, "n": n, "one_core": False, "sample": True}
    return _in_rounds(list(names), asked, until, looks, _by_part)


def _in_rounds(
    names: list[str],
    asked: dict[str, Any],
    until: Question | Iterable[Question],
    looks: Iterable[int],
    shape: Callable[[list[dict[str, Any]]], pd.DataFrame],
) -> pd.DataFrame:
    questions = [until] if isinstance(until, Question) else list(until)
    ready = [environments.ensure(stacks.get(name)) for name in names]
    with contextlib.ExitStack() as open_ones:

        @cache
        def lab() -> server.Server:
            return open_ones.enter_context(server.start())

        def take(chosen: range) -> pd.DataFrame:
            turns = in_turns(ready, chosen)
            return shape([_stored_or_new(lab, who, asked, repeat) for repeat, who in turns])

        return decisions.until_decided(take, questions, looks) if questions else take(range(1, 2))


def _by_part(rows: list[dict[str, Any]]) -> pd.DataFrame:
    names = dict.fromkeys(part for row in rows for part in row["parts"])
    found = []
    for row in rows:
        spent = row.pop("parts")
        for part in names:
            cpu_s = spent.get(part, 0.0)
            figures = {"cpu_ms": 1000 * cpu_s / row["n"], "share": cpu_s / sum(spent.values())}
            found.append(row | {"part": PARTS.get(part, part)} | figures)
    return pd.DataFrame(found)


def _stored_or_new(
    lab: Callable[[], server.Server], environment: Environment, asked: dict[str, Any], repeat: int
) -> dict[str, Any]:
    is_cured = _STEP_OF_THE_CURE in environment.stack.steps
    key = digests.of(
        measurements.SCHEMA,
        [PROBE, clients.file_of(asked["client"]), Path(__file__)],
        [places.CURE] if is_cured else "without the cure",
        server.MADE_OF,
        [Path(module.__file__ or "") for module in (scripts, trust)],
        environments.fingerprint(environment.stack),
        asked | {"stack": environment.stack.name, "repeat": repeat},
    )
    found = measurements.stored_or_new(key, lambda: _measured(lab(), environment, asked, is_cured))
    of = {name: asked[name] for name in ("client", "n", "one_core")}
    return {"stack": environment.stack.name, **of, "repeat": repeat, "source": LIVE} | found


def _measured(
    lab: server.Server, environment: Environment, asked: dict[str, Any], is_cured: bool
) -> dict[str, Any]:
    n = asked["n"]
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        told = trust.of_name(trust.BUNDLE, lab.ca_file, Path(folder))
        spec = {
            "client": str(clients.file_of(asked["client"])), "url": lab.url, "n": n,
            "bundle": told.bundle, "cure": _compiled(environment, folder) if is_cured else "",
            "one_core": asked["one_core"], "sample": asked["sample"],
        }  # fmt: skip
        began = time.perf_counter()
        answer = scripts.ask(environment, PROBE, spec, 60 + n, variables=told.variables)
        wall_s = time.perf_counter() - began
    if answer["ok"] != n:
        raise RunFailed(
            f"{environment.stack.name}: {n - answer['ok']} of {n} responses were wrong or missing. "
            "Nothing was recorded."
        )
    figures = ("parts",) if asked["sample"] else ("fetch_cpu_s", "cpu_s", "loads", "loads_before")
    return {"wall_s": round(wall_s, 6)} | {name: answer[name] for name in figures}


def _compiled(environment: Environment, folder: str) -> str:
    """A folder with the cure, as it is when it is installed: with its bytecode beside it."""
    into = Path(folder) / "cure"
    into.mkdir()
    subprocess.run(
        [environment.python, "-m", "py_compile", shutil.copy(places.CURE, into)],
        env=environments.clean_environ(environment) | {"PYTHONDONTWRITEBYTECODE": ""}, check=True,
    )  # fmt: skip
    return str(into)
