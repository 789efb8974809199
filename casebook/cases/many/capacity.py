"""How many machines a job takes: a model of what it costs, measured, and what others published.

    costs = fit_costs(curve, pages, waits)
    seconds(costs, Job(pages=10_000, size=25))     # of a job on this machine
    at_scale(costs, [1e6, 1e8, 1e9], hours=24)

The model: a page costs `page_ms` of CPU, a batch `task_ms` more, which its pages share, and a
connection `connection_ms`; stock requests adds `load_ms` to each connection, and the cure one to
each process. The time is that of whatever is busiest: the cores, the workers, the scheduler, which
is one process of Python, or the waiting. And
each second costs something, even where all wait: a hundred times a second Dask looks where the
threads are that have a task (`distributed.worker.profile.interval`), the longer the more there are.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypedDict, Unpack

import pandas as pd

from casebook.errors import UsageError
from casebook.laboratory.decisions import Hypothesis, window
from casebook.mistakes import check_range, for_readers


@dataclass(frozen=True)
class Costs:
    """What was measured, in milliseconds of CPU unless it says otherwise.

    Fields:
        page_ms: of the workers and the engine for a page, whatever the batch.
        task_ms: the same for a batch: the task, its messages, its file.
        connection_ms: a connection of requests, one context; of it, handshake_ms are the client's
            part of the TLS handshake.
        load_ms: a load of all certificates, which stock requests adds to each connection.
        engine_task_ms: of task_ms, the part of scheduler and client: one process, however many
            machines there are.
        worker_second_ms, thread_second_ms, engine_second_ms: for each second that a job takes, of a
            worker process, of each of its threads that has a task, and of scheduler and client.
        server_page_ms, server_batch_ms: what the server here adds, on the same cores.
        memory_mib: of the largest worker process.
    """

    page_ms: float
    task_ms: float
    engine_task_ms: float
    connection_ms: float
    handshake_ms: float
    load_ms: float
    worker_second_ms: float
    thread_second_ms: float
    engine_second_ms: float
    server_page_ms: float
    server_batch_ms: float
    memory_mib: float

    @for_readers
    def cpu_ms(self, size: float, cured: bool = True, pages_per_connection: float = 0) -> float:
        """Return it for a page, if `size` pages share a batch.

        pages_per_connection: 0 for as many.
        """
        connection_ms = self.connection_ms + (0 if cured else self.load_ms)
        return self.page_ms + self.task_ms / size + connection_ms / (pages_per_connection or size)

    @for_readers
    def second_ms(self, workers: float, threads: float) -> float:
        """Return it for a second of a job, of the engine and workers whose threads have tasks."""
        return _second_ms(asdict(self), workers, threads)

    def server_cpu_ms(self, size: float) -> float:
        """Return it for a page, of the server here."""
        return self.server_page_ms + self.server_batch_ms / size


#: For `fit_costs`: threads of each worker, and jobs: of pages that come at once, and of few and
#: many that are waited for. Each page is a task.
WAITING_THREADS = 16
WAITS = {
    "near": {"pages": 32, "size": 1},
    "few": {"pages": 2, "size": 1, "delay_s": 2},
    "many": {"pages": 32, "size": 1, "delay_s": 2},
}


@for_readers
def fit_costs(curve: pd.DataFrame, pages: pd.DataFrame, waits: pd.DataFrame) -> Costs:
    """Compute the costs of the model from its two ends.

    curve: of jobs.measure, cured, with the smallest and the largest `size` that are used here; what
    lies between is for the test of the model. pages: of costs.measure, with requests stock and
    cured over new connections, and cured over a kept one. waits: of jobs.measure, the jobs of
    WAITS, by workers of WAITING_THREADS. Medians of all rounds. What the loads of a process took,
    and the seconds, is no part of a page: of forty pages it is a tenth, of a million the loads are
    nothing.
    Raises UsageError where a size is missing.
    """
    by_case = pages.groupby("case")[["cpu_ms", "handshake_ms"]].median()
    stock, cured, reused = (
        f"requests-{case}" for case in ("stock, new", "cured, new", "cured, kept")
    )
    load_ms = by_case.loc[stock, "cpu_ms"] - by_case.loc[cured, "cpu_ms"]
    a_second = _costs_per_second(waits, load_ms)
    second_ms = _second_ms(a_second, curve["workers"], curve["threads"])
    seconds_ms = second_ms * curve["wall_s"] / curve["pages"]
    work_ms = curve["all_ms"] - loads_ms(curve, load_ms) - seconds_ms
    by_size = curve.assign(own=work_ms).groupby("size")
    work = by_size["own"].median()
    server = by_size["server_cpu_ms"].median()
    # A batch may be smaller than was asked for: the pages of a host need not fill its last one.
    filled = by_size["pages"].first() / by_size["batches"].first()
    if len(work) < 2:
        raise UsageError("a model of two costs needs jobs with two sizes of batches")
    small, large = work.index.min(), work.index.max()
    difference = 1 / filled[small] - 1 / filled[large]
    engine_task_ms = _engine_task_ms(curve, a_second["engine_second_ms"])
    connection_ms = by_case.loc[cured, "cpu_ms"] - by_case.loc[reused, "cpu_ms"]
    batch_ms = (work[small] - work[large]) / difference
    server_ms = (server[small] - server[large]) / difference
    return Costs(
        page_ms=float(work[large] - batch_ms / filled[large]),
        task_ms=float(max(0, batch_ms - connection_ms)),
        engine_task_ms=engine_task_ms,
        connection_ms=float(connection_ms),
        handshake_ms=float(by_case.loc[cured, "handshake_ms"]),
        load_ms=float(load_ms),
        **a_second,
        server_page_ms=float(server[large] - server_ms / filled[large]),
        server_batch_ms=float(server_ms),
        memory_mib=float(curve["peak_rss_mib"].max()),
    )


def _engine_task_ms(curve: pd.DataFrame, engine_second_ms: float) -> float:
    """Compute what scheduler and client spend on a batch, from the smallest and the largest one."""
    of_seconds_ms = engine_second_ms * curve["wall_s"] / curve["pages"]
    by_size = curve.assign(own=curve["engine_cpu_ms"] - of_seconds_ms).groupby("size")
    own = by_size["own"].median()
    filled = by_size["pages"].first() / by_size["batches"].first()
    small, large = own.index.min(), own.index.max()
    return float((own[small] - own[large]) / (1 / filled[small] - 1 / filled[large]))


def _costs_per_second(waits: pd.DataFrame, load_ms: float) -> dict[str, float]:
    """Compute what an idle second costs, as fields of Costs: medians of the rounds."""
    own_ms = (waits["cpu_ms"] - loads_ms(waits, load_ms)) * waits["pages"]
    spent = waits.assign(own_ms=own_ms, engine_ms=waits["engine_cpu_ms"] * waits["pages"])
    by_job = {job: frame.set_index("repeat") for job, frame in spent.groupby("job")}
    work, engine, waiting = {}, {}, {}
    for job in ("few", "many"):
        waiting[job] = by_job[job]["pages"].iloc[0]
        # What its pages would have taken at once is their part of what all of them took.
        part = waiting[job] / by_job["near"]["pages"]
        longer_s = by_job[job]["wall_s"] - part * by_job["near"]["wall_s"]
        work[job], engine[job] = (
            ((by_job[job][name] - part * by_job["near"][name]) / longer_s).median()
            for name in ("own_ms", "engine_ms")
        )
    thread_ms = (work["many"] - work["few"]) / (waiting["many"] - waiting["few"])
    workers_ms = work["few"] - waiting["few"] * thread_ms
    return {
        "worker_second_ms": float(workers_ms / waits["workers"].iloc[0]),
        "thread_second_ms": float(thread_ms),
        "engine_second_ms": float((engine["few"] + engine["many"]) / 2),
    }


def _second_ms(costs: Mapping[str, float], workers: Any, threads: Any) -> Any:
    """Return the CPU of a second, of workers whose threads all have a task, and of the engine."""
    a_worker_ms = costs["worker_second_ms"] + threads * costs["thread_second_ms"]
    return workers * a_worker_ms + costs["engine_second_ms"]


def loads_ms(runs: pd.DataFrame, load_ms: float) -> pd.Series:
    """Return what the loads of cured runs (of jobs.measure) took of each page.

    One load for a process that had not loaded before, by their count.
    """
    return runs["loads"] * load_ms / runs["pages"]


def predicted_cpu_ms(costs: Costs, run: Mapping[str, Any], took_s: float) -> float:
    """Return the CPU for a page, of workers and engine, that the model says of a run.

    run: a row of jobs.measure. The loads of its processes are in it, and the seconds that it takes.
    """
    of_loads = loads_ms(pd.DataFrame([run]), costs.load_ms)[0] if run["cured"] else 0.0
    of_seconds = costs.second_ms(run["workers"], run["threads"]) * took_s / run["pages"]
    return costs.cpu_ms(run["size"], run["cured"]) + of_loads + of_seconds


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job on one machine, whose server runs on the same cores: columns of jobs.measure.

    size: pages of a batch. threads: of each worker.
    """

    pages: float
    size: float = 100
    cured: bool = True
    delay_s: float = 0.0
    workers: int = 2
    threads: int = 1
    cores: float = 2


def seconds(costs: Costs, job: Job) -> float:
    """Return how long a job takes on one machine.

    It is the longest of what the cores, the workers and the scheduler (a process of Python uses one
    core) and the waiting take. A batch is a connection, and its pages wait one after the other; as
    many batches wait side by side as there are threads, and the last of them may be alone.
    """
    client, server = costs.cpu_ms(job.size, job.cured), costs.server_cpu_ms(job.size)
    turns = math.ceil(job.pages / job.size / (job.workers * job.threads))
    in_turn_s = job.size * (job.delay_s + (client + server) / 1000)
    return max(
        job.pages * (client + server) / 1000 / job.cores,
        job.pages * client / 1000 / job.workers,
        job.pages / job.size * costs.engine_task_ms / 1000,
        turns * in_turn_s,
    )


@for_readers
def with_predictions(costs: Costs, runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs of jobs.measure with what the model says of each.

    Returns the rows, and said_ms and said_s: CPU for a page and the time of the whole job, as they
    would be said before it; off: the CPU that was measured, divided by said_ms.
    """
    rows = runs.to_dict("records")
    names = [field.name for field in fields(Job)]
    jobs = [Job(**{name: run[name] for name in names}) for run in rows]
    predicted_s = [seconds(costs, job) for job in jobs]
    predicted_ms = [
        predicted_cpu_ms(costs, run, wall_s) for run, wall_s in zip(rows, predicted_s, strict=True)
    ]
    both = runs.assign(said_s=predicted_s, said_ms=predicted_ms)
    return both.assign(off=both["all_ms"] / both["said_ms"])


@for_readers
def prediction_ratio(
    job: str, basis: Iterable[str], pages: pd.DataFrame, waits: pd.DataFrame, **bounds: Any
) -> Hypothesis:
    """Ask how far the model is off for a job of jobs.measure, in each round; 1 is not at all.

    That is the CPU of workers and engine that a page took, divided by what the model says.

    Parameters:
        job: what it is called.
        basis: the jobs of the same round that the costs are fitted to, as in fit_costs: what a page
            costs changes with what else a machine does, by half within minutes. The model is told
            how long the job took, for the same reason.
        pages, waits: as for fit_costs.
        bounds: of the window: above=, below=, or between=(low, high).
    """
    basis = list(basis)

    def of_a_round(frame: pd.DataFrame) -> float:
        costs = fit_costs(frame[frame["job"].isin(basis)], pages, waits)
        [run] = frame[frame["job"] == job].to_dict("records")
        return run["all_ms"] / predicted_cpu_ms(costs, run, run["wall_s"])

    def values(frame: pd.DataFrame) -> pd.Series:
        return frame.groupby("repeat").apply(of_a_round, include_groups=False)

    return Hypothesis(values, window(**bounds))


class Fleet(TypedDict, total=False):
    """The machines of a large job."""

    #: Within which it has to be done: 24 by default.
    hours: float
    #: Of each machine, all of them busy: 16 by default.
    cores: int
    dollars_per_core_hour: float


class Scale(TypedDict):
    """The columns of `at_scale`."""

    pages: float
    #: Of CURE_LABELS.
    way: str
    #: CPU of a page.
    cpu_ms: float
    core_hours: float
    machines: int
    schedulers: int
    dollars: float
    #: Of a machine with a worker on each core.
    memory_gib: float


@for_readers
def at_scale(
    costs: Costs, pages: Iterable[float], *, size: float = 100, pages_per_connection: float = 1,
    other_ms: float = 0.0, **fleet: Unpack[Fleet],
) -> pd.DataFrame:  # fmt: skip
    """Return machines and money for jobs that this machine cannot run, stock and cured.

    Parameters:
        costs: as `fit_costs` returns them.
        pages: of each job.
        size: pages of a batch.
        pages_per_connection: those that share one.
        other_ms: CPU for a page that is none of ours, such as parsing.
        fleet: what machines there are.

    What a second costs a worker, a few hundredths of its core, is left out. The servers are
    somebody else's, and so is the network: if it is the limit, it takes more machines. A scheduler
    hands out a number of tasks and no more, so a large job takes several, each with workers and
    hosts of its own. What hundreds of workers cost a scheduler is not measured, and left out.

    Returns a row a job and cure: the columns of Scale.
    """
    hours, cores = fleet.get("hours", 24), fleet.get("cores", 16)
    dollars = fleet.get("dollars_per_core_hour", 0.0)
    _check(size=size, pages_per_connection=pages_per_connection, cores=cores)
    check_range("hours", hours, 1e-3, 1e6)
    check_range("other_ms", other_ms, 0, 1e6)
    check_range("dollars_per_core_hour", dollars, 0, 1e6)
    rows: list[Scale] = []
    for count in pages:
        _check(pages=count)
        for cured in (False, True):
            ms = costs.cpu_ms(size, cured, pages_per_connection) + other_ms
            core_hours = count * ms / 1000 / 3600
            rows.append({
                "pages": count, "way": CURE_LABELS[cured], "cpu_ms": ms, "core_hours": core_hours,
                "machines": math.ceil(core_hours / hours / cores),
                "schedulers": math.ceil(count / size / tasks_per_s(costs) / 3600 / hours),
                "dollars": core_hours * dollars,
                "memory_gib": cores * costs.memory_mib / 1024,
            })  # fmt: skip
    return pd.DataFrame(rows)


def _check(**numbers: float) -> None:
    """Raise UsageError if one of these is less than one, or more than anybody has."""
    for name, value in numbers.items():
        check_range(name, value, 1, 1e15)


@for_readers
def tasks_per_s(costs: Costs) -> float:
    """Return how many tasks a second one scheduler hands out, if it does nothing else."""
    return 1000 / costs.engine_task_ms


@for_readers
def schedulers_asked(
    costs: Costs, tasks_per_second: float, sizes: Iterable[str], **bounds: Any
) -> Hypothesis:
    """Ask how many schedulers a rate of tasks takes, in each round.

    Parameters:
        costs: as `fit_costs` returns them; of these, what the engine spends in a second.
        tasks_per_second: how many have to be handed out.
        sizes: the two jobs (of jobs.measure) from which a round says what a task costs the engine.
        bounds: of the window: above=, below=, or between=(low, high).
    """
    check_range("tasks_per_second", tasks_per_second, 1e-9, 1e9)
    sizes = list(sizes)

    def of_a_round(frame: pd.DataFrame) -> float:
        task_ms = _engine_task_ms(frame, costs.engine_second_ms)
        return tasks_per_second * task_ms / 1000

    def values(frame: pd.DataFrame) -> pd.Series:
        rows = frame[frame["job"].isin(sizes)]
        return rows.groupby("repeat").apply(of_a_round, include_groups=False)

    return Hypothesis(values, window(**bounds))


#: How the two are called, by whether they are cured.
CURE_LABELS = {False: "a load for each connection", True: "one context"}


class Functions(TypedDict, total=False):
    """How functions that somebody else runs are limited."""

    #: After which one is stopped: 900 by default.
    within_s: float
    #: How many may run: 1,000 by default.
    at_once: int
    #: That a page waits for its answer: 0.1 by default.
    delay_s: float


@for_readers
def functions(
    costs: Costs,
    pages: float,
    *,
    size: float = 100,
    pages_per_connection: float = 1,
    **limits: Unpack[Functions],
) -> pd.DataFrame:
    """Return how many functions, each with one core, a job takes, stock and cured.

    Each function has as many connections as keep it busy. Columns way; pages_each (until it is
    stopped), functions, turns and minutes; connections, how many each has to wait on at once;
    one_by_one, pages with a single connection.
    """
    within_s, at_once = limits.get("within_s", 900), limits.get("at_once", 1000)
    delay_s = limits.get("delay_s", 0.1)
    _check(pages=pages, size=size, pages_per_connection=pages_per_connection, at_once=at_once)
    check_range("within_s", within_s, 1, 1e6, " s")
    check_range("delay_s", delay_s, 0, 1e6, " s")
    rows = []
    for cured in (False, True):
        ms = costs.cpu_ms(size, cured, pages_per_connection)
        per_function = int(within_s * 1000 / ms)
        count = math.ceil(pages / per_function)
        rows.append({
            "way": CURE_LABELS[cured], "pages_each": per_function, "functions": count,
            "turns": math.ceil(count / at_once),
            "minutes": pages * ms / 60_000 / min(count, at_once),
            "connections": math.ceil((1000 * delay_s + ms) / ms),
            "one_by_one": int(within_s * 1000 / (1000 * delay_s + ms)),
        })  # fmt: skip
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Published:
    """What others say of a job of theirs.

    cores: of a machine, as sold (0: not said); dollars: NaN if not said; source: its entry in the
    bibliography.
    """

    name: str
    source: str
    pages: float
    hours: float
    machines: int
    cores: int
    dollars: float

    @property
    def per_s(self) -> float:
        """Return pages a second, on each machine."""
        return self.pages / self.hours / 3600 / self.machines


#: As their authors say; nothing of it was measured here.
PUBLISHED = (
    Published("a billion pages, 2025", "chan2025", 1.005e9, 25.5, 12, 16, 462),
    Published("img2dataset", "img2dataset", 100e6, 20, 1, 0, math.nan),
)

#: The share of CPU time in handshakes, and who says so: the first of PUBLISHED.
HANDSHAKES = 0.25


@for_readers
def core_ms(job: Published) -> float:
    """Return what a page had of a core, in ms, all cores taken for busy. NaN: not said."""
    if not job.cores:
        return math.nan
    return 1000 * job.hours * 3600 * job.machines * job.cores / job.pages


@for_readers
def core_hour(job: Published) -> float:
    """Return what a core cost by the hour, in dollars. NaN: not said."""
    return job.dollars / (job.hours * job.machines * job.cores) if job.cores else math.nan
