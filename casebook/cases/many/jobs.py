"""Crawls on a cluster of this machine's own: Dask's scheduler, worker processes, a server of pages.

    frame = measure({"cured": {"pages": 2000}, "stock": {"pages": 2000, "cured": False}})

Nothing of it listens anywhere but on the loopback. Each page that arrived is compared, byte by
byte, with what the server says; a row that stands twice, or a wrong page, is no measurement.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd

from casebook import places
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import rounds
from casebook.laboratory.decisions import Hypothesis, window
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.mistakes import check_range, for_readers

STACK = "many-today"
_PROBES = Path(__file__).parent / "probes"

#: What a job is, where it does not say (probes/crawling.py).
USUAL = {"size": 100, "cured": True, "delay_s": 0.0}

#: What a job may say of itself (probes/crawling.py).
SAYS = (
    *("pages", "hosts", "delay_s", "size", "cured", "kept", "connections", "requests_per_s"),
    *("kill_after", "faults", "folder"),
)


class Crawl(TypedDict):
    """The columns of `measure`, beside what the job says of itself."""

    job: str
    workers: int
    threads: int
    repeat: int
    pages: int
    good: int
    failed: int
    #: Pages whose batch killed its workers.
    killed: int
    #: (URL, name, message) of what did not come, and why the crawl stopped early, or "".
    named: list[list[str]]
    stopped: str
    batches: int
    #: What was written, pages that stand twice, and a digest of all.
    rows: int
    twice: int
    content: str
    #: By the server's count: fetches, those of a page that had been asked for before, connections;
    #: of the host that had most, connections at a time and requests in a second.
    requests: int
    again: int
    connections: int
    peak_connections: int
    peak_per_s: int
    wall_s: float
    #: Milliseconds of CPU for a page: of the workers, of scheduler and client, of both, and of the
    #: server; NaN if a worker was killed, with which its count is lost.
    cpu_ms: float
    engine_cpu_ms: float
    all_ms: float
    server_cpu_ms: float
    #: Of certificates.
    loads: int
    #: Of the largest worker.
    peak_rss_mib: float
    killed_a_worker: int


@rounds.takes_until
def measure(
    jobs: Mapping[str, Mapping[str, Any]],
    workers: int = 2,
    threads: int = 1,
    repeats: int | range | None = None,
    failures: int = 3,
    experiment: Experiment | None = None,
) -> pd.DataFrame:
    """Crawl: each job after the other, on one new cluster a round, in turns.

    Two small crawls before them, stock and cured, which are not counted, have the workers import
    what they need.

    Parameters:
        jobs: what they are called -> what they are, of SAYS: pages, and if they are not as usual
            hosts (8), delay_s of the server (0), size of a batch (100), cured (True), kept
            connections (True), connections and requests_per_s at each host (8; 0, no limit),
            kill_after: the part of the batches after which one worker is killed, faults: page ->
            what is wrong with it.
        workers: processes.
        threads: in each.
        repeats: how many rounds, or which; 1 by default.
        failures: how many deaths of a worker make Dask give up.
        experiment: to run (default: CRAWLS).
        until, looks: what is to be decided (laboratory/rounds.py).

    Returns a row a job and round: the columns of Crawl, and what Experiment.measure adds. Raises
    UsageError, RunFailed if a page that counts as good is not exactly that page, or one stands
    twice, and what Experiment.measure raises.
    """
    names, numbers = list(jobs), rounds.numbers(1 if repeats is None else repeats)
    for job in jobs.values():
        if (unknown := set(job) - set(SAYS)) or not 1 <= job.get("pages", 0) <= 1_000_000:
            reason = f"not {', '.join(sorted(unknown))}" if unknown else "with 1 to 1,000,000 pages"
            raise UsageError(f"a job says {', '.join(SAYS)}, {reason}")
    check_range("workers", workers, 1, 64)
    check_range("threads", threads, 1, 64)
    check_range("failures", failures, 0, 100)
    rows = []
    for number in numbers:
        order = names if number % 2 else names[::-1]  # so that drift touches all alike
        parameters: dict[str, Any] = {"workers": workers, "threads": threads, "failures": failures}
        parameters["jobs"] = [dict(jobs[name]) for name in order]
        frame = (experiment or CRAWLS).measure(
            STACK, [parameters], repeats=range(number, number + 1)
        )
        for row in frame.to_dict("records"):
            provenance = {name: row[name] for name in row if name not in (*parameters, "figures")}
            provenance |= {"workers": workers, "threads": threads}
            for name, figures in zip(order, row["figures"], strict=True):
                rows.append({"job": name, **USUAL, **dict(jobs[name]), **provenance, **figures})
    return pd.DataFrame(rows)


@for_readers
def follows_the_model(**bounds: Any) -> Hypothesis:
    """Ask how far the middle one of three sizes of batches is from the model of the other two.

    The model: CPU of workers and engine for a page is a + b / size. The value is what was measured,
    divided by what the model says, in each round.

    bounds: of the window: above=, below=, or between=(low, high).
    """

    def values(frame: pd.DataFrame) -> pd.Series:
        return frame.groupby("repeat").apply(_off_the_model, include_groups=False)

    return Hypothesis(values, window(**bounds))


def _off_the_model(frame: pd.DataFrame) -> float:
    frame = frame.assign(filled=frame["pages"] / frame["batches"]).sort_values("filled")
    if len(frame) != 3:
        raise UsageError(f"the model is tried on three sizes of batches, not {len(frame)}")
    (small, middle, large), ms = 1 / frame["filled"].to_numpy(), frame["all_ms"].to_numpy()
    of_a_batch = (ms[0] - ms[2]) / (small - large)
    return ms[1] / (ms[2] + of_a_batch * (middle - large))


@for_readers
def named(frame: pd.DataFrame) -> pd.DataFrame:
    """Return what did not come, by name: columns job, page, name, message."""
    return pd.DataFrame(
        [
            {
                "job": row["job"],
                "page": url.partition("/page/")[2],
                "name": name,
                "message": message,
            }
            for row in frame.to_dict("records")
            for url, name, message in row["named"]
        ],
        columns=["job", "page", "name", "message"],
    )


def _figures(parameters: Parameters, answer: Mapping[str, Any]) -> dict[str, Any]:
    pairs: Iterable[tuple[dict, dict]] = zip(parameters["jobs"], answer["jobs"], strict=True)
    return {
        "figures": [_of_job(job, result) for job, result in pairs],
        "openssl": answer["openssl"],
    }


def _of_job(job: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    report, server, pages = result["done"], result["server"], job["pages"]
    killed = sum(batch[2] for batch in report["killed"])
    if result["twice"] or result["right"] != report["good"] or result["rows"] != report["pages"]:
        raise RunFailed(
            f"the crawl wrote {result['rows']} rows of {report['pages']} pages, {result['twice']} "
            f"of them twice, and {result['right']} of {report['good']} good ones are the right page"
            f"{report['stopped'] and ': it stopped, ' + report['stopped']}. Nothing was recorded."
        )
    if not job.get("faults") and not job.get("folder") and report["good"] != pages:
        reason = (
            report["stopped"] or (report["failed"] or [["", "", "batches killed workers"]])[0][2]
        )
        raise RunFailed(f"{report['good']} of {pages} pages came: {reason}. Nothing was recorded.")

    def each_ms(seconds: float | None) -> float | None:
        return None if seconds is None else 1000 * seconds / pages

    return {
        "pages": pages, "good": report["good"], "failed": len(report["failed"]), "killed": killed,
        "named": report["failed"], "stopped": report["stopped"], "batches": report["batches"],
        "rows": result["rows"], "twice": result["twice"], "content": result["content"],
        "requests": server["requests"], "again": server["again"],
        "connections": server["connections"], "peak_connections": server["peak_connections"],
        "peak_per_s": server["peak_per_s"], "wall_s": result["wall_s"],
        "cpu_ms": each_ms(result["cpu_s"]), "engine_cpu_ms": each_ms(result["engine_cpu_s"]),
        "all_ms": each_ms(
            None if result["cpu_s"] is None else result["cpu_s"] + result["engine_cpu_s"]
        ),
        "server_cpu_ms": each_ms(server["cpu_s"]), "loads": result["loads"],
        "peak_rss_mib": result["peak_rss_kib"] / 1024, "killed_a_worker": result["killed_a_worker"],
    }  # fmt: skip


CRAWLS = Experiment(
    _PROBES / "crawling.py",
    figures=_figures,
    within_s=3600,
    depends_on=(places.CURE, _PROBES / "crawl.py", _PROBES / "pages_server.py"),
)
