"""What the machine was doing while something was measured, and how fast it was.

A *unit* is a short fixed piece of work in Python, timed by its own processor time before and
after each measurement. It shows what the system does not report: a virtual machine that gets
slower for a while, without steal time, makes the unit longer as well.
"""

import os
import time
import timeit
from collections.abc import Callable
from typing import Any

import pandas as pd
import psutil

#: What each measurement says of the machine: columns of frames of runs.
#: unit_ms: the unit's processor time, ms, mean of before and after; unit_change: after over before;
#: load_1min: the system's load average before; steal_s: time that the host took from all cores
#: meanwhile, s (None where the system does not say); cores: that this process may use; mhz: the
#: mean frequency of the cores before (None where it is not known).
COLUMNS = ("unit_ms", "unit_change", "load_1min", "steal_s", "cores", "mhz")

#: From this standard deviation on, as a share of the mean, runs count as unstable. It is the
#: threshold from which pyperf warns (its function `format_checks`, "the standard deviation is …").
UNSTABLE_FROM = 0.10

_ROUNDS, _TRIES = 25_000, 3


def unit_ms() -> float:
    """How long the unit of work takes now: processor time, ms, the least of three tries."""
    return 1000 * min(timeit.repeat(_work, timer=time.thread_time, number=1, repeat=_TRIES))


def _work() -> None:
    total = 0
    for number in range(_ROUNDS):
        total += number % 7


def watched(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `measure` returns, and COLUMNS beside it."""
    before_ms, stolen_s, mhz = unit_ms(), _steal_s(), psutil.cpu_freq()
    before = {
        "load_1min": round(os.getloadavg()[0], 2),
        "cores": _cores(),
        "mhz": round(mhz.current, 1) if mhz else None,
    }
    found = measure()
    after_ms, later_s = unit_ms(), _steal_s()
    return found | before | {
        "unit_ms": round((before_ms + after_ms) / 2, 4),
        "unit_change": round(after_ms / before_ms, 4),
        "steal_s": None if stolen_s is None else round(later_s - stolen_s, 2),
    }  # fmt: skip


def is_unstable(frame: pd.DataFrame) -> bool:
    """Whether the machine's speed, where it is known, varied so much between these runs that small
    differences mean nothing."""
    units = pd.Series(frame.get("unit_ms"), dtype=float)
    return bool(units.std() / units.mean() >= UNSTABLE_FROM)


def _cores() -> int | None:
    able = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(able(0)) if able else os.cpu_count()


def _steal_s() -> Any:
    """Seconds stolen from all cores since the system began; None where the system does not say."""
    return getattr(psutil.cpu_times(), "steal", None)
