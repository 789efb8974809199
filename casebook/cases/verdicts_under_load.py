"""How far serial and concurrent stacks stay apart, on an idle and on a busy machine.

Runs a known-serial and a known-concurrent stack many times per delay, with and without two
processes that keep the cores busy, and prints for each cell the range of effective
concurrency, the server's peak of requests in flight, and how many verdicts were wrong. The
quick mode's delay was chosen from this table; beside busy cores it is tried more often.

    python -m casebook.cases.verdicts_under_load [RUNS PER CELL [TRIED]] > verdicts.csv
"""

import contextlib
import itertools
import os
import subprocess
import sys

import pandas as pd
from tqdm import tqdm

from casebook import server, stacks
from casebook.runs import analysis, run_record
from casebook.runs.bench import Bench
from casebook.runs.modes import QUICK
from casebook.runs.rounds import in_turns
from casebook.stacks import environments

KNOWN = {"stage-2-py37": analysis.SERIAL, "stage-1-py37": analysis.CONCURRENT}
DELAYS_S = (0.05, 0.1, 0.2)
N = 10


@contextlib.contextmanager
def busy_cores(busy: bool):
    """Keep every core busy with one process of its own while the block runs."""
    with contextlib.ExitStack() as hogs:
        for _ in range((os.cpu_count() or 1) if busy else 0):
            hog = hogs.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            hogs.callback(hog.kill)
        yield


def measure(runs_per_cell: int = 20, tried: int = 100) -> pd.DataFrame:
    """runs_per_cell runs of each kind, and `tried` beside busy cores at the quick mode's delay.

    In turns: each delay and stack once, then all again, so that a slow minute touches all alike.
    A row a run, columns known, busy, and run_record.FRAME_COLUMNS.
    """
    ready = [environments.ensure(stacks.get(name)) for name in KNOWN]
    parts = []
    for busy in (False, True):
        counts = dict.fromkeys(DELAYS_S, runs_per_cell) | ({QUICK.delay_s: tried} if busy else {})
        turns = in_turns(itertools.product(DELAYS_S, ready), max(counts.values()))
        wanted = [turn for turn in turns if turn[0] <= counts[turn[1][0]]]
        # A server of its own: what is measured beside busy cores is not for the store.
        with busy_cores(busy), server.start() as lab, Bench(of_another=lab) as bench:
            for repeat, (delay_s, who) in tqdm(wanted, unit="run"):
                asked = {"client": "grequests", "trust": "authority", "n": N, "delay_s": delay_s}
                parts.append(run_record.frame([bench.run(who, repeat, **asked)]).assign(busy=busy))
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(known=frame["stack"].map(KNOWN))


def main() -> None:
    frame = measure(*map(int, sys.argv[1:]))
    columns = ["known", "busy", "delay_s", "n", "effective_concurrency", "wall_s"]
    columns += ["counters_peak_in_flight", "verdict"]
    frame[columns].round(4).to_csv(sys.stdout, index=False)
    for key, cell in frame.groupby(["delay_s", "busy", "known"]):
        concurrency, peak = cell["effective_concurrency"], cell["counters_peak_in_flight"]
        wrong = (cell["verdict"] != key[2]).sum()
        print(
            f"delay {key[0]} s, {'busy' if key[1] else 'idle'}, {key[2]}: effective concurrency "
            f"{concurrency.min():.2f} to {concurrency.max():.2f}, peak in flight {peak.min()} "
            f"to {peak.max()}, verdicts that differ {wrong} of {len(cell)}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
