"""gevent's own detector of a blocked event loop, switched on inside a stack.

gevent starts a thread that looks at regular intervals whether greenlets have been switched since
it last looked; if not, it prints the stack of the one that holds the loop up. Source: gevent's
documentation, "Configuring gevent" (max_blocking_time, monitor_thread).
"""

import re
from dataclasses import dataclass

import pandas as pd

from casebook import server, stacks
from casebook.errors import UsageError
from casebook.runs import measurements, run_record
from casebook.runs.bench import ask_probe
from casebook.stacks import environments
from casebook.words import LIVE

#: What gevent's reports begin with, after the moment and the greenlet.
_BLOCKED = "appears to be blocked"
_STACK_ENDS = re.compile(r"^\S|\Z", re.M)
_PLACE = re.compile(r'^  File "([^"]+)", line (\d+), in (.+)$', re.M)


@dataclass(frozen=True)
class Watch:
    """What the detector reported of one run.

    reports: one per report, the stack of the greenlet that held the loop up, outermost call
    first, each as (file, line, function). source, measured_at: as of a run.
    """

    stack: str
    n: int
    delay_s: float
    max_blocking_s: float
    reports: list
    measured_at: str
    source: str = LIVE

    @property
    def frame(self) -> pd.DataFrame:
        """One row per report: stack, report (from 1), blocked_in (file:line(function)), source,
        measured_at."""
        rows = [
            {
                "stack": self.stack,
                "report": number,
                "blocked_in": "{}:{}({})".format(*report[-1]),
                "source": self.source,
                "measured_at": self.measured_at,
            }
            for number, report in enumerate(self.reports, 1)
        ]
        columns = ["stack", "report", "blocked_in", "source", "measured_at"]
        return pd.DataFrame(rows, columns=columns)

    def report(self, number: int) -> str:
        """One report (from 1) as text, a line per call, the one that blocks last."""
        if not 1 <= number <= len(self.reports):
            raise UsageError(f"there is no report {number}; gevent made {len(self.reports)}")
        return "\n".join("{}:{}({})".format(*place) for place in self.reports[number - 1])

    def blocked_in(self, file: str) -> int:
        """How many reports found the loop held up in a file, such as "urllib3/util/wait.py"."""
        return sum(report[-1][0] == file for report in self.reports)


def watch(
    name: str, n: int = 3, delay_s: float = 1.0, max_blocking_s: float = 0.3, scheme: str = "https"
) -> Watch:
    """Run a stack once with gevent's detector on.

    max_blocking_s: how long the loop may stand still unreported; it has to be shorter than the
    delay for a response that blocks to be noticed. Raises UsageError, RunFailed (a response was
    wrong) and MissingInterpreter.
    """
    if not 0 < max_blocking_s <= 60:
        raise UsageError(f"max_blocking_s is {max_blocking_s}; choose more than 0 and up to 60")
    environment = environments.ensure(stacks.get(name))
    variables = {
        "GEVENT_MONITOR_THREAD_ENABLE": "1",
        "GEVENT_MAX_BLOCKING_TIME": str(max_blocking_s),
    }
    with server.start(scheme) as lab:
        answer, said = ask_probe(environment, lab, n, delay_s, "grequests", variables=variables)
    run_record.check(name, n, answer)
    return Watch(name, n, delay_s, max_blocking_s, reports_in(said), measurements.now())


def reports_in(said: str) -> list[list[tuple[str, int, str]]]:
    """The stacks in what gevent printed, in order; files without the folders around them."""
    found = []
    for part in said.split(_BLOCKED)[1:]:
        _, _, after = part.partition("Blocked Stack")
        stack = after.partition("\n")[2]
        ends = _STACK_ENDS.search(stack)
        stack = stack[: ends.start()] if ends else stack
        places = [(short(file), int(at), name) for file, at, name in _PLACE.findall(stack)]
        if places:
            found.append(places)
    return found


def short(path: str) -> str:
    """A file's name from site-packages or the standard library on."""
    for folder in (r"/(?:site|dist)-packages/", r"/lib(?:64)?/python\d+\.\d+/"):
        parts = re.split(folder, path)
        if len(parts) > 1:
            return parts[-1]
    return path.rpartition("/")[2]
