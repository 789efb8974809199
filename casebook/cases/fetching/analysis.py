"""What runs say: effective concurrency, verdicts, intervals.

A verdict rests on what happened, not on seconds. In a serial stack the server never has more
than one request in flight, whatever the machine is busy with; and a serial run can never reach
an effective concurrency above 1, because noise only makes it slower.
"""

import math

import pandas as pd

from casebook.cases.fetching.observations import Observation
from casebook.errors import UsageError
from casebook.mistakes import check_range, for_readers

SERIAL, CONCURRENT, BETWEEN = "serial", "concurrent", "between"

#: Effective concurrency from which a run counts as concurrent.
CONCURRENT_FROM = 1.5
#: If the server does not report its peak of requests in flight, a run counts as serial
#: only below this; between the two thresholds the clock alone cannot tell.
SERIAL_BELOW = 1.2
#: With a shorter delay each response is back before the next request is out, and every stack
#: looks serial: there is nothing to tell.
SHORTEST_TELLING_DELAY_S = 0.05


def verdict_by_peak(peak: int) -> str:
    """Judge by the peak alone, with no clock: `serial` if there never were two, else `concurrent`.

    peak: the most requests at once, of two or more that were made.
    """
    return SERIAL if peak <= 1 else CONCURRENT


def effective_concurrency(n: int, delay_s: float, wall_s: float) -> float:
    """Return how many requests were served per delay: n x delay / wall (1 = one at a time).

    n: requests made; delay_s, wall_s: seconds. No unit.
    """
    return n * delay_s / wall_s


@for_readers
def verdict(n: int, delay_s: float, wall_s: float, peak_in_flight: int | None = None) -> str:
    """Judge one run: `serial`, `concurrent`, or `between`.

    It is serial if the server never handled two requests at once; if the server does not count
    them, the clock says so (SERIAL_BELOW). It is concurrent if it is not serial and the clock says
    so, too (CONCURRENT_FROM). All else is `between`, as is a single request, or a delay that is too
    short to tell.

    peak_in_flight: the most requests that the server handled at once; None if it does not count.
    """
    check_range("n", n, 0, math.inf)
    check_range("delay_s", delay_s, 0, math.inf)
    check_range("wall_s", wall_s, 1e-9, math.inf)
    if n < 2 or delay_s < SHORTEST_TELLING_DELAY_S:
        return BETWEEN
    concurrency = effective_concurrency(n, delay_s, wall_s)
    serial = concurrency < SERIAL_BELOW if peak_in_flight is None else peak_in_flight <= 1
    if serial:
        return SERIAL
    return CONCURRENT if concurrency >= CONCURRENT_FROM else BETWEEN


@for_readers
def verdict_of(frame: pd.DataFrame) -> str:
    """Return the verdict of one stack: that of its best repeat at the largest n.

    The best repeat, because noise can hide concurrency but cannot make it.
    frame: runs (columns n, effective_concurrency, verdict) of one stack, client and scheme.
    """
    largest = frame[frame["n"] == frame["n"].max()]
    return largest.sort_values("effective_concurrency").iloc[-1]["verdict"]


@for_readers
def verdicts(frame: pd.DataFrame) -> pd.Series:
    """Return the verdict of each stack in a frame of runs, in the frame's order."""
    by_stack = {name: verdict_of(rows) for name, rows in frame.groupby("stack", sort=False)}
    return pd.Series(by_stack, name="verdict", dtype=object)


@for_readers
def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Summarise runs of the same kind: one row per stack, client, scheme, delay and n.

    Returns columns stack, client, scheme, delay_s, n, source, repeats, median_s, min_s, max_s,
    effective_concurrency (of the best repeat), verdict.
    """
    groups = frame.groupby(["stack", "client", "scheme", "delay_s", "n", "source"], sort=False)
    rows = groups.agg(
        repeats=("wall_s", "size"),
        median_s=("wall_s", "median"),
        min_s=("wall_s", "min"),
        max_s=("wall_s", "max"),
        effective_concurrency=("effective_concurrency", "max"),
    )
    return rows.assign(verdict=[verdict_of(runs) for _, runs in groups]).reset_index()


@for_readers
def median_wall_s(frame: pd.DataFrame, stack: str, n: int) -> float:
    """Return the median wall time in seconds of one stack's runs at one n."""
    rows = frame[(frame["stack"] == stack) & (frame["n"] == n)] if len(frame) else frame
    if rows.empty:
        raise UsageError(f"no run of {stack!r} with n = {n} is in this frame")
    return float(rows["wall_s"].median())


@for_readers
def beats_while_waiting(timeline: Observation) -> int:
    """Count how often the event loop ran its heartbeat while some response was waited for.

    timeline: an observed timeline (runs.observe). A wait that goes through the event loop lets
    the heartbeat run every 10 ms; during one that blocks the loop it cannot run at all. A slow
    machine makes this count smaller, but cannot make beats where there are none.
    """
    waits = timeline.frame[timeline.frame["event"] == "wait"]
    return sum(
        bool(((waits["start_s"] < beat) & (beat < waits["end_s"])).any())
        for beat in timeline.heartbeats
    )
