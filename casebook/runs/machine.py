"""What the machine was doing while something was measured, and how fast it was.

A *unit* is a short fixed piece of work in Python, timed by its own processor time before and
after each measurement. It shows what the system does not report: a virtual machine that gets
slower for a while, without steal time, makes the unit longer as well.
"""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

#: What each measurement says of the machine: columns of frames of runs.
#: unit_ms: the unit's processor time, ms, mean of before and after; unit_change: after over before;
#: load_1min: the system's load average before; steal_s: time that the host took from all cores
#: meanwhile, s (None where the system does not say); cores: that this process may use; mhz: the
#: frequency of the first core before (None where it is not known).
COLUMNS = ("unit_ms", "unit_change", "load_1min", "steal_s", "cores", "mhz")

#: From this standard deviation on, as a share of the mean, runs count as unstable. It is the
#: threshold from which pyperf warns (its function `format_checks`, "the standard deviation is …").
UNSTABLE_FROM = 0.10

_ROUNDS, _TRIES = 100_000, 3


def unit_ms() -> float:
    """How long the unit of work takes now: processor time, ms, the least of three tries."""
    return min(_work_ms() for _ in range(_TRIES))


def _work_ms() -> float:
    start = time.thread_time_ns()
    total = 0
    for number in range(_ROUNDS):
        total += number % 7
    return (time.thread_time_ns() - start) / 1e6


def watched(take: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `take` returns, and COLUMNS beside it."""
    before_ms, stolen_s = unit_ms(), _steal_s()
    seen = {"load_1min": _load(), "cores": _cores(), "mhz": _mhz()}
    found = take()
    after_ms, later_s = unit_ms(), _steal_s()
    stolen = None if stolen_s is None or later_s is None else round(later_s - stolen_s, 2)
    return found | seen | {
        "unit_ms": round((before_ms + after_ms) / 2, 4),
        "unit_change": round(after_ms / before_ms, 4),
        "steal_s": stolen,
    }  # fmt: skip


def spread(frame: pd.DataFrame) -> float:
    """How much the machine's speed varied between these runs: the standard deviation of the unit
    over its mean. 0 where it is not known."""
    if "unit_ms" not in frame or frame["unit_ms"].count() < 2:
        return 0.0
    units = frame["unit_ms"].dropna().astype(float)
    return float(units.std() / units.mean())


def is_unstable(frame: pd.DataFrame) -> bool:
    """Whether the machine's speed varied so much that small differences mean nothing."""
    return spread(frame) >= UNSTABLE_FROM


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def _cores() -> int:
    able = getattr(os, "sched_getaffinity", None)
    return len(able(0)) if able else os.cpu_count() or 1


def _steal_s() -> float | None:
    """Seconds stolen from all cores since the system began (proc(5), /proc/stat)."""
    try:
        first = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        return int(first[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None


def _mhz() -> float | None:
    if platform.system() != "Linux":
        return None
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("cpu MHz"):
                return round(float(line.partition(":")[2]), 1)
    except (OSError, ValueError):
        pass
    return None
