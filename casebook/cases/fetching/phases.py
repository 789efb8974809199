"""What became of each request of an observed timeline, one row each.

A row is the page, then the start and the end of each of EVENTS, in milliseconds from the start
of the fetch; None if there was no such event (plain HTTP has no handshake).
"""

from itertools import accumulate

import pandas as pd

#: The parts of a request, in the order in which they come.
EVENTS = ("connect", "handshake", "send", "wait", "receive")

Row = list[float | None]


def of_requests(frame: pd.DataFrame, digits: int = 2) -> list[Row]:
    """Return the requests of a timeline, by page: [page, start, end, start, end, …], ms.

    frame: columns page, event, start_s, end_s (Observation.frame). digits: decimals of the ms.
    An event that a request has twice (after a retry) lasts from its first start to its last end.
    """
    bounds = frame.groupby(["page", "event"]).agg({"start_s": "min", "end_s": "max"})
    bounds = (1000 * bounds).round(digits).T
    return [
        [int(page), *(e for event in EVENTS for e in bounds.get((page, event), (None, None)))]
        for page in sorted(frame["page"].dropna().unique())
    ]


def most_waiting(frame: pd.DataFrame) -> int:
    """Return how many requests of a timeline, at most, waited for responses at the same time."""
    waits = frame[frame["event"] == "wait"]
    moments = sorted([(t, 1) for t in waits["start_s"]] + [(t, -1) for t in waits["end_s"]])
    return max(accumulate(change for _, change in moments), default=0)
