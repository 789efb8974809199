"""Where the time of a build goes: each of its processes notes what it spends time on.

Outside a build nothing is noted. pages/timing.py adds up the notes.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator

#: The variable that names the file in which the spans of a chapter are noted.
VARIABLE = "CASEBOOK_SPANS"

#: Kinds of spans: a cell of a notebook; within it waiting for the clock, holding it, a measurement,
#: the making of an environment. A measurement may lie within the time for which the clock is held.
CELL, WAIT, CLOCK = "cell", "wait", "clock"
MEASUREMENT, ENVIRONMENT = "measurement", "environment"

#: The kinds of the spans that are open in this process.
_open: list[str] = []


@contextlib.contextmanager
def span(kind: str, label: str = "") -> Iterator[None]:
    """Note, as a context manager, how long its block takes.

    Parameters:
        kind: one of the kinds above.
        label: what the time is spent on, such as the name of a script.

    Each note is a line of JSON: kind, label, within (the kinds around it), wall_s, and cpu_s, the
    processor time of this process and of those that it has waited for.
    """
    file = os.environ.get(VARIABLE)
    if not file:
        yield
        return
    kinds, began, cpu_s = [*_open], time.monotonic(), _cpu_s()
    _open.append(kind)
    try:
        yield
    finally:
        _open.remove(kind)
        note = {
            "kind": kind, "label": label, "within": kinds,
            "wall_s": round(time.monotonic() - began, 3), "cpu_s": round(_cpu_s() - cpu_s, 3),
        }  # fmt: skip
        with open(file, "a") as notes:  # one short write: the lines of two processes do not mix
            notes.write(json.dumps(note) + "\n")


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
