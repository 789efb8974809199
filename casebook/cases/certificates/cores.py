"""Whether two cores were free while something was measured: told by work that shares nothing.

A hypothesis about threads beside each other says so, and COMPUTING is among the tasks:

    dearer = on_two_cores(ratio("cpu_ms", "10 threads", "one thread", by="how", above=1.2))
    frame = loading.measure(stack, [*tasks, COMPUTING], until=[dearer])
"""

from dataclasses import dataclass

import pandas as pd

from casebook.cases.certificates.loading import Task
from casebook.laboratory.decisions import LOOKS, NOT_HERE, Decision, Hypothesis
from casebook.mistakes import for_readers

#: Two processes that only compute, without certificates, locks or each other.
COMPUTING = Task(way="compute", loads=12, processes=2)

#: So many cores they must have had together.
ENOUGH = 1.5


def busy(frame: pd.DataFrame) -> pd.Series:
    """Return how many cores COMPUTING had in each round, by `repeat`: processor by wall time."""
    computing = frame[frame["way"] == "compute"].set_index("repeat")
    return computing["cpu_ms"] / computing["wall_ms"]


@dataclass(frozen=True)
class _OnTwoCores(Hypothesis):
    @for_readers
    def decide(self, frame: pd.DataFrame) -> Decision:
        cores = busy(frame)
        free = cores.index[cores >= ENOUGH]
        if len(free) >= min(LOOKS[0], len(cores) / 2):
            return super().decide(frame[frame["repeat"].isin(free)])
        nan, has_two = float("nan"), "cores" not in frame or frame["cores"].max() >= ENOUGH
        because = (
            "no second core was free: two processes that only compute had "
            f"{cores.median():.1f} cores together"
        )
        return Decision(
            nan, nan, nan, 0, self.window, NOT_HERE, because, more_rounds_may_decide=bool(has_two)
        )


@for_readers
def on_two_cores(hypothesis: Hypothesis) -> Hypothesis:
    """Return the same hypothesis, of the rounds in which two cores were free.

    If these are fewer than half, and too few for an interval, its outcome is not-here; if a machine
    has two and was busy, more rounds may come. What tells it is COMPUTING, which has to be among
    the tasks of one stack in the same rounds. It has no part in what is asked.
    """
    return _OnTwoCores(hypothesis.values, hypothesis.window)
