"""How long the quick matrix takes: all stages and today's stacks, n = 3 and 10, three repeats.

The environments are made first, outside the clock. Aim: at most 90 s on two cores.

    python benchmarks/quick_matrix.py
"""

import time

from casebook import analysis, environments, modes, stacks
from casebook.measure import measure_runs
from casebook.record import NOT_RECORDED
from casebook.runs import frame


def main() -> None:
    names = [name for name in stacks.load() if name not in NOT_RECORDED]
    for name in names:
        environments.ensure(stacks.get(name))
    started = time.monotonic()
    measured = measure_runs(names, mode=modes.QUICK)
    took_s = time.monotonic() - started
    print(analysis.verdicts(frame(measured)).to_string())
    print(f"{len(names)} stacks, {len(measured)} runs: {took_s:.1f} s (aim: 90 s)")


if __name__ == "__main__":
    main()
