"""What it costs to load a bundle of certificates, in any stack: processor time, wall time, and
whether other threads can run meanwhile.

    sizes = [Task(certificates=k) for k in (0, 1, 10, 50, None)]
    frame = measure("stage-1-today", sizes)

A stack that has pyOpenSSL loads with pyOpenSSL, and with the OpenSSL inside its cryptography
package; the others with the standard library's ssl. The certificates are certifi's.
"""

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from casebook import places, stacks
from casebook.cases.certificates import preloads
from casebook.errors import MissingInterpreter, RunFailed, UsageError
from casebook.runs import answers, decisions, measurements, modes, reference, trust
from casebook.runs.decisions import Question
from casebook.runs.measure import in_turns, rounds, several
from casebook.runs.progress import Progress
from casebook.stacks import environments
from casebook.words import LIVE, REFERENCE

WAYS = ("file", "default", "compute")

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


#: A load that lasts long enough for the watching thread to be missed, by each way.
WATCHED = tuple(Task(way=way, loads=1, copies=5, watched=True) for way in ("file", "default"))

#: As many threads as loads, and no lock between readers.
TEN_APART = Task(loads=10, threads=10, apart=True)

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


def measure(
    names: str | Iterable[str],
    tasks: Task | Iterable[Task] | Mapping[str, Iterable[Task]],
    repeats: int | range | None = None,
    until: Question | Iterable[Question] = (),
) -> pd.DataFrame:
    """Take the tasks in the stacks, in turns, each repeat in a process of its own.

    tasks: of all stacks, or those of each by its name. A stack's tasks with `apart` are taken in a
    process beside that of its other tasks. until: what is to be decided; there are then as many
    repeats as that takes (decisions.LOOKS).

    Returns one row per task and repeat, columns COLUMNS. openssl: as it names itself; release: the
    same without its date; how: who loads, in words. Per context made (or piece computed): wall_ms;
    user_ms and system_ms and both together, cpu_ms, of all threads or processes; faults (pages of
    memory that the kernel had to bring), beats of the watching thread, locks (read-write locks
    taken, only from `rwlocks.count`). Of the task: contexts, loads (counted at the call; not known
    for processes), certificates (found in the last context), stall_ms (the longest time without a
    beat). Where an interpreter is missing, or for `apart` a C compiler, rows are the reference
    machine's.

    Raises UsageError, RunFailed, MissingInterpreter.
    """
    questions = [until] if isinstance(until, Question) else list(until)
    if questions:
        return decisions.until_decided(lambda some: measure(names, tasks, some), questions)
    names = several(names)
    of_each = {name: _tasks(tasks, name) for name in names}
    repeats = modes.current().repeats if repeats is None else repeats
    here: dict[str, environments.Environment] = {}
    rows: dict[str, list[dict]] = {name: [] for name in names}
    for name in names:
        check(of_each[name], len(rounds(repeats)))
        try:
            here[name] = environments.ensure(stacks.get(name))
        except MissingInterpreter:
            rows[name] = recorded(name, of_each[name], repeats)
            missing = not rows[name] and 1 in rounds(repeats)
            if stacks.get(name).python in environments.required() or missing:
                raise
    total = len(here) * len(rounds(repeats))
    with (
        tempfile.TemporaryDirectory(prefix="casebook-") as folder,
        Progress(total, "loading certificates") as progress,
    ):
        for repeat, name in in_turns(here, repeats):
            rows[name] += _rows(here[name], of_each[name], repeat, Path(folder))
            progress.step()
    return frame([row for name in names for row in rows[name]])


def _tasks(tasks, name: str) -> list[Task]:
    """The tasks of one stack."""
    if isinstance(tasks, Mapping):
        tasks = tasks[name]
    return [tasks] if isinstance(tasks, Task) else list(tasks)


def frame(rows: Iterable[dict]) -> pd.DataFrame:
    """Rows as they are kept, as a frame with the columns COLUMNS."""
    return pd.DataFrame(list(rows), columns=COLUMNS)


def check(tasks: Iterable[Task], repeats: int) -> None:
    """Raise UsageError for a task that cannot be taken, or a number of repeats out of range."""
    if not 1 <= repeats <= 1000:
        raise UsageError(f"repeats is {repeats}; choose 1 to 1000")
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


def ask(
    environment: environments.Environment,
    tasks: Iterable[Task],
    folder: Path,
    variables: dict[str, str] | None = None,
) -> dict:
    """The answer of casebook/probes/loading.py, with bundles written into `folder`.

    variables: further environment variables. Raises RunFailed.
    """
    tasks = list(tasks)
    pyopenssl = "pyopenssl" in environment.stack.packages
    spec = {
        "library": "pyopenssl" if pyopenssl else "ssl",
        "nowhere": str(folder / "nothing"),
        "tasks": [_told(task, folder) for task in tasks],
    }
    answer = answers.ask(environment, "loading.py", spec, variables)
    wanted = len(trust.certificates())
    for task, result in zip(tasks, answer["results"], strict=True):
        expected = wanted if task.certificates is None else task.certificates
        expected = 0 if task.way == "compute" else expected
        if result["certificates"] != expected:
            raise RunFailed(
                f"{environment.stack.name}: {result['certificates']} certificates were loaded, "
                f"not {expected}. Nothing was recorded."
            )
    return answer


def rows_of(stack: str, answer: dict, tasks: Iterable[Task], repeat: int) -> list[dict]:
    """A probe's answer as rows for `frame`."""
    rows: list[dict] = []
    for task, result in zip(tasks, answer["results"], strict=True):
        counters, each = result["counters"], 1 / task.loads
        forked = task.processes > 1
        taken = result["read_locks"], result["write_locks"]
        user_ms, system_ms = (result[name] * 1000 * each for name in ("user_s", "system_s"))
        row = (
            asdict(task)
            | {
                "stack": stack,
                "python": answer["python"],
                "openssl": answer["openssl"],
                "release": " ".join(answer["openssl"].split()[:2]),
                "asked": task.certificates,
                "way": "none" if task.certificates == 0 else task.way,
                "certificates": result["certificates"],
                "how": task.how,
                "repeat": repeat,
                "contexts": task.loads if forked else counters["contexts"],
                "loads": None
                if forked
                else counters["load_verify_locations"] + counters["default_loads"],
                "wall_ms": result["wall_s"] * 1000 * each,
                "cpu_ms": user_ms + system_ms,
                "user_ms": user_ms,
                "system_ms": system_ms,
                "faults": result["faults"] * each,
                "beats": None if result["beats"] is None else result["beats"] * each,
                "stall_ms": None if result["stall_s"] is None else result["stall_s"] * 1000,
                "locks": None if taken[0] is None else sum(taken) * each,
                "source": LIVE,
                "measured_at": answer["measured_at"],
                "instead": "",
            }
            | {name: answer.get(name) for name in measurements.COLUMNS}
        )
        rows.append(row)
    return rows


def recorded(name: str, tasks: Iterable[Task], repeats: int | range | None = None) -> list[dict]:
    """Rows of the reference machine for these tasks in a stack; empty where it has none.

    repeats: only these; None: all.
    """
    found, known = [], reference.kinds("loads")
    if "apart" not in known:  # recorded before there was that choice
        known = known.assign(apart=False)
    for task in tasks:
        same = {each: getattr(task, each) for each in _SAME}
        rows = reference.stand_in(known, {"stack": name} | same)
        size = (
            rows["asked"].isna()
            if task.certificates is None
            else rows["asked"] == task.certificates
        )
        rows = rows[size]
        found += (rows if repeats is None else rows[rows["repeat"].isin(rounds(repeats))]).to_dict(
            "records"
        )
    return found


#: What makes two tasks the same, beside the number of certificates.
_SAME = ("way", "copies", "threads", "processes", "watched", "apart")


def record(repeats: int = decisions.LOOKS[0]) -> list[dict]:
    """The rows that `recorded` gives, measured now: of the stacks and tasks in RECORDED."""
    rows: list[dict] = []
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        for repeat in range(1, repeats + 1):
            for name, tasks in RECORDED:
                environment = environments.ensure(stacks.get(name))
                rows += _rows(environment, tasks, repeat, Path(folder))
    return [row | {"source": REFERENCE} for row in rows]


def _rows(environment, tasks: Iterable[Task], repeat: int, folder: Path) -> list[dict]:
    """The rows of one repeat: those of tasks with `apart` come from a process of their own."""
    together = [task for task in tasks if not task.apart]
    apart = [task for task in tasks if task.apart]
    rows = _of_process(environment, together, repeat, folder, {}, {}) if together else []
    if not apart:
        return rows
    name, library = environment.stack.name, preloads.compiled(APART, folder)
    if library is None:
        return rows + recorded(name, apart, range(repeat, repeat + 1))
    variables, made_of = preloads.variables(library), preloads.made_of(APART)
    return rows + _of_process(environment, apart, repeat, folder, variables, made_of)


def _of_process(environment, tasks, repeat: int, folder: Path, variables, made_of) -> list[dict]:
    answer = answers.stored_or_new(
        environment.stack,
        {"tasks": [asdict(task) for task in tasks], "repeat": repeat} | made_of,
        [Path(__file__), places.PROBES / "loading.py"],
        lambda: ask(environment, tasks, folder, variables),
    )
    return rows_of(environment.stack.name, answer, tasks, repeat)


def _told(task: Task, folder: Path) -> dict:
    """A task as the probe reads it; its bundle is written if it is not there."""
    told = asdict(task) | {"bundle": None}
    if task.way == "compute":
        return told
    if task.certificates == 0:
        return told | {"way": "none"}
    chosen = trust.certificates()[: task.certificates]
    path = folder / f"{len(chosen)}x{task.copies}.pem"
    if not path.exists():
        path.write_text("".join(chosen * task.copies))
    return told | {"bundle": str(path)}
