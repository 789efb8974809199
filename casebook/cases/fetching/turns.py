"""Whose turn it was: what became of the thread in an observed run of kind `turns`."""

from typing import Any

import pandas as pd

from casebook.mistakes import for_readers

#: What is shorter is no wait: the loop that only passes the thread on, a call that returns at once.
SHORTEST_WAIT_S = 0.001

#: The calls in which a greenlet waits: sockets of gevent do not wait in any other.
_WAITING = {"poll", "select", "getaddrinfo"}

#: What the greenlet with the thread does. RUNS: Python code. KEEPS: waits in the operating
#: system for one socket, and nobody else can run. WATCHES: the loop, which waits for all of them.
RUNS, KEEPS, WATCHES = "runs", "keeps", "watches"
#: What the probe numbers the script, and gevent's loop.
SCRIPT, LOOP = 0, -1

COLUMNS = ["start_s", "end_s", "greenlet", "does", "function", "file", "line"]


@for_readers
def turns_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the turns of a run, in order of their beginning.

    frame: that of an Observation of kind `turns`. Columns start_s and end_s (from the start of the
    fetch), greenlet (SCRIPT, LOOP, or the number of a request, from 1), does (RUNS, KEEPS,
    WATCHES), function, file and line: those at which the turn ends, or that wait; empty if it ends
    with its request. Turns of the loop in which it only passes the thread on are left out.

    With real threads in the place of greenlets, each has its own turns, and some are at the same
    time.
    """
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    has_loop = any(row["event"] == "switch" for row in rows)
    began: dict[int, float] = {SCRIPT: 0.0}
    calls: dict[int, dict[str, Any]] = {}
    turns: list[tuple[Any, ...]] = []

    def end(row: dict[str, Any], greenlet: int, does: str, at_s: float) -> None:
        start_s = began.get(greenlet, at_s)
        if does == RUNS or at_s - start_s >= SHORTEST_WAIT_S:
            place = (row["function"] or "", row["file"] or "", int(row["line"] or 0))
            turns.append((start_s, at_s, greenlet, does, *place))

    for row in rows:
        number, event, at_s = row["greenlet"], row["event"], row["t_s"]
        began.setdefault(number, at_s)
        if event == "call":
            calls[number] = row
        elif event == "return" and (call := calls.pop(number, None)):
            computes = has_loop and call["function"] not in _WAITING
            if computes or at_s - call["t_s"] < SHORTEST_WAIT_S:
                continue
            end(call, number, RUNS, call["t_s"])
            began[number] = call["t_s"]
            end(call, number, KEEPS, at_s)
            began[number] = at_s
        elif event == "switch":
            end(row, number, WATCHES if number == LOOP else RUNS, at_s)
            began[int(row["to"])] = at_s
        elif event == "end" and has_loop:
            end(row, number, RUNS, at_s)
    return pd.DataFrame(turns, columns=COLUMNS).sort_values("start_s", ignore_index=True)
