"""What contexts weigh: resident memory, what malloc has handed out, and what it keeps.

    frame = measure("stage-1-today", certificates=[0, 1, None], contexts=20)

Two things grow when contexts are made: what OpenSSL asks malloc for, and what malloc keeps when
OpenSSL has given it back. They are told apart here, on Linux with glibc 2.33 or newer.
"""

import contextlib
import platform
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.cases.certificates.loading import Task
from casebook.cases.fetching import trust
from casebook.errors import RunFailed
from casebook.laboratory import measurements, scripts
from casebook.laboratory.experiment import Experiment, Parameters, in_rounds
from casebook.laboratory.rounds import as_list
from casebook.mistakes import check_range, for_readers
from casebook.stacks.environments import Environment

STEPS = ["before", "made", "freed", "trimmed", "one", "again"]

#: Where Linux says what a container may take.
_GROUP = Path("/sys/fs/cgroup")
#: For this many contexts or more, one is weighed first, and the machine's memory is looked at.
MANY = 100

COLUMNS = [
    *("stack", "openssl", "certificates", "contexts", "further_loads", "what", "rss_kib"),
    *("in_use_kib", "free_kib", "source", "measured_at", "instead", *measurements.COLUMNS),
]


def without_malloc_figures() -> str:
    """Say why this machine has no figures of malloc; "" if it has."""
    library, version = platform.libc_ver()
    new = library == "glibc" and tuple(map(int, version.split(".")[:2])) >= (2, 33)
    return "" if new else "only glibc 2.33 and newer says what malloc has handed out"


@for_readers
def measure(
    names: str | Iterable[str],
    certificates: int | Iterable[int | None] | None = None,
    contexts: int | Iterable[int] = 20,
    loads: int = 20,
) -> pd.DataFrame:
    """Make contexts in a process of each stack, free them, and load again into one.

    certificates: how many of certifi's, from the first, None for all, or several of these.
    contexts: one number or several. loads: further ones, into one context.

    Returns one row per stack, size and step, columns COLUMNS: what, one of STEPS; rss_kib, and
    in_use_kib and free_kib of malloc (missing where `without_malloc_figures` says why). Elsewhere
    than on Linux, and where a stack cannot run, the rows are those of a machine that was asked the
    same.

    Raises UsageError, what Experiment.measure raises, and RunFailed also where MANY contexts or
    more would take more than half of the memory that is free.
    """
    for count in as_list(contexts):
        check_range("contexts", count, 1, 1000)
    check_range("loads", loads, 0, 1000)
    sizes = [certificates] if certificates is None else as_list(certificates)
    variants: list[tuple[Experiment, str, Parameters]] = []
    for name, size, count in product(as_list(names), sizes, as_list(contexts)):
        weighed = _WEIGHTS
        if count >= MANY:
            rss_kib = per_context(measure(name, size, 10, 0))["rss"].iloc[0]
            weighed = replace(_WEIGHTS, ask=partial(_run_probe, each_kib=rss_kib))
        variants.append((weighed, name, {"certificates": size, "contexts": count, "loads": loads}))
    return in_rounds(variants, 1, "weighing contexts").reindex(columns=COLUMNS)


def lacks() -> str:
    """Say why contexts are not weighed here; "" where they are."""
    return "" if platform.system() == "Linux" else "contexts are weighed on Linux alone"


def _run_probe(
    environment: Environment, parameters: Parameters, each_kib: float = 0
) -> dict[str, Any]:
    """Return what the probe says of a bundle, and how many certificates that has."""
    if each_kib:
        _look_for_room(parameters["contexts"], each_kib)
    task = Task(certificates=parameters["certificates"])
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        spec = {**parameters, "file": task.bundle(Path(folder))}
        answer = scripts.answer_of(environment, _WEIGHTS.script, spec, beside=[places.PROBES])
    return answer | {"certificates": len(task.chosen)}


def _figures(parameters: Parameters, answer: dict[str, Any]) -> list[dict[str, Any]]:
    steps = answer["steps"]
    if [step["what"] for step in steps] != STEPS:
        raise RunFailed("steps are missing. Nothing was recorded.")
    common = {"openssl": answer["openssl"], "certificates": answer["certificates"]}
    return [common | {"further_loads": parameters["loads"]} | step for step in steps]


_WEIGHTS = Experiment(
    Path(__file__).parent / "probes" / "context_weights.py",
    _figures,
    depends_on=(Path(__file__), trust.dependency()),
    lacks=lacks,
    beside=(places.PROBES,),
    ask=_run_probe,
)


def _look_for_room(contexts: int, each_kib: float) -> None:
    """Raise RunFailed if that many contexts would take more than half of the free memory."""
    needed_mib, free = contexts * each_kib / 1024, free_mib()
    if needed_mib > free / 2:
        raise RunFailed(
            f"{contexts} contexts would take about {needed_mib:.0f} MiB, more than half of the "
            f"{free:.0f} MiB that are free here. They were not made."
        )


def free_mib() -> float:
    """Return how much memory a process may still take, of the machine and of its container."""
    with open("/proc/meminfo") as meminfo:
        kib = dict(line.split(":") for line in meminfo)["MemAvailable"].split()[0]
    free = [int(kib) / 1024]
    with contextlib.suppress(OSError, ValueError):  # no container, or none with a limit
        limit, usage = ((_GROUP / f"memory.{name}").read_text() for name in ("max", "current"))
        free.append((int(limit) - int(usage)) / 2**20)
    return min(free)


@for_readers
def many(name: str, contexts: int) -> tuple[pd.DataFrame, str]:
    """Make very many contexts in a process of a stack, and twenty in another one.

    contexts: up to 1000. Returns rows as of `per_context`, of the twenty first; and why they could
    not be made here, "" if they were: otherwise there is the row of the twenty alone.
    """
    check_range("contexts", contexts, 1, 1000)
    twenty = measure(name, contexts=20, loads=0)
    try:
        return per_context(
            pd.concat([twenty, measure(name, contexts=contexts, loads=0)])
        ), without_malloc_figures()
    except RunFailed as error:
        return per_context(twenty), str(error)


@for_readers
def per_context(frame: pd.DataFrame) -> pd.DataFrame:
    """Return what one context weighs, a row for each stack and size.

    frame: as of `measure`. Returns stack, openssl, certificates, contexts, and in KiB: in_use
    (malloc's, for one context), kept (of it, still in use when all are freed), rss (for one
    context), rss_freed and rss_trimmed (the same once all are freed, and once malloc was trimmed),
    again (malloc's, for all the further loads together); source.
    """
    keys = ["stack", "openssl", "certificates", "contexts", "source"]
    weights = []
    for key, rows in frame.groupby(keys, sort=False):
        steps, n = rows.set_index("what"), rows["contexts"].iloc[0]
        in_use, rss = (steps[name].astype(float) for name in ("in_use_kib", "rss_kib"))
        weights.append(
            dict(zip(keys, key, strict=True))
            | {
                "in_use": (in_use["made"] - in_use["before"]) / n,
                "kept": (in_use["freed"] - in_use["before"]) / n,
                "rss": (rss["made"] - rss["before"]) / n,
                "rss_freed": (rss["freed"] - rss["before"]) / n,
                "rss_trimmed": (rss["trimmed"] - rss["before"]) / n,
                "again": in_use["again"] - in_use["one"],
            }
        )
    return pd.DataFrame(weights)
