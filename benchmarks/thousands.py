"""Thousands of requests at once: grequests with the cure against the near-limit, in one run.

    python -m benchmarks.thousands [--repeats 5] [--stock 1] [--sizes 1000 3000]

GETs of /delay/1, verify=True with a full certificate bundle, each over a connection of its own. The
near-limit (casebook/cases/near_limit.py) and grequests with casebook/shared_context.py take turns
at each size; the ratios are of medians. Without the cure it runs at the largest size only, for its
memory, and as often as --stock says: a minute and two gigabytes each time.
"""

import argparse
import os
from statistics import median

from benchmarks.ratios import show as ratio
from casebook.cases import near_limit
from casebook.runs.measure import measure_runs
from casebook.runs.runs import Run

CURED, STOCK = "cured-today", "requests-2.34.2-today"
#: How often the near-limit's wall time the cured client may take, by number of requests.
TARGETS = {1_000: 1.5, 3_000: 2.6}
MEMORY_TARGET = 0.1


def fetch(stack: str, n: int) -> Run:
    """One run of grequests in a stack."""
    return measure_runs([stack], n=[n], delay_s=1.0, repeats=1, trust="bundle")[0]


def show(run: Run) -> Run:
    """Print a run as one line."""
    print(
        f"  {run.stack:<22} n {run.n:>5,}  wall {run.wall_s:6.2f} s  CPU {run.cpu_s:6.2f} s  "
        f"peak {run.peak_rss_kib * 1024 / 1e6:7.1f} MB  load average {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return run


def main() -> None:
    """Measure, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--stock", type=int, default=1)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(TARGETS))
    asked = parser.parse_args()
    limits = {n: [] for n in asked.sizes}
    cured = {n: [] for n in asked.sizes}
    for _ in range(asked.repeats):
        for n in asked.sizes:
            limits[n].append(show(near_limit.measure_runs([n])[0]))
            cured[n].append(show(fetch(CURED, n)))
    largest = max(asked.sizes)
    stock = [show(fetch(STOCK, largest)) for _ in range(asked.stock)]

    print(f"\nAgainst {limits[largest][0].client}, medians of {asked.repeats}, wall time")
    for n in asked.sizes:
        pairs = zip(cured[n], limits[n], strict=True)
        each = ", ".join(f"{one.wall_s / other.wall_s:.2f}" for one, other in pairs)
        walls = [median(run.wall_s for run in its_runs) for its_runs in (cured[n], limits[n])]
        said = f"cured over near-limit, n = {n:,} (each: {each})"
        ratio(said, walls[0] / walls[1], TARGETS.get(n))
    if stock:
        peaks = [median(run.peak_rss_kib for run in its) for its in (cured[largest], stock)]
        name = f"peak memory, cured over stock, n = {largest:,}"
        ratio(name, peaks[0] / peaks[1], MEMORY_TARGET)


if __name__ == "__main__":
    main()
