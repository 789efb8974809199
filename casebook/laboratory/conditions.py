"""What the machine was doing while something was measured, and how fast it was.

A *unit* is a short fixed piece of work in Python, timed by its own processor time before and
after each measurement. It shows what the system does not report: a virtual machine that gets
slower for a while, without steal time, makes the unit longer as well.
"""

import math
import os
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

#: What each measurement says of the machine: columns of frames of runs.
#: unit_ms: the unit's processor time, ms, mean of before and after; unit_change: after over before;
#: load_1min: the system's load average before; steal_s: time that the host took from all cores
#: meanwhile, s (None where the system does not say); cores: that this process may use, by its
#: affinity and by the quota of its control groups, a part of one included; mhz: the mean
#: frequency of the cores before (None where it is not known).
COLUMNS = ("unit_ms", "unit_change", "load_1min", "steal_s", "cores", "mhz")

#: A load average, a core, above which a measurement that may run beside others waited for the
#: processor. A build's own chapters side by side make up to 1.7 on two cores.
MOST_LOAD = 2

_ROUNDS, _TRIES = 25_000, 3


def other_work(frame: pd.DataFrame) -> str:
    """Tell, of runs that may take place beside others, whether their machine had too much to do.

    Parameters:
        frame: the runs, with COLUMNS.

    Returns why their times do not count, if it had in most of them; otherwise an empty string.
    """
    load = (frame["load_1min"] / frame["cores"]).median()
    if not load > MOST_LOAD:  # NaN, too: a machine that does not say
        return ""
    return f"the machine had other work: {load:.1f} processes a core wanted the processor"


def unit_ms() -> float:
    """Measure the processor time of the unit of work, in ms: the least of three tries."""
    return 1000 * min(timeit.repeat(_work, timer=time.thread_time, number=1, repeat=_TRIES))


def _work() -> None:
    total = 0
    for number in range(_ROUNDS):
        total += number % 7


def watched(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Call `measure`, and return its fields with those of COLUMNS added."""
    before_ms, stolen_s, mhz = unit_ms(), _steal_s(), psutil.cpu_freq()
    conditions = {
        "load_1min": round(os.getloadavg()[0], 2),
        "cores": _cores(),
        "mhz": round(mhz.current, 1) if mhz else None,
    }
    result = measure()
    after_ms, later_s = unit_ms(), _steal_s()
    return result | conditions | {
        "unit_ms": round((before_ms + after_ms) / 2, 4),
        "unit_change": round(after_ms / before_ms, 4),
        "steal_s": None if stolen_s is None else round(later_s - stolen_s, 2),
    }  # fmt: skip


def _cores() -> float:
    able = getattr(os, "sched_getaffinity", None)  # not on macOS
    cores = len(able(0)) if able else os.cpu_count() or 1
    quota = min(_quotas(), default=math.inf)
    return cores if cores <= quota else round(quota, 2)


def _quotas(proc: Path = Path("/proc/self")) -> Iterator[float]:
    """Yield the quota, in cores, of each control group around this process that has one.

    Parameters:
        proc: the folder in which the system describes the process.

    A container sees all cores of its machine, and runs on what the quota leaves it: one, on Binder.
    """
    try:
        mounts = [line.split() for line in (proc / "mountinfo").read_text().splitlines()]
        groups = [line.split(":", 2) for line in (proc / "cgroup").read_text().splitlines()]
    except OSError:  # not on Linux
        return
    for mount in mounts:
        root, folder, kind, options = mount[3], Path(mount[4]), *mount[mount.index("-") + 1 :: 2]
        if kind == "cgroup2":
            paths = [path for _, controllers, path in groups if not controllers]
        elif kind == "cgroup" and "cpu" in options.split(","):
            paths = [path for _, names, path in groups if "cpu" in names.split(",")]
        else:
            continue
        for path in paths:
            # A container may see its own group as the root of all.
            inside = Path(path.removeprefix(root if root != "/" else "").lstrip("/"))
            for group in (inside, *inside.parents):
                yield from _quota(folder / group)


def _quota(group: Path) -> Iterator[float]:
    """Yield the quota of one control group in cores, if it has one.

    It is read from either version of the kernel's interface.
    """
    try:
        if (group / "cpu.max").exists():
            allowed, period = (group / "cpu.max").read_text().split()
        else:
            allowed = (group / "cpu.cfs_quota_us").read_text().strip()
            period = (group / "cpu.cfs_period_us").read_text()
    except (OSError, ValueError):
        return
    if allowed not in ("max", "-1"):
        yield int(allowed) / int(period)


def _steal_s() -> Any:
    """Return the seconds stolen from all cores since the system began; None if it does not say."""
    return getattr(psutil.cpu_times(), "steal", None)
