"""What it costs to load a bundle of certificates, in any stack: processor time, wall time, and
whether other threads can run meanwhile.

    sizes = [Task(certificates=k) for k in (0, 1, 10, 50, None)]
    frame = measure("stage-1-today", sizes)

A stack that has pyOpenSSL loads with pyOpenSSL, and with the OpenSSL inside its cryptography
package; the others with the standard library's ssl. The certificates are certifi's.
"""

import itertools
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, stacks
from casebook.cases.certificates import preloads
from casebook.errors import RunFailed, UsageError
from casebook.runs import measurements, reference, rounds, trust
from casebook.runs.decisions import LOOKS
from casebook.runs.measure import can_run
from casebook.runs.progress import Progress
from casebook.runs.rounds import in_turns, several
from casebook.stacks import digests, environments, scripts
from casebook.stacks.environments import Environment
from casebook.words import LIVE

WAYS = ("file", "default", "compute")

_PROBE = places.PROBES / "loading.py"

#: Preloaded for tasks with `apart`.
APART = places.PROBES / "locks_apart.c"

#: The OpenSSLs that can be had, each in a stack of its own: "openssl-3.0-today".
OPENSSLS = ("1.1.1", "3.0", "3.1", "3.2", "3.5", "4.0")


@dataclass(frozen=True)
class Task:
    """What a process does: so many times, make a context and load certificates into it.

    certificates: the first so many of certifi's; None: all; 0: none, the context only. way:
    "file" for load_verify_locations, "default" for set_default_verify_paths, where the system's
    default is the same bundle; "compute" for a piece of work in Python in the place of each load.
    copies: how often the bundle has each certificate. loads: how many in all, shared evenly
    between threads or processes. watched: whether a further thread notes the time every
    millisecond, which it can only when no other thread holds the GIL. apart: whether the readers
    of a lock share no memory (casebook/probes/locks_apart.c in the place of the C library's).
    """

    certificates: int | None = None
    way: str = "file"
    loads: int = 10
    copies: int = 1
    threads: int = 1
    processes: int = 1
    watched: bool = False
    apart: bool = False

    @property
    def how(self) -> str:
        """Who takes the loads, in words."""
        said = f"{self.threads} threads" if self.threads > 1 else "one thread"
        if self.processes > 1:
            said = f"{self.processes} processes"
        if self.way == "compute":
            return f"{said}, computing"
        return f"{said}, locks apart" if self.apart else said

    @property
    def does(self) -> str:
        """Its way; "none" where there is nothing to load."""
        return "none" if self.certificates == 0 else self.way

    @property
    def chosen(self) -> list[str]:
        """The certificates, each as PEM."""
        return [] if self.way == "compute" else trust.certificates()[: self.certificates]

    def bundle(self, folder: Path) -> Path | None:
        """The file of its certificates, written into a folder if it is not there."""
        if not self.chosen:
            return None
        path = folder / f"{len(self.chosen)}x{self.copies}.pem"
        if not path.exists():
            path.write_text("".join(self.chosen * self.copies))
        return path


#: A load that lasts long enough for the watching thread to be missed, by each way.
WATCHED = tuple(Task(way=way, loads=1, copies=5, watched=True) for way in ("file", "default"))

#: As many threads as loads, and no lock between readers.
TEN_APART = Task(loads=10, threads=10, apart=True)

#: All of certifi's, where a number of certificates stands.
_ALL = -1
#: What makes two tasks the same, beside the number of certificates.
_SAME = ("way", "copies", "threads", "processes", "watched", "apart")

#: What is shown instead on a machine without these interpreters, or without a C compiler:
#: arguments of `measure`.
RECORDED = (
    ("stage-1-py27", WATCHED),
    ("stage-1-py37", WATCHED),
    ("openssl-3.0-today", (TEN_APART,)),
)

COLUMNS = [
    *("stack", "python", "openssl", "release", "way", "certificates", "copies"),
    *("threads", "processes", "how", "repeat", "contexts", "loads"),
    *("wall_ms", "cpu_ms", "user_ms", "system_ms", "faults"),
    *("beats", "stall_ms", "locks", "source", "measured_at", "instead"),
    *measurements.COLUMNS,
]


@rounds.decidable
def measure(
    names: str | Iterable[str],
    tasks: Task | Iterable[Task] | Mapping[str, Iterable[Task]],
    repeats: int | range = 1,
) -> pd.DataFrame:
    """Measure the tasks in the stacks, in turns, each repeat in a process of its own.

    tasks: of all stacks, or those of each by its name. A stack's tasks with `apart` are done in a
    process beside that of its other tasks. until, looks: what is to be decided
    (casebook/runs/rounds.py).

    Returns one row per task and repeat, columns COLUMNS. openssl: as it names itself; release: the
    same without its date; how: who loads, in words. Per context made (or piece computed): wall_ms;
    user_ms and system_ms and both together, cpu_ms, of all threads or processes; faults (pages of
    memory that the kernel had to bring), beats of the watching thread, locks (read-write locks
    taken, only from `counts.locks`). Of the task: contexts, loads (counted at the call; not known
    for processes), certificates (found in the last context), stall_ms (the longest time without a
    beat). Where an interpreter is missing, or for `apart` a C compiler, rows are the reference
    machine's.

    Raises UsageError, RunFailed, MissingInterpreter.
    """
    repeats = rounds.numbers(repeats)
    if not 1 <= len(repeats) <= 1000:
        raise UsageError(f"repeats is {len(repeats)}; choose 1 to 1000")
    of_each = {
        name: several(tasks[name] if isinstance(tasks, Mapping) else tasks)
        for name in several(names)
    }
    here: dict[str, Environment] = {}
    rows: dict[str, list[dict]] = {}
    for name, its in of_each.items():
        _check(its)
        is_here = can_run(stacks.get(name))
        rows[name] = [] if is_here else recorded(name, its, repeats)
        if is_here or (not rows[name] and 1 in repeats):
            here[name] = environments.ensure(stacks.get(name))  # raises where it is missing
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        with Progress(len(here) * len(repeats), "loading certificates") as progress:
            for repeat, name in in_turns(here, repeats):
                rows[name] += _repeat(here[name], of_each[name], repeat, Path(folder))
                progress.step()
    return pd.DataFrame(list(itertools.chain(*rows.values())), columns=COLUMNS)


def _check(tasks: Iterable[Task]) -> None:
    """Raise UsageError for a task that no process can do."""
    known = len(trust.certificates())
    for task in tasks:
        together = max(task.threads, task.processes)
        if task.way not in WAYS:
            raise UsageError(f"the way is {task.way!r}; choose one of: {', '.join(WAYS)}")
        if not 0 <= (task.certificates or 0) <= known:
            raise UsageError(f"certificates is {task.certificates}; certifi has {known}")
        if not 1 <= task.copies <= 100 or not 1 <= task.loads <= 10_000:
            raise UsageError(f"choose 1 to 100 copies and 1 to 10000 loads, not as in {task}")
        if min(task.threads, task.processes) != 1 or not 1 <= together <= 100:
            raise UsageError(f"choose 1 to 100 threads or processes, one of the two: {task}")
        if task.loads % together:
            raise UsageError(f"{task.loads} loads cannot be shared evenly by {together}")


def recorded(name: str, tasks: Iterable[Task], repeats: range | None = None) -> list[dict]:
    """Rows of the reference machine for these tasks in a stack; empty where it has none.

    repeats: only these; None: all.
    """
    known = reference.kinds("loads")
    if known.empty:
        return []
    known["asked"] = known["asked"].fillna(_ALL)
    if repeats is not None:
        known = known[known["repeat"].isin(repeats)]
    wanted = [
        {"stack": name, "asked": _ALL if task.certificates is None else task.certificates}
        | {each: getattr(task, each) for each in _SAME}
        for task in tasks
    ]
    rows = [reference.stand_in(known, each).to_dict("records") for each in wanted]
    return list(itertools.chain(*rows))


def record() -> list[dict]:
    """The rows that `recorded` gives, measured now: of the stacks and tasks in RECORDED."""
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        return [
            row
            for repeat in rounds.numbers(LOOKS[0])
            for name, tasks in RECORDED
            for row in _repeat(environments.ensure(stacks.get(name)), tasks, repeat, Path(folder))
        ]


def _repeat(
    environment: Environment, tasks: Iterable[Task], repeat: int, folder: Path
) -> list[dict]:
    """The rows of one repeat: those of tasks with `apart` come from a process of their own."""
    together = [task for task in tasks if not task.apart]
    apart = [task for task in tasks if task.apart]
    rows = in_one_process(environment, together, repeat, folder) if together else []
    if not apart:
        return rows
    if preload := preloads.compiled(APART, folder):
        return rows + in_one_process(environment, apart, repeat, folder, preload)
    return rows + recorded(environment.stack.name, apart, range(repeat, repeat + 1))


def in_one_process(
    environment: Environment,
    tasks: list[Task],
    repeat: int,
    folder: Path,
    preload: preloads.Preload = preloads.NOTHING,
) -> list[dict]:
    """The rows of tasks in one process, stored or new; bundles are written into `folder`.

    Raises RunFailed.
    """
    code = [Path(__file__), *digests.executed(_PROBE)]
    of = [asdict(task) for task in tasks], repeat, preload.made_of
    key = measurements.key_of(code, environment.stack, *of)
    answer = measurements.stored_or_new(
        key, lambda: _ask(environment, tasks, folder, preload.variables)
    )
    same = {
        "stack": environment.stack.name,
        "python": answer["python"],
        "openssl": answer["openssl"],
        "release": " ".join(answer["openssl"].split()[:2]),
        "repeat": repeat,
        "source": LIVE,
        "instead": "",
    }
    same |= measurements.made(answer)
    return [same | _figures(*each) for each in zip(tasks, answer["results"], strict=True)]


def _ask(
    environment: Environment, tasks: list[Task], folder: Path, variables: dict[str, str]
) -> dict:
    """The answer of casebook/probes/loading.py: all certificates were loaded, or RunFailed."""
    each = [asdict(task) | {"way": task.does, "bundle": task.bundle(folder)} for task in tasks]
    spec = {
        "library": "pyopenssl" if "pyopenssl" in environment.stack.packages else "ssl",
        "nowhere": folder / "nothing",
        "tasks": each,
    }
    answer = scripts.ask(environment, _PROBE, spec, variables=variables)
    for task, result in zip(tasks, answer["results"], strict=True):
        if result["certificates"] != len(task.chosen):
            raise RunFailed(
                f"{environment.stack.name}: {result['certificates']} certificates were loaded, "
                f"not {len(task.chosen)}. Nothing was recorded."
            )
    return answer


def _figures(task: Task, result: dict) -> dict:
    """What a row says of one task, and what `recorded` finds it by."""
    forked = task.processes > 1

    def of_each(name: str, unit: float = 1) -> Any:
        return None if result[name] is None else result[name] * unit / task.loads

    user_ms, system_ms = of_each("user_s", 1000), of_each("system_s", 1000)
    return asdict(task) | {
        "asked": task.certificates,
        "way": task.does,
        "certificates": result["certificates"],
        "how": task.how,
        "contexts": task.loads if forked else result["contexts"],
        "loads": None if forked else result["loads"],
        "wall_ms": of_each("wall_s", 1000),
        "cpu_ms": user_ms + system_ms,
        "user_ms": user_ms,
        "system_ms": system_ms,
        "faults": of_each("faults"),
        "beats": of_each("beats"),
        "stall_ms": None if result["stall_s"] is None else result["stall_s"] * 1000,
        "locks": of_each("locks"),
    }
