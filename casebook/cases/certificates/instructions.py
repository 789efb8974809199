"""How many instructions one load of a bundle takes, in each OpenSSL: a witness without a clock.

valgrind runs the load on a processor of its own making and counts (its tool cachegrind, without
the caches). That is some 60 times slower than a load, and comes out the same within 0.1 %, however
busy the machine is. It counts what OpenSSL does, not how long it waits: threads take turns in it.

In the quick mode, and where valgrind is missing, the reference machine's counts are given.
"""

import json
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import certifi
import pandas as pd

from casebook import places, stacks
from casebook.errors import RunFailed
from casebook.runs import answers, measurements, modes, reference
from casebook.stacks import digests, environments
from casebook.words import LIVE, REFERENCE

PROBE = places.PROBES / "instructions.py"

#: The stacks whose counts are recorded.
RECORDED = ("openssl-1.1.1-today", "openssl-3.0-today", "openssl-4.0-today")

COLUMNS = [
    *("stack", "openssl", "release", "instructions", "source", "measured_at", "instead"),
    *measurements.COLUMNS,
]

#: Seconds after which a count is ended.
PATIENCE_S = 120


def count(names: str | Iterable[str] = RECORDED) -> pd.DataFrame:
    """The instructions of one load of all of certifi's certificates in each stack.

    In the quick mode a stack that was recorded is not counted again: it takes seconds for each, and
    comes out the same. Without valgrind, all rows are the reference machine's.

    One row a stack, columns COLUMNS. Raises RunFailed, also where nothing can be counted and
    nothing was recorded; MissingInterpreter and EnvironmentFailed.
    """
    names = [names] if isinstance(names, str) else list(names)
    known = set(reference.kinds("instructions").get("stack", ()))
    is_quick = modes.current() is modes.QUICK
    given = {name for name in names if is_quick and name in known}
    if shutil.which("valgrind") is None:
        given = set(names)
    counted = {row["stack"]: row for row in _counted_now(set(names) - given)}
    return _frame([counted[name] if name in counted else _stand_in(name) for name in names])


def record() -> list[dict]:
    """The rows that stand in elsewhere, counted now. Raises RunFailed without valgrind."""
    rows = _frame(_counted_now(RECORDED)).to_dict("records")
    return [row | {"source": REFERENCE} for row in rows]


def _counted_now(names: Iterable[str]) -> list[dict]:
    valgrind = shutil.which("valgrind") or "valgrind"
    # Counts do not mind company.
    with ThreadPoolExecutor(max_workers=2) as together:
        return list(together.map(lambda name: _row(name, valgrind), names))


def _frame(rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(name: str, valgrind: str) -> dict:
    environment = environments.ensure(stacks.get(name))
    answer = answers.stored_or_new(
        environment.stack,
        {"valgrind": digests.tool("valgrind")},
        [Path(__file__), PROBE],
        lambda: _ask(environment, valgrind),
    )
    release = " ".join(answer["openssl"].split()[:2])
    return {"stack": name, "release": release, "source": LIVE, "instead": ""} | answer


def _ask(environment, valgrind: str) -> dict:
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        base = str(environment.python.parent.parent)
        packages = sysconfig.get_path("platlib", vars={"base": base, "platbase": base})
        command = [valgrind, "--tool=cachegrind", "--cache-sim=no"]
        command += ["--cachegrind-out-file=/dev/null", f"--log-file={folder}/%p"]
        # -S, -E: no site-packages to be looked through; -B: no bytecode written beside the probe.
        command += [str(environment.python), "-S", "-E", "-B", str(PROBE), packages]
        try:
            done = subprocess.run(
                [*command, certifi.where()],
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                env={"PATH": os.defpath, "PYTHONHASHSEED": "0"},
            )
            told = json.loads(done.stdout)
            loading, idle = (_counted(Path(folder) / str(told[w])) for w in ("loading", "idle"))
        except (subprocess.TimeoutExpired, ValueError, OSError) as error:
            raise RunFailed(
                f"{environment.stack.name}: valgrind counted nothing ({type(error).__name__}: "
                f"{error}). Nothing was recorded."
            ) from None
    return {"openssl": told["openssl"], "instructions": loading - idle}


def _counted(log: Path) -> int:
    """The instructions of one process, from cachegrind's log."""
    found = re.search(r"I\s+refs:\s+([\d,]+)", log.read_text())
    if found is None:
        raise ValueError(f"no count in cachegrind's log {log.name}")
    return int(found.group(1).replace(",", ""))


def _stand_in(name: str) -> dict:
    known = reference.kinds("instructions")
    rows = reference.stand_in(known, {"stack": name}).to_dict("records")
    if not rows:
        raise RunFailed(
            f"{name}: instructions are counted where valgrind is installed (Debian: valgrind), and "
            f"the reference machine has no count of this stack. It has: {', '.join(RECORDED)}."
        )
    return rows[0]
