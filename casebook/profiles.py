"""Single lines of an observed profile: a function's counts and times, and who called it."""

import pandas as pd

from casebook import words
from casebook.errors import UsageError
from casebook.observations import Observation


def calls_of(observation: Observation, function: str, file: str = "") -> int:
    """How often a function was called; 0 when the profile has no such line.

    function: its name; file: a part of its file's name, where several share one name.
    """
    rows = _rows(observation, function, file)
    return sum(row["nc"] for row in rows)


def line(observation: Observation, function: str, file: str = "") -> pd.Series:
    """One line of a profile: file, line, function, calls, pcalls, tottime_s, cumtime_s.

    Raises UsageError when no line matches, or more than one.
    """
    frame = observation.frame
    found = frame[(frame["function"] == function) & frame["file"].str.contains(file, regex=False)]
    if len(found) != 1:
        where = ", ".join(found["file"]) or "nowhere"
        raise UsageError(f"{function} is in this profile {len(found)} times ({where}); name a file")
    return found.iloc[0]


def callers(observation: Observation, function: str, file: str = "") -> pd.DataFrame:
    """Who called a function, most calls first.

    One row per caller: caller (its name), file, calls (made from it), cumtime_s (spent in them),
    by_itself (whether the function called itself), source, measured_at.
    """
    rows = [
        {
            "caller": caller,
            "file": its_file,
            "calls": nc,
            "cumtime_s": ct,
            "by_itself": (its_file, at, caller) == (row["file"], row["line"], row["function"]),
            "source": observation.source,
            "measured_at": observation.measured_at,
        }
        for row in _rows(observation, function, file)
        for its_file, at, caller, _, nc, _, ct in row["callers"]
    ]
    if not rows:
        raise UsageError(f"nobody calls {function} in this profile of {observation.stack}")
    frame = pd.DataFrame(rows).sort_values("calls", ascending=False, kind="stable")
    return frame.reset_index(drop=True)


def counts(row: pd.Series) -> str:
    """Calls as pstats writes them: "20/10" for 20 calls of which 10 are primitive, else "10"."""
    calls, primitive = int(row["calls"]), int(row["pcalls"])
    return str(calls) if calls == primitive else f"{calls}/{primitive}"


def waits(observations: dict[str, Observation]) -> pd.DataFrame:
    """For what pyOpenSSL's sockets waited in urllib3's wait_for_read, in each of some profiles.

    observations: label -> Observation of kind `profile`. Columns: profile, handshakes, responses
    (calls made from wrap_socket, and from recv or recv_into), all, source.
    """
    rows = []
    for label, observation in observations.items():
        by = callers(observation, "wait_for_read").groupby("caller")["calls"].sum()
        row = {
            "profile": label or words.stack_label(observation.stack),
            "handshakes": int(by.get("wrap_socket", 0)),
            "responses": int(by.get("recv", 0) + by.get("recv_into", 0)),
            "all": int(by.sum()),
            "source": observation.source,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _rows(observation: Observation, function: str, file: str) -> list[dict]:
    return [
        row
        for row in observation.answer["profile"]
        if row["function"] == function and file in row["file"]
    ]
