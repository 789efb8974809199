"""What the probe costs when it gathers nothing: its wall time over the bare client's.

    python -m casebook.cases.probe_overhead [STACK ...]

The bare client (casebook/clients/grequests_map.py between two clocks) and the probe take turns
against one lab server. The target is a ratio of wall times below 1.02 at n = 100. Other load on the
machine moves single runs by more than that, so the ratio is that of casebook/runs/decisions.py,
with its interval (from eight pairs on), and beside it stands the CPU time that the probe adds,
which other load hardly moves.
"""

import argparse
import json
import sys

import pandas as pd

from casebook import server, stacks
from casebook.cases import programs
from casebook.runs import run_record
from casebook.runs.bench import ask_probe
from casebook.runs.decisions import ratio
from casebook.runs.rounds import in_turns
from casebook.stacks import environments

TARGET = 1.02

BARE = """
from grequests_map import fetch
import json, resource, sys, time
url, n, ca_file = sys.argv[1:]
urls = [url + str(page) for page in range(int(n))]
clock = getattr(time, "perf_counter", time.time)
before, start = resource.getrusage(resource.RUSAGE_SELF), clock()
responses = fetch(urls, ca_file)
wall_s, after = clock() - start, resource.getrusage(resource.RUSAGE_SELF)
assert all(response.ok for response in responses), responses
cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
print(json.dumps([wall_s, cpu_s]))
"""


def bare(name: str, lab: server.Server, n: int, delay_s: float) -> list[float]:
    """Wall and CPU seconds of the bare client's fetch."""
    asked = f"{lab.url}/delay/{delay_s}?page=", str(n), str(lab.ca_file)
    return json.loads(programs.run(name, BARE, *asked, within_s=60 + 3 * n * (delay_s + 0.1)))


def probe(name: str, lab: server.Server, n: int, delay_s: float) -> list[float]:
    """Wall and CPU seconds of the probe's fetch."""
    environment = environments.ensure(stacks.get(name))
    found, _ = ask_probe(environment, lab, n, delay_s, "grequests")
    run_record.check(name, n, found)
    return [found["wall_s"], found["user_s"] + found["sys_s"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [s.name for s in stacks.load().values() if s.steps == ("grequests",)]
    default = ["stage-1-today", "stage-1-py27"]
    parser.add_argument("stacks", nargs="*", default=default, help=f"of {', '.join(known)}")
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--pairs", type=int, default=21)
    options = parser.parse_args()
    if unknown := set(options.stacks) - set(known):
        parser.error(f"{', '.join(unknown)}: the bare client needs one of {', '.join(known)}")
    worst, wall = 0.0, ratio("wall_s", "probe", "bare", by="way", below=TARGET)
    with server.start() as lab:
        for name in options.stacks:
            bare(name, lab, options.n, 0.1)  # warms the file cache
            rows = [
                (repeat, way.__name__, *way(name, lab, options.n, options.delay))
                for repeat, way in in_turns((bare, probe), options.pairs)
            ]
            frame = pd.DataFrame(rows, columns=["repeat", "way", "wall_s", "cpu_s"])
            found, cpu_s = wall.decide(frame), frame.pivot(index="repeat", columns="way")["cpu_s"]
            print(
                f"{name}: wall of probe / bare {found:.4f} ({found.low:.4f} to {found.high:.4f}), "
                f"CPU added {(cpu_s['probe'] - cpu_s['bare']).median() * 1000:.1f} ms; "
                f"n = {options.n}, {options.delay:g} s, {options.pairs} pairs",
                flush=True,
            )
            worst = max(worst, float(found))
    print(f"target below {TARGET}: {'met' if worst < TARGET else 'MISSED'}")
    return 0 if worst < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
