"""What the probe costs when it gathers nothing: its wall time over the bare client's.

    python -m casebook.cases.probe_overhead [STACK ...]

The bare client (casebook/clients/grequests_map.py between two clocks) and the probe take turns
against one lab server. The target is a ratio of median wall times below 1.02 at n = 100. Other load
on the machine moves single runs by more than that, so the ratio comes with its interval (95%,
bootstrap over the pairs), and with the CPU time that the probe adds, which other load hardly moves.
"""

import argparse
import json
import random
import subprocess
import sys
from statistics import median

from casebook import clients, server, stacks
from casebook.runs import run_record
from casebook.runs.bench import ask_probe
from casebook.stacks import environments
from casebook.stacks.environments import Environment

TARGET = 1.02
DRAWS = 2000

BARE = """
import sys; sys.path.insert(0, sys.argv[1])
from grequests_map import fetch
import json, resource, time
url, n, ca_file = sys.argv[2:]
urls = [url + str(page) for page in range(int(n))]
clock = getattr(time, "perf_counter", time.time)
before, start = resource.getrusage(resource.RUSAGE_SELF), clock()
responses = fetch(urls, ca_file)
wall_s, after = clock() - start, resource.getrusage(resource.RUSAGE_SELF)
assert all(response.ok for response in responses), responses
cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
print(json.dumps([wall_s, cpu_s]))
"""


def bare(environment: Environment, lab: server.Server, n: int, delay_s: float) -> list[float]:
    """Wall and CPU seconds of the bare client's fetch."""
    url = f"{lab.url}/delay/{delay_s}?page="
    command = [environment.python, "-c", BARE, clients.FOLDER, url, n, lab.ca_file]
    said = subprocess.check_output(
        list(map(str, command)),
        env=environments.clean_environ(environment),
        stderr=subprocess.DEVNULL,
    )
    return json.loads(said)


def probe(environment: Environment, lab: server.Server, n: int, delay_s: float) -> list[float]:
    """Wall and CPU seconds of the probe's fetch."""
    found, _ = ask_probe(environment, lab, n, delay_s, "grequests")
    run_record.check(environment.stack.name, n, found)
    return [found["wall_s"], found["user_s"] + found["sys_s"]]


def in_turn(pair: int, *asked) -> tuple[list[float], list[float]]:
    """What both took; who goes first changes from pair to pair."""
    took = {way: way(*asked) for way in ((bare, probe) if pair % 2 else (probe, bare))}
    return took[bare], took[probe]


def wall_ratio(pairs: list) -> float:
    """Median wall time of the probe over that of the bare client, of (bare, probe) pairs."""
    return median(b[0] for _, b in pairs) / median(a[0] for a, _ in pairs)


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
    chance, worst = random.Random(1), 0.0
    with server.start() as lab:
        for name in options.stacks:
            asked = environments.ensure(stacks.get(name)), lab, options.n
            bare(*asked, 0.1)  # warms the file cache
            pairs = [in_turn(pair, *asked, options.delay) for pair in range(options.pairs)]
            ratio = wall_ratio(pairs)
            drawn = sorted(wall_ratio(chance.choices(pairs, k=len(pairs))) for _ in range(DRAWS))
            added_s = median(b[1] - a[1] for a, b in pairs)
            print(
                f"{name}: wall of probe / bare {ratio:.4f} (95%: {drawn[DRAWS // 40]:.4f} to "
                f"{drawn[-DRAWS // 40]:.4f}), CPU added {added_s * 1000:.1f} ms; n = {options.n}, "
                f"{options.delay:g} s, {options.pairs} pairs",
                flush=True,
            )
            worst = max(worst, ratio)
    print(f"target below {TARGET}: {'met' if worst < TARGET else 'MISSED'}")
    return 0 if worst < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
