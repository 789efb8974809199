"""Crawls on a cluster of this machine's own: Dask's scheduler, worker processes, a server of pages.

    frame = measure({"cured": {"pages": 2000}, "stock": {"pages": 2000, "cured": False}})

Nothing of it listens anywhere but on the loopback. Each page that arrived is compared, byte by
byte, with what the server says; a row that stands twice, or a wrong page, is no measurement.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import rounds
from casebook.laboratory.decisions import Question, window
from casebook.laboratory.experiment import Asked, Experiment

STACK = "many-today"
_PROBES = Path(__file__).parent / "probes"

#: What a job is, where it does not say (probes/crawling.py).
USUAL = {"size": 100, "cured": True, "delay_s": 0.0}

#: What a job may say of itself (probes/crawling.py).
SAYS = (
    *("pages", "hosts", "delay_s", "size", "cured", "kept", "connections", "requests_per_s"),
    *("kill_after", "faults", "folder"),
)


@rounds.takes_until
def measure(
    jobs: Mapping[str, Mapping[str, Any]],
    workers: int = 2,
    threads: int = 1,
    repeats: int | range | None = None,
    failures: int = 3,
    by: Experiment | None = None,
) -> pd.DataFrame:
    """Crawl: each job after the other, on one new cluster a round, in turns. Two small crawls
    before them, stock and cured, which are not counted, have the workers import what they need.

    jobs: what they are called -> what they are, of SAYS: pages, and where they are not as usual
    hosts (8), delay_s of the server (0), size of a batch (100), cured (True), kept connections
    (True), connections and requests_per_s at each host (8; 0, no limit), kill_after: the part of
    the batches after which one worker is killed, faults: page -> what is wrong with it.
    workers: processes; threads: in each. until, looks: what is to be decided
    (casebook/laboratory/rounds.py). failures: how many deaths of a worker make Dask give up.
    by: CRAWLS, where a caller knows more of when they can run here.

    Returns one row per job and round: job, what it is, workers, threads, repeat; pages, good,
    failed, killed (pages whose batch killed its workers), rows, twice, content (a digest of all
    that was written), stopped; requests, again, connections, peak_connections, peak_per_s by the
    server's count (of fetches; of the host that had most); wall_s; cpu_ms of the workers,
    engine_cpu_ms of scheduler and client, all_ms of both, server_cpu_ms, each for a page (NaN where
    a worker was killed, with which its count is lost); loads of certificates; peak_rss_mib of the
    largest worker; source, instead, measured_at and measurements.COLUMNS.
    Raises UsageError, RunFailed where a page that counts as good is not exactly that page, or
    one stands twice, and what Experiment.measure raises.
    """
    names, numbers = list(jobs), rounds.numbers(1 if repeats is None else repeats)
    for its in jobs.values():
        if (unknown := set(its) - set(SAYS)) or not 1 <= its.get("pages", 0) <= 1_000_000:
            said = f"not {', '.join(sorted(unknown))}" if unknown else "with 1 to 1,000,000 pages"
            raise UsageError(f"a job says {', '.join(SAYS)}, {said}")
    if not 1 <= workers <= 64 or not 1 <= threads <= 64:
        raise UsageError(f"choose 1 to 64 workers and threads, not {workers} and {threads}")
    rows = []
    for number in numbers:
        order = names if number % 2 else names[::-1]  # so that drift touches all alike
        asked: dict[str, Any] = {"workers": workers, "threads": threads, "failures": failures}
        asked["jobs"] = [dict(jobs[name]) for name in order]
        found = (by or CRAWLS).measure(STACK, [asked], repeats=range(number, number + 1))
        for each in found.to_dict("records"):
            made = {name: each[name] for name in each if name not in (*asked, "figures")}
            made |= {"workers": workers, "threads": threads}
            for name, its in zip(order, each["figures"], strict=True):
                rows.append({"job": name, **USUAL, **dict(jobs[name]), **made, **its})
    return pd.DataFrame(rows)


def follows_the_law(**ends: Any) -> Question:
    """Ask of jobs with three sizes of batches how far the middle one is from the law of the other
    two: CPU of workers and engine for a page is a + b / size. The value is what was measured,
    divided by what the law says, in each round.

    ends: of the window: above=, below=, or between=(low, high).
    """

    def values(frame: pd.DataFrame) -> pd.Series:
        return frame.groupby("repeat").apply(_off_the_law, include_groups=False)

    return Question(values, window(**ends))


def _off_the_law(its: pd.DataFrame) -> float:
    its = its.assign(filled=its["pages"] / its["batches"]).sort_values("filled")
    if len(its) != 3:
        raise UsageError(f"the law is tried on three sizes of batches, not {len(its)}")
    (few, middle, many), ms = 1 / its["filled"].to_numpy(), its["all_ms"].to_numpy()
    of_a_batch = (ms[0] - ms[2]) / (few - many)
    return ms[1] / (ms[2] + of_a_batch * (middle - many))


def named(frame: pd.DataFrame) -> pd.DataFrame:
    """What did not come, by name: columns job, page, name, message."""
    return pd.DataFrame(
        [
            {"job": row["job"], "page": url.partition("/page/")[2], "name": name, "message": said}
            for row in frame.to_dict("records")
            for url, name, said in row["named"]
        ],
        columns=["job", "page", "name", "message"],
    )


def _figures(asked: Asked, answer: Mapping[str, Any]) -> dict[str, Any]:
    pairs: Iterable[tuple[dict, dict]] = zip(asked["jobs"], answer["jobs"], strict=True)
    return {"figures": [_of_job(job, its) for job, its in pairs], "openssl": answer["openssl"]}


def _of_job(job: dict[str, Any], its: dict[str, Any]) -> dict[str, Any]:
    done, server, pages = its["done"], its["server"], job["pages"]
    killed = sum(each[2] for each in done["killed"])
    if its["twice"] or its["right"] != done["good"] or its["rows"] != done["pages"]:
        raise RunFailed(
            f"the crawl wrote {its['rows']} rows of {done['pages']} pages, {its['twice']} of them "
            f"twice, and {its['right']} of {done['good']} good ones are the right page"
            f"{done['stopped'] and ': it stopped, ' + done['stopped']}. Nothing was recorded."
        )
    if not job.get("faults") and not job.get("folder") and done["good"] != pages:
        why = done["stopped"] or (done["failed"] or [["", "", "batches killed workers"]])[0][2]
        raise RunFailed(f"{done['good']} of {pages} pages came: {why}. Nothing was recorded.")

    def each_ms(seconds: float | None) -> float | None:
        return None if seconds is None else 1000 * seconds / pages

    return {
        "pages": pages, "good": done["good"], "failed": len(done["failed"]), "killed": killed,
        "named": done["failed"], "stopped": done["stopped"], "batches": done["batches"],
        "rows": its["rows"], "twice": its["twice"], "content": its["content"],
        "requests": server["requests"], "again": server["again"],
        "connections": server["connections"], "peak_connections": server["peak_connections"],
        "peak_per_s": server["peak_per_s"], "wall_s": its["wall_s"],
        "cpu_ms": each_ms(its["cpu_s"]), "engine_cpu_ms": each_ms(its["engine_cpu_s"]),
        "all_ms": each_ms(None if its["cpu_s"] is None else its["cpu_s"] + its["engine_cpu_s"]),
        "server_cpu_ms": each_ms(server["cpu_s"]), "loads": its["loads"],
        "peak_rss_mib": its["peak_rss_kib"] / 1024, "killed_a_worker": its["killed_a_worker"],
    }  # fmt: skip


CRAWLS = Experiment(
    _PROBES / "crawling.py",
    figures=_figures,
    within_s=3600,
    made_of=(places.CURE, _PROBES / "crawl.py", _PROBES / "pages_server.py"),
)
