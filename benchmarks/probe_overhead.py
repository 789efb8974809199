"""What the probe costs when it gathers nothing: its wall time over the bare script's.

    python -m benchmarks.probe_overhead [STACK ...]

The bare script and the probe take turns against one lab server. The target is a ratio of median
wall times below 1.02 at n = 100. Other load on the machine moves single runs by more than that,
so the ratio comes with its interval (95%, bootstrap over the pairs), and with the CPU time that
the probe adds, which other load hardly moves.
"""

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from statistics import median

from casebook import stacks
from casebook.runs.bench import ask_probe, lab_server
from casebook.stacks import environments

BARE = Path(__file__).parent / "bare_fetch.py"
TARGET = 1.02


def bare(environment, target, n: int, delay_s: float) -> tuple[float, float]:
    """Wall and CPU seconds of the bare script's fetch."""
    answer = subprocess.run(
        [str(environment.python), BARE, target.url, str(n), str(delay_s), target.ca_file],
        env=environments.clean_environ(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    found = json.loads(answer.stdout)
    assert found["ok"] == n, f"{found['ok']} of {n} responses"
    return found["wall_s"], found["cpu_s"]


def probe(environment, target, n: int, delay_s: float) -> tuple[float, float]:
    """Wall and CPU seconds of the probe's fetch."""
    spec = {
        "client": "grequests",
        "steps": list(environment.stack.steps),
        "url": target.url,
        "n": n,
        "delay_s": delay_s,
        "ca_file": target.ca_file,
        "gather": [],
    }
    found = ask_probe(environment, spec)
    assert found["failure"] is None, found["failure"]
    return found["wall_s"], found["user_s"] + found["sys_s"]


def pairs_of_runs(environment, target, n: int, delay_s: float, pairs: int) -> list:
    """[(bare, probe), ...] as (wall, CPU) each; who goes first changes from pair to pair."""
    found = []
    for pair in range(pairs):
        runs = {}
        for run in (bare, probe) if pair % 2 else (probe, bare):
            runs[run] = run(environment, target, n, delay_s)
        found.append((runs[bare], runs[probe]))
    return found


def wall_ratio(pairs: list) -> float:
    """Median wall time of the probe over that of the bare script."""
    return median(b[0] for _, b in pairs) / median(a[0] for a, _ in pairs)


def interval(pairs: list, draws: int = 2000) -> tuple[float, float]:
    """The middle 95% of the ratio when the pairs are drawn again with replacement."""
    chance = random.Random(1)
    ratios = sorted(wall_ratio(chance.choices(pairs, k=len(pairs))) for _ in range(draws))
    return ratios[int(0.025 * draws)], ratios[int(0.975 * draws)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [s.name for s in stacks.load().values() if s.steps == ("grequests",)]
    parser.add_argument("stacks", nargs="*", default=["stage-1-today", "stage-1-py27"])
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--pairs", type=int, default=21)
    options = parser.parse_args()
    unknown = set(options.stacks) - set(known)
    if unknown:
        parser.error(f"{', '.join(unknown)}: the bare script needs one of {', '.join(known)}")
    worst = 0.0
    with lab_server() as target:
        for name in options.stacks:
            environment = environments.ensure(stacks.get(name))
            bare(environment, target, options.n, 0.1)  # warms the file cache
            found = pairs_of_runs(environment, target, options.n, options.delay, options.pairs)
            ratio, (low, high) = wall_ratio(found), interval(found)
            added_s = median(b[1] - a[1] for a, b in found)
            print(
                f"{name}: wall of probe / bare {ratio:.4f} (95%: {low:.4f} to {high:.4f}), "
                f"CPU added {added_s * 1000:.1f} ms; n = {options.n}, {options.delay:g} s, "
                f"{options.pairs} pairs",
                flush=True,
            )
            worst = max(worst, ratio)
    print(f"target below {TARGET}: {'met' if worst < TARGET else 'MISSED'}")
    return 0 if worst < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
