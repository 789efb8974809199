"""The instructions that one load of all certificates takes: a witness without a clock.

valgrind runs the load on a processor of its own making and counts (its tool cachegrind, without
the caches). That is some 60 times slower than a load, and comes out the same within 0.1 %, however
busy the machine is. It counts what OpenSSL does, not how long it waits: threads take turns in it.

Where there is no valgrind, the reference machine's counts are given.
"""

import json
import os
import re
import shutil
import sysconfig
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import certifi
import pandas as pd

from casebook import stacks
from casebook.cases.fetching import modes, trust
from casebook.errors import RunFailed
from casebook.laboratory import elsewhere, measurements, reference
from casebook.laboratory.rounds import as_list
from casebook.stacks import commands, digests, environments
from casebook.stacks.environments import Environment
from casebook.words import LIVE, join

#: The stacks whose instructions are recorded.
RECORDED = ("openssl-1.1.1-today", "openssl-3.0-today", "openssl-4.0-today")

COLUMNS = [
    *("stack", "openssl", "release", "instructions", "source", "measured_at", "instead"),
    *measurements.COLUMNS,
]

_PROBE = Path(__file__).parent / "probes" / "instructions.py"
_WITHIN_S = 300


def instructions(names: str | Iterable[str] = RECORDED) -> pd.DataFrame:
    """The instructions of one load of all of certifi's certificates in each stack.

    In the quick mode a stack that was recorded is not counted again: it takes seconds for each, and
    comes out the same. Without valgrind, all rows are the reference machine's.

    One row a stack, columns COLUMNS. Raises RunFailed, also where nothing can be counted and
    nothing was recorded; MissingInterpreter and EnvironmentFailed.
    """
    names, known = as_list(names), elsewhere.of_reference(INSTRUCTIONS)
    here, quick = shutil.which("valgrind") is not None, modes.current() is modes.QUICK
    given = reference.select_recorded(known, {}).to_dict("records") if quick or not here else []
    rows = {row["stack"]: row for row in given}
    todo = [name for name in names if name not in rows]
    if todo and not here:
        raise RunFailed(
            "instructions are counted where valgrind is installed (Debian: valgrind), and the "
            f"reference machine has no count of {join(todo)}. It has: {join(rows) or 'none'}."
        )
    with ThreadPoolExecutor(max_workers=2) as together:  # counts do not mind company
        rows |= zip(todo, together.map(_counted, todo), strict=True)
    return pd.DataFrame([rows[name] for name in names], columns=COLUMNS)


def record() -> pd.DataFrame:
    """The rows that stand in elsewhere, counted now. Raises RunFailed without valgrind."""
    return pd.DataFrame([_counted(name) for name in RECORDED], columns=COLUMNS)


def _instructions(answer: dict[str, Any]) -> list[dict[str, Any]]:
    asked, openssl = answer.get("asked"), answer.get("openssl")
    try:
        stack = asked[1][0]  # type: ignore[index]
    except (TypeError, LookupError):
        return []
    if not isinstance(openssl, str) or "instructions" not in answer:
        return []
    return [_row(stack, {name: each for name, each in answer.items() if name != "asked"})]


#: Counted instructions as machine files have them.
INSTRUCTIONS = elsewhere.Kind("instructions", _instructions, ("instructions",))


def _row(stack: str, answer: dict[str, Any]) -> dict[str, Any]:
    release = " ".join(answer["openssl"].split()[:2])
    return {"stack": stack, "release": release, "source": LIVE, "instead": ""} | answer


def _counted(name: str) -> dict:
    environment = environments.ensure(stacks.get(name))
    code = [Path(__file__), _PROBE]
    valgrind = measurements.Using("valgrind", digests.tool("valgrind"))
    key = measurements.key_of(code, environment.stack, valgrind, trust.known())
    answer = measurements.stored_or_new(key, lambda: _under_valgrind(environment))
    return _row(name, answer)


def _under_valgrind(environment: Environment) -> dict:
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
        loaded, idle = (_read(Path(folder, str(answer[each]))) for each in ("loading", "idle"))
    return {"openssl": answer["openssl"], "instructions": loaded - idle}


def _read(log: Path) -> int:
    found = re.search(r"I\s+refs:\s+([\d,]+)", log.read_text())
    if found is None:
        raise RunFailed(f"there is no count in cachegrind's log {log.name}. Nothing was recorded.")
    return int(found[1].replace(",", ""))
