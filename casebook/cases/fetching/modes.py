"""How much is measured: `quick` for a reader's minutes, `full` for the published figures."""

import os
from dataclasses import dataclass

from casebook.errors import UsageError


@dataclass(frozen=True)
class Mode:
    """One amount of measuring.

    delay_s: what the lab server waits before each response, in seconds.
    ns: how many requests a run makes; ns_if_concurrent: the further sizes that are only
    tried if a stack turned out concurrent (a serial one would take minutes).
    repeats: runs per stack and size, each in a process of its own.
    crowd_ns: the sizes for the question how a client fares with very many connections.
    """

    name: str
    delay_s: float
    ns: tuple[int, ...]
    ns_if_concurrent: tuple[int, ...]
    repeats: int
    crowd_ns: tuple[int, ...]


#: Its delay is as short as verdicts allow on a busy machine: the method page shows the measurement
#: behind it (casebook/cases/fetching/verdicts_under_load.py).
QUICK = Mode("quick", 0.1, ns=(3, 10), ns_if_concurrent=(), repeats=3, crowd_ns=(300,))
FULL = Mode(
    "full", 1.0, ns=(3, 5, 10), ns_if_concurrent=(30, 100), repeats=5,
    crowd_ns=(10, 30, 100, 300, 1000, 3000),
)  # fmt: skip

_MODES = {mode.name: mode for mode in (QUICK, FULL)}


def current() -> Mode:
    """Return the mode named by the environment variable CASEBOOK_MODE; `quick` if it is not set."""
    name = os.environ.get("CASEBOOK_MODE", "quick")
    if name not in _MODES:
        raise UsageError(f"CASEBOOK_MODE is {name!r}; set it to one of: {', '.join(_MODES)}")
    return _MODES[name]
