"""What contexts weigh: resident memory, what malloc has handed out, and what it keeps.

    frame = measure("stage-1-today", certificates=[0, 1, None], contexts=20)

Two things grow when contexts are made: what OpenSSL asks malloc for, and what malloc keeps when
OpenSSL has given it back. They are told apart here, on Linux with glibc 2.33 or newer.
"""

import contextlib
import platform
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from casebook import places, stacks
from casebook.cases.certificates.loading import Task
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import measurements, scripts
from casebook.laboratory.rounds import as_list
from casebook.stacks import digests, environments
from casebook.words import LIVE

_PROBE = Path(__file__).parent / "probes" / "context_weights.py"

STEPS = ["before", "made", "freed", "trimmed", "one", "again"]

#: Where Linux says what a container may take.
_GROUP = Path("/sys/fs/cgroup")
#: From so many contexts on, one is weighed first, and the machine's memory is looked at.
MANY = 100

COLUMNS = [
    *("stack", "openssl", "certificates", "contexts", "further_loads", "what", "rss_kib"),
    *("in_use_kib", "free_kib", "source", "measured_at", *measurements.COLUMNS),
]


def not_here() -> str:
    """Why this machine cannot tell; "" where it can."""
    library, version = platform.libc_ver()
    new = library == "glibc" and tuple(map(int, version.split(".")[:2])) >= (2, 33)
    return "" if new else "only glibc 2.33 and newer says what malloc has handed out"


def measure(
    names: str | Iterable[str],
    certificates: int | Iterable[int | None] | None = None,
    contexts: int | Iterable[int] = 20,
    loads: int = 20,
) -> pd.DataFrame:
    """Make so many contexts in a process of each stack, free them, and load again into one.

    certificates: the first so many of certifi's, None for all, or several of these. contexts: one
    number or several. loads: further ones, into one context.

    Returns one row per stack, size and step, columns COLUMNS: what, one of STEPS; rss_kib, and
    in_use_kib and free_kib of malloc (missing where `not_here` says why; all are elsewhere than on
    Linux). Raises UsageError, MissingInterpreter, and RunFailed, also where MANY contexts or more
    would take more than half of the memory that is free.
    """
    if not all(1 <= each <= 1000 for each in as_list(contexts)) or not 0 <= loads <= 1000:
        raise UsageError(f"choose 1 to 1000 contexts and 0 to 1000 loads: {contexts}, {loads}")
    sizes = [certificates] if certificates is None else as_list(certificates)
    asked = [
        (name, Task(certificates=size), many)
        for name in as_list(names)
        for size in sizes
        for many in as_list(contexts)
    ]
    ask = _rows if platform.system() == "Linux" else _nothing
    rows = [row for each in asked for row in ask(*each, loads)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _nothing(name: str, task: Task, contexts: int, loads: int) -> list[dict]:
    """Rows without figures."""
    row = {"stack": name, "openssl": "", "certificates": len(task.chosen), "contexts": contexts}
    return [row | {"further_loads": loads, "what": what, "source": LIVE} for what in STEPS]


def _rows(name: str, task: Task, contexts: int, loads: int) -> list[dict]:
    environment = environments.ensure(stacks.get(name))
    few = _rows(name, task, 10, 0) if contexts >= MANY else []
    key = measurements.key_of(
        [Path(__file__), *digests.executed(_PROBE, beside=[places.PROBES])],
        environment.stack, task.certificates, contexts, loads,
    )  # fmt: skip

    def ask() -> list[dict]:
        if few:
            _look_for_room(contexts, each(pd.DataFrame(few))["rss"].iloc[0])
        with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
            spec = {"file": task.bundle(Path(folder)), "contexts": contexts, "loads": loads}
            answer = scripts.ask(environment, _PROBE, spec, beside=[places.PROBES])
        if [step["what"] for step in answer["steps"]] != STEPS:
            raise RunFailed(f"{name}: steps are missing. Nothing was recorded.")
        asked = {"stack": name, "openssl": answer["openssl"], "contexts": contexts}
        asked |= {"certificates": len(task.chosen), "further_loads": loads}
        return [asked | step for step in answer["steps"]]

    return measurements.rows(ask, key)


def _look_for_room(contexts: int, each_kib: float) -> None:
    """Raise RunFailed where so many contexts would take more than half of the free memory."""
    needed, free = contexts * each_kib / 1024, free_mib()
    if needed > free / 2:
        raise RunFailed(
            f"{contexts} contexts would take about {needed:.0f} MiB, more than half of the "
            f"{free:.0f} MiB that are free here. They were not made."
        )


def free_mib() -> float:
    """How much memory a process may still take: of the machine, and of a container around it."""
    with open("/proc/meminfo") as meminfo:
        kib = dict(line.split(":") for line in meminfo)["MemAvailable"].split()[0]
    free = [int(kib) / 1024]
    with contextlib.suppress(OSError, ValueError):  # no container, or none with a limit
        most, now = (
            Path("/sys/fs/cgroup", f"memory.{of}").read_text() for of in ("max", "current")
        )
        free.append((int(most) - int(now)) / 2**20)
    return min(free)


def many(name: str, contexts: int) -> tuple[pd.DataFrame, str]:
    """Make very many contexts in a process of a stack, and twenty in another one.

    contexts: up to 1000. Returns rows as of `each`, of the twenty first; and why they could not be
    made here, "" where they were: then there is the row of the twenty alone.
    """
    few = measure(name, contexts=20, loads=0)
    try:
        return each(pd.concat([few, measure(name, contexts=contexts, loads=0)])), not_here()
    except RunFailed as error:
        return each(few), str(error)


def each(frame: pd.DataFrame) -> pd.DataFrame:
    """What one context weighs, a row for each stack and size.

    frame: as of `measure`. Returns stack, openssl, certificates, contexts, and in KiB: in_use
    (malloc's, for one context), kept (of it, still in use when all are freed), rss (for one
    context), rss_freed and rss_trimmed (the same once all are freed, and once malloc was trimmed),
    again (malloc's, for all the further loads together); source.
    """
    by = ["stack", "openssl", "certificates", "contexts", "source"]
    found = []
    for asked, rows in frame.groupby(by, sort=False):
        its, n = rows.set_index("what"), rows["contexts"].iloc[0]
        in_use, rss = (its[name].astype(float) for name in ("in_use_kib", "rss_kib"))
        found.append(
            dict(zip(by, asked, strict=True))
            | {
                "in_use": (in_use["made"] - in_use["before"]) / n,
                "kept": (in_use["freed"] - in_use["before"]) / n,
                "rss": (rss["made"] - rss["before"]) / n,
                "rss_freed": (rss["freed"] - rss["before"]) / n,
                "rss_trimmed": (rss["trimmed"] - rss["before"]) / n,
                "again": in_use["again"] - in_use["one"],
            }
        )
    return pd.DataFrame(found)
