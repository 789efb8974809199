"""gevent's own detector of a blocked event loop, switched on inside a stack.

gevent starts a thread that looks at regular intervals whether greenlets have been switched since
it last looked; if not, it prints the stack of the one that holds the loop up. Source: gevent's
documentation, "Configuring gevent" (max_blocking_time, monitor_thread).
"""

import re
from dataclasses import dataclass

import pandas as pd

from casebook import stacks
from casebook.cases.fetching import run_record, server
from casebook.cases.fetching.bench import ask_probe
from casebook.cases.fetching.runs import check_parameters
from casebook.errors import UsageError
from casebook.laboratory import measurements
from casebook.mistakes import for_readers
from casebook.stacks import environments
from casebook.words import LIVE

#: What a report of gevent begins with, after the moment and the greenlet; the stack in it, whose
#: lines are indented; and a call in that.
_BLOCKED = "appears to be blocked"
_STACK = re.compile(r"Blocked Stack.*\n((?: .*\n?)*)")
_PLACE = re.compile(r'^  File "([^"]+)", line (\d+), in (.+)$', re.M)
#: The folders before the part of a file's name that says what it is.
_BEFORE = re.compile(r".*/(?:(?:site|dist)-packages|lib(?:64)?/python\d+\.\d+)/|.*/")


@dataclass(frozen=True)
class Watch:
    """What the detector reported of one run.

    reports: one per report, the stack of the greenlet that held the loop up, outermost call
    first, each as (file, line, function). measured_at: as of a run.
    """

    stack: str
    n: int
    reports: list[list[tuple[str, int, str]]]
    measured_at: str

    @property
    def frame(self) -> pd.DataFrame:
        """Return one row per report.

        Columns: stack, blocked_in (file:line(function)), source, measured_at.
        """
        rows = [
            (self.stack, _place_text(stack[-1]), LIVE, self.measured_at) for stack in self.reports
        ]
        return pd.DataFrame(rows, columns=["stack", "blocked_in", "source", "measured_at"])

    @for_readers
    def report(self, number: int) -> str:
        """Return one report (from 1) as text, a line per call, the one that blocks last."""
        if not 1 <= number <= len(self.reports):
            raise UsageError(f"there is no report {number}; gevent made {len(self.reports)}")
        return "\n".join(map(_place_text, self.reports[number - 1]))

    @for_readers
    def blocked_in(self, file: str) -> int:
        """Count the reports in which the loop was blocked in a file.

        file: the end of its path, such as "urllib3/util/wait.py".
        """
        return sum(report[-1][0] == file for report in self.reports)


def _place_text(place: tuple[str, int, str]) -> str:
    return "{}:{}({})".format(*place)


@for_readers
def watch(name: str, n: int = 3, delay_s: float = 1.0, max_blocking_s: float = 0.3) -> Watch:
    """Run a stack once with gevent's detector on.

    max_blocking_s: how long the loop may stand still unreported; it has to be shorter than the
    delay for a response that blocks to be noticed. Raises UsageError, RunFailed (a response was
    wrong) and MissingInterpreter.
    """
    if not 0 < max_blocking_s <= 60:
        raise UsageError(f"max_blocking_s is {max_blocking_s}; choose more than 0 and up to 60")
    check_parameters([n], delay_s)
    environment = environments.ensure(stacks.get(name))
    variables = {
        "GEVENT_MONITOR_THREAD_ENABLE": "1",
        "GEVENT_MAX_BLOCKING_TIME": str(max_blocking_s),
    }
    with server.start() as lab:
        answer, output = ask_probe(environment, lab, n, delay_s, "grequests", variables=variables)
    run_record.check(name, n, answer)
    return Watch(name, n, reports_in(output), measurements.utc_now())


def reports_in(output: str) -> list[list[tuple[str, int, str]]]:
    """Return the stacks in gevent's output, in order; files without the folders around them."""
    matches = (_STACK.search(part) for part in output.split(_BLOCKED)[1:])
    stacks_in = [_PLACE.findall(match[1]) for match in matches if match]
    return [
        [(_BEFORE.sub("", file, count=1), int(line), name) for file, line, name in calls]
        for calls in stacks_in
        if calls
    ]
