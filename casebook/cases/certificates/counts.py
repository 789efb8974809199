"""The instructions that one load of all certificates takes: a witness without a clock.

valgrind runs the load on a simulated processor and counts (its tool cachegrind, without the
caches). That is about 60 times slower, but repeatable to 0.1 %, however busy the machine is. It
counts what OpenSSL does, not how long it waits: threads take turns in it.

Where there is no valgrind, the counts are those of a machine that has it.
"""

import json
import os
import re
import shutil
import sysconfig
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import certifi
import pandas as pd

from casebook.cases.fetching import modes, trust
from casebook.errors import RunFailed
from casebook.laboratory import measurements
from casebook.laboratory.experiment import Experiment, Parameters, never
from casebook.mistakes import for_readers
from casebook.stacks import commands, digests
from casebook.stacks.environments import Environment

#: The stacks whose instructions are recorded.
RECORDED = ("openssl-1.1.1-today", "openssl-3.0-today", "openssl-4.0-today")

COLUMNS = [
    *("stack", "openssl", "release", "instructions", "source", "measured_at", "instead"),
    *measurements.COLUMNS,
]

_PROBE = Path(__file__).parent / "probes" / "instructions.py"
_WITHIN_S = 300


@for_readers
def instructions(names: str | Iterable[str] = RECORDED) -> pd.DataFrame:
    """Count the instructions of one load of all of certifi's certificates in each stack.

    In the quick mode a stack that was recorded is not counted again: it takes seconds for each, and
    comes out the same.

    One row a stack, columns COLUMNS. Raises RunFailed, and what Experiment.measure raises, also
    where there is no valgrind and no machine has counted.
    """
    return _counting().measure(names).reindex(columns=COLUMNS)


def record() -> pd.DataFrame:
    """Count again, ignoring recorded answers; the rows stand in elsewhere. Raises as above."""
    return replace(_counting(), spares=never).measure(RECORDED).reindex(columns=COLUMNS)


def _counting() -> Experiment:
    valgrind = measurements.Using("valgrind", digests.tool("valgrind"))
    return Experiment(
        _PROBE,
        _figures,
        depends_on=(Path(__file__), valgrind, trust.dependency()),
        lacks=_lacks,
        ask=_under_valgrind,
        spares=lambda parameters: modes.current() is modes.QUICK,  # noqa: ARG005  as it is called
    )


def _lacks() -> str:
    is_installed = shutil.which("valgrind") is not None
    return "" if is_installed else "instructions are counted by valgrind (Debian: valgrind)"


def _figures(_: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    openssl = answer["openssl"]
    release = " ".join(openssl.split()[:2])
    return {"openssl": openssl, "release": release, "instructions": answer["instructions"]}


def _under_valgrind(environment: Environment, _: Parameters) -> dict[str, Any]:
    base = str(environment.python.parent.parent)
    packages = sysconfig.get_path("platlib", vars={"base": base, "platbase": base})
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        command = [shutil.which("valgrind") or "valgrind", "--tool=cachegrind", "--cache-sim=no"]
        command += ["--cachegrind-out-file=/dev/null", f"--log-file={folder}/%p"]
        # -S, -E: no site-packages to be looked through; -B: no bytecode written beside the probe.
        command += [str(environment.python), "-S", "-E", "-B", str(_PROBE), packages]
        printed = commands.output(
            [*command, certifi.where()], f"{environment.stack.name}: the load under valgrind",
            _WITHIN_S, {"PATH": os.defpath, "PYTHONHASHSEED": "0"},
        )  # fmt: skip
        answer = json.loads(printed)
        loaded, idle = (_read(Path(folder, str(answer[name]))) for name in ("loading", "idle"))
    return {"openssl": answer["openssl"], "instructions": loaded - idle}


def _read(log: Path) -> int:
    match = re.search(r"I\s+refs:\s+([\d,]+)", log.read_text())
    if match is None:
        raise RunFailed(f"there is no count in cachegrind's log {log.name}. Nothing was recorded.")
    return int(match[1].replace(",", ""))
