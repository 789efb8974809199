"""What it costs to load a bundle of certificates, in any stack.

Processor time, wall time, locks taken, and whether other threads can run meanwhile.

    sizes = [Task(certificates=k) for k in (0, 1, 10, 50, None)]
    frame = measure("stage-1-today", sizes)

A stack that has pyOpenSSL loads with pyOpenSSL, and with the OpenSSL inside its cryptography
package; the others with the standard library's ssl. The certificates are certifi's.
"""

import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, stacks
from casebook.cases.fetching import trust
from casebook.errors import CasebookError, RunFailed, UsageError
from casebook.laboratory import measurements, recorded_rows, rounds
from casebook.laboratory.experiment import Experiment, Parameters, in_rounds
from casebook.laboratory.rounds import as_list
from casebook.mistakes import check_range, for_readers
from casebook.stacks import commands, digests

WAYS = ("file", "default", "compute")

_PROBES = Path(__file__).parent / "probes"
_PROBE = _PROBES / "loading.py"

#: The OpenSSLs that can be had, each in a stack of its own: "openssl-3.0-today".
OPENSSLS = ("1.1.1", "3.0", "3.1", "3.2", "3.5", "4.0")

#: Libraries in C that can be preloaded (probes/): the readers of a lock share no memory,
#: or the locks are counted.
APART, COUNTER = "locks_apart", "rwlocks"
PRELOADS = ("", APART, COUNTER)


@for_readers
@dataclass(frozen=True)
class Task:
    """What a process does, again and again: make a context and load certificates into it.

    certificates: how many of certifi's, from the first; None: all; 0: none, the context only. way:
    "file" for load_verify_locations, "default" for set_default_verify_paths, where the system's
    default is the same bundle; "compute" for a piece of work in Python in the place of each load.
    copies: how often the bundle has each certificate. loads: how many in all, shared evenly
    between threads or processes. watched: whether a further thread notes the time every
    millisecond, which it can only when no other thread holds the GIL. preload: the library that
    is loaded before the C library, APART or COUNTER. Raises UsageError.
    """

    certificates: int | None = None
    way: str = "file"
    loads: int = 10
    copies: int = 1
    threads: int = 1
    processes: int = 1
    watched: bool = False
    preload: str = ""

    def __post_init__(self) -> None:
        total, workers = len(trust.certificates()), max(self.threads, self.processes)
        if self.way not in WAYS:
            raise UsageError(f"the way is {self.way!r}; choose one of: {', '.join(WAYS)}")
        if self.preload not in PRELOADS:
            raise UsageError(f"{self.preload!r} is not preloaded: choose {APART} or {COUNTER}")
        check_range("certificates", self.certificates or 0, 0, total)
        check_range("copies", self.copies, 1, 100)
        check_range("loads", self.loads, 1, 10_000)
        check_range("threads or processes", workers, 1, 100)
        if min(self.threads, self.processes) != 1:
            raise UsageError(f"choose threads or processes, one of the two: {self}")
        if self.loads % workers:
            raise UsageError(f"{self.loads} loads cannot be shared evenly by {workers}")

    @property
    def manner(self) -> str:
        """Describe who takes the loads, in words."""
        text = f"{self.threads} threads" if self.threads > 1 else "one thread"
        if self.processes > 1:
            text = f"{self.processes} processes"
        if self.way == "compute":
            return f"{text}, computing"
        return f"{text}, locks apart" if self.preload == APART else text

    @property
    def does(self) -> str:
        """Return its way; "none" if there is nothing to load."""
        return "none" if self.certificates == 0 else self.way

    @property
    def chosen(self) -> list[str]:
        """Return the certificates, each as PEM."""
        return [] if self.way == "compute" else trust.certificates()[: self.certificates]

    def bundle(self, folder: Path) -> Path | None:
        """Return the file of its certificates, written into a folder if it is not there."""
        if not self.chosen:
            return None
        path = folder / f"{len(self.chosen)}x{self.copies}.pem"
        if not path.exists():
            path.write_text("".join(self.chosen * self.copies))
        return path


#: A load that lasts long enough for the watching thread to be missed, by each way.
WATCHED = tuple(Task(way=kind, loads=1, copies=5, watched=True) for kind in ("file", "default"))

#: As many threads as loads, and no lock between readers; and one thread with the same locks, which
#: tells what these cost where nobody shares them.
TEN_APART = Task(loads=10, threads=10, preload=APART)
ONE_APART = Task(loads=10, preload=APART)

#: One load, whose read-write locks of the C library are counted. Neither mutexes are, nor numbers
#: in memory that OpenSSL changes atomically, nor the locks inside malloc; and as each lock becomes
#: dearer, its times mean nothing.
COUNTED = Task(loads=1, preload=COUNTER)

#: What is shown instead on a machine without these interpreters, or without a C compiler: the tasks
#: of each stack.
RECORDED = {f"openssl-{version}-today": [COUNTED] for version in OPENSSLS}
RECORDED["openssl-3.0-today"] += [ONE_APART, TEN_APART]
RECORDED |= {name: list(WATCHED) for name in ("stage-1-py27", "stage-1-py37")}

COLUMNS = [
    *("stack", "python", "openssl", "release", "asked", "certificates", "way", "copies"),
    *("threads", "processes", "watched", "preload", "how", "repeat", "contexts", "loads"),
    *("wall_ms", "cpu_ms", "user_ms", "system_ms", "faults", "beats", "stall_ms", "locks"),
    *("source", "measured_at", "instead", *measurements.COLUMNS),
]


@rounds.takes_until
def measure(
    names: str | Iterable[str],
    tasks: Task | Iterable[Task] | Mapping[str, Iterable[Task]],
    repeats: int | range = 1,
) -> pd.DataFrame:
    """Measure the tasks in the stacks, in turns, each repeat in a process of its own.

    tasks: of all stacks, or those of each by its name. A stack's tasks with `preload` are done in
    a process beside that of its other tasks. until, looks: what is to be decided
    (casebook/laboratory/rounds.py).

    Returns one row per task and repeat, columns COLUMNS. openssl: as it names itself; release: the
    same without its date; how: who loads, in words. Per context made (or piece computed): wall_ms;
    user_ms and system_ms and both together, cpu_ms, of all threads or processes; faults (pages of
    memory that the kernel had to bring), beats of the watching thread, locks (read-write locks
    taken, of COUNTED). Of the task: what was asked, contexts, loads (counted at the call; not known
    for processes), certificates (found in the last context), stall_ms (the longest time without a
    beat). Where an interpreter is missing, or for `preload` Linux or a C compiler, rows are those
    of a machine that was asked for the same tasks.

    Raises UsageError, and what Experiment.measure raises.
    """
    repeats = rounds.numbers(repeats)
    by_stack = (
        tasks if isinstance(tasks, Mapping) else dict.fromkeys(as_list(names), as_list(tasks))
    )
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        variants = [
            _process(name, chosen, preload, Path(folder))
            for name in as_list(names)
            for preload in PRELOADS
            if (chosen := [task for task in by_stack[name] if task.preload == preload])
        ]
        frame = in_rounds(variants, repeats, "loading certificates")
    return frame.reindex(columns=COLUMNS)


def _process(
    name: str, tasks: list[Task], preload: str, folder: Path
) -> tuple[Experiment, str, Parameters]:
    """Return a stack's tasks for one process, as `in_rounds` takes them.

    They have the same library preloaded. Bundles and the library are written into the folder.
    """
    parameters = {"tasks": [asdict(task) for task in tasks]}
    depends_on: list[Path | measurements.Using] = [Path(__file__), trust.dependency()]
    if preload:
        depends_on += [_source(preload), measurements.Using("cc", digests.tool("cc"))]

    def lacks() -> str:
        if compiled(preload, folder) is not None:
            return ""
        return f"{name}: {preload}.c is preloaded on Linux with a C compiler (Debian: gcc)"

    def add_paths() -> dict[str, Any]:
        additions = [
            {"way": task.does, "bundle": task.bundle(folder), "holds": len(task.chosen)}
            for task in tasks
        ]
        return {
            "library": "pyopenssl" if "pyopenssl" in stacks.get(name).packages else "ssl",
            "nowhere": folder / "nothing",
            "tasks": [
                task | addition
                for task, addition in zip(parameters["tasks"], additions, strict=True)
            ],
        }

    def variables() -> dict[str, str]:
        return compiled(preload, folder) or {}

    experiment = Experiment(
        _PROBE,
        _figures,
        300,
        tuple(depends_on),
        lacks,
        add_paths,
        variables,
        beside=(places.PROBES,),
    )
    return experiment, name, parameters


def _source(preload: str) -> Path:
    return _PROBES / f"{preload}.c"


def compiled(preload: str, folder: Path) -> dict[str, str] | None:
    """Return the environment variables that preload a library.

    It is compiled into a folder if it is not there. None if that cannot be done: it takes Linux and
    a C compiler.
    """
    if not preload:
        return {}
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if platform.system() != "Linux" or compiler is None:
        return None
    library = folder / f"{preload}.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(_source(preload))]
    if not library.exists():
        if commands.run([*command, "-ldl"], compiler, 60, os.environ).returncode:
            return None
    return {"LD_PRELOAD": str(library)}


def _figures(parameters: Parameters, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each task."""
    common = {"python": answer["python"], "openssl": answer["openssl"]}
    common["release"] = " ".join(answer["openssl"].split()[:2])
    tasks = [Task(**fields) for fields in parameters["tasks"]]
    return [
        common | _of_task(task, result)
        for task, result in zip(tasks, answer["results"], strict=True)
    ]


def _of_task(task: Task, result: dict[str, Any]) -> dict[str, Any]:
    if task.preload == COUNTER and not result["locks"]:
        raise RunFailed("no lock was counted: rwlocks.c had no effect. Nothing was recorded.")
    forked = task.processes > 1

    def of_each(name: str, unit: float = 1) -> Any:
        return None if result[name] is None else result[name] * unit / task.loads

    user_ms, system_ms = of_each("user_s", 1000), of_each("system_s", 1000)
    return asdict(task) | {
        "asked": task.certificates,
        "way": task.does,
        "certificates": result["certificates"],
        "how": task.manner,
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


def _rows(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of an answer of a machine file; none if it is not one of these."""
    try:
        script, _, [stack, *_], parameters, repeat = answer["asked"]
        rows = _figures(parameters, answer["answer"]) if script == _PROBE.stem else []
    except (AttributeError, KeyError, TypeError, ValueError, CasebookError):
        return []
    provenance = {name: answer.get(name) for name in ("measured_at", *measurements.COLUMNS)}
    return [{"stack": stack, "repeat": repeat} | row | provenance for row in rows]


#: Loads as machine files have them.
LOADS = recorded_rows.Kind("loads", _rows, ("repeat", "certificates", "loads", "wall_ms", "cpu_ms"))
