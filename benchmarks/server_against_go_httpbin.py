"""Does the lab server keep up with go-httpbin?

    python benchmarks/server_against_go_httpbin.py [N] [REPEATS]

N (1,000) new TLS connections at once, each GET /delay/1, to each server in turn, REPEATS (7)
times, the first of each pair alternating. Prints, for each server, the wall time and the 99th
percentile of lateness (from the common start to the complete answer, less the delay), and the
ratios of the medians. Leaves with 1 when a ratio is above 1.2 or an answer is missing.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from casebook import server
from casebook.errors import CasebookError

DELAY_S = 1.0
TARGET = 1.2
CROWD = Path(__file__).with_name("crowd.py")


def once(engine: str, n: int) -> dict[str, float]:
    """One crowd to one server, freshly started: `wall_s` and `p99_late_s`."""
    with server.start(engine=engine) as lab:
        command = [sys.executable, str(CROWD), lab.url, str(lab.ca_file), str(n)]
        done = subprocess.run(
            [*command, f"/delay/{DELAY_S:g}"], stdout=subprocess.PIPE, check=True, text=True
        )
    seen = json.loads(done.stdout)
    if seen["ok"] != n:
        raise SystemExit(f"{engine}: {seen['ok']} of {n} answers; failures: {seen['failures']}")
    late_s = statistics.quantiles(seen["done_s"], n=100)[98] - DELAY_S
    return {"wall_s": seen["wall_s"], "p99_late_s": late_s}


def main(n: int, repeats: int) -> int:
    runs: dict[str, list[dict]] = {engine: [] for engine in server.ENGINES}
    print(f"n = {n}, one TLS connection per GET /delay/{DELAY_S:g}, {repeats} repeats")
    for repeat in range(repeats):
        for engine in server.ENGINES if repeat % 2 == 0 else server.ENGINES[::-1]:
            run = once(engine, n)
            runs[engine].append(run)
            print(f"{engine:<11} wall {run['wall_s']:5.2f} s   p99 late {run['p99_late_s']:5.2f} s")
    reached = True
    for quantity in ("wall_s", "p99_late_s"):
        ours, theirs = (
            statistics.median(run[quantity] for run in runs[engine]) for engine in server.ENGINES
        )
        reached = reached and ours / theirs <= TARGET
        print(
            f"{quantity:<11} median {ours:.2f} against {theirs:.2f}: "
            f"{ours / theirs:.2f} times (at most {TARGET})"
        )
    return 0 if reached else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", nargs="?", type=int, default=1_000)
    parser.add_argument("repeats", nargs="?", type=int, default=7)
    given = parser.parse_args()
    try:
        sys.exit(main(given.n, given.repeats))
    except CasebookError as error:
        sys.exit(str(error))
