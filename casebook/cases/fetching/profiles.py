"""Single lines of an observed profile: a function's counts and times, and who called it.

Of a client with threads a profile is a recording of all threads, which can be read in two ways:
`all_threads`, as the calls were made, and `one_stack`, as cProfile of Python 3.12 and newer does.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from casebook import stacks, words
from casebook.cases.fetching import observations, runs, trust
from casebook.cases.fetching.bench import fetching
from casebook.cases.fetching.observations import COUNTS, Observation
from casebook.errors import UsageError
from casebook.laboratory import rounds
from casebook.laboratory.rounds import as_list, in_turns
from casebook.mistakes import check_range, for_readers
from casebook.stacks import environments

#: What reads a response through pyOpenSSL: on Python 2, and on Python 3.
_READING = ("recv", "recv_into")
#: The system's poll as Python 2.7 and 3 name it in a profile, and not what makes the object.
_POLL = r"method '?poll\b"


def _lines(profile: Observation | pd.DataFrame, function: str, file: str) -> pd.DataFrame:
    frame = profile if isinstance(profile, pd.DataFrame) else profile.frame
    return frame[(frame["function"] == function) & frame["file"].str.contains(file, regex=False)]


@for_readers
def line(profile: Observation | pd.DataFrame, function: str, file: str = "") -> pd.Series:
    """Return one line of a profile, or of a frame of its lines.

    Columns file, line, function, calls, pcalls, tottime_s, cumtime_s. function: its name; file: a
    part of its file's name, if several share one name. Raises UsageError if no line matches, or
    more than one.
    """
    lines = _lines(profile, function, file)
    if len(lines) != 1:
        files = ", ".join(lines["file"]) or "nowhere"
        raise UsageError(f"{function} is in this profile {len(lines)} times ({files}); name a file")
    return lines.iloc[0]


@for_readers
def calls_of(observation: Observation, function: str, file: str = "") -> int:
    """Count how often a function was called; 0 if the profile has no such line. As `line`."""
    return int(_lines(observation, function, file)["calls"].sum())


@for_readers
def counts(row: pd.Series) -> str:
    """Return calls as pstats writes them: "20/10" for 20 calls, 10 of them primitive, else "10"."""
    calls, primitive = int(row["calls"]), int(row["pcalls"])
    return str(calls) if calls == primitive else f"{calls}/{primitive}"


@for_readers
def callers(
    observation: Observation, function: str | Iterable[str], file: str = ""
) -> pd.DataFrame:
    """Return who called a function (as for `line`) or any of several, most calls first.

    One row per caller: caller (its name), file, calls (made from it), cumtime_s (spent in them),
    by_itself (whether the function called itself), source, measured_at.
    """
    rows = [
        {
            "caller": caller,
            "file": caller_file,
            "calls": calls,
            "cumtime_s": cumtime_s,
            "by_itself": (caller_file, line_number, caller)
            == (row["file"], row["line"], row["function"]),
        }
        for row in observation.answer["profile"]
        if row["function"] in as_list(function) and file in row["file"]
        for caller_file, line_number, caller, _, calls, _, cumtime_s in row["callers"]
    ]
    if not rows:
        raise UsageError(f"nobody calls {function} in this profile of {observation.stack}")
    frame = pd.DataFrame(rows).sort_values("calls", ascending=False, kind="stable")
    provenance = {"source": observation.source, "measured_at": observation.measured_at}
    return frame.reset_index(drop=True).assign(**provenance)


@for_readers
def side_by_side(
    observations: Mapping[str, Observation], top: int = 4, only: Iterable[str] = ()
) -> pd.DataFrame:
    """Show profiles side by side: for each function its calls and own time in each of them.

    observations: label -> Observation of kind `profile`. top: how many functions of each to take,
    those with the largest own times. only: these functions in place of them, each as the end of
    its file:line(function), or as "poll, built in". One row per function, largest own time first:
    where, "<label>, calls" (text, as `counts`; "–" if it was not called), "<label>, own time, s"
    (NaN if it was not called), source (`reference` if one of them is), measured_at. Raises
    UsageError if a function of `only` is in no profile.
    """
    tables = {
        label: _place_totals(observation.frame) for label, observation in observations.items()
    }
    both = pd.concat(tables, axis="columns")
    check_range("top", top, 1, 100)
    only = list(only)
    chosen = [place for end in only for place in both.index if f"/{place}".endswith(f"/{end}")]
    if len(chosen) < len(only):
        raise UsageError(f"not each of {words.join(only)} is in one of these profiles")
    if not only:
        longest = [table.nlargest(top, "tottime_s").index for table in tables.values()]
        chosen = list(dict.fromkeys(place for places in longest for place in places))
    longest_own = both.xs("tottime_s", axis="columns", level=1).max(axis="columns")
    both = both.loc[longest_own[chosen].sort_values(ascending=False, kind="stable").index]
    frame = pd.DataFrame({"where": both.index})
    for label in tables:
        frame[f"{label}, calls"] = both[label, "counts"].fillna("–").to_list()
        frame[f"{label}, own time, s"] = both[label, "tottime_s"].to_list()
    # A recorded one first.
    first = min(observations.values(), key=lambda profile: profile.source != words.REFERENCE)
    return frame.assign(source=first.source, measured_at=first.measured_at)


def _place_totals(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of a profile by their place: counts (as `counts`) and tottime_s."""
    built_in = frame["function"].str.extract(r"(?:method|function) '?([\w.]+)", expand=False)
    in_a_file = frame["file"] + ":" + frame["line"].astype(str) + "(" + frame["function"] + ")"
    bare = built_in.fillna(frame["function"].str.strip("<>")) + ", built in"
    place = in_a_file.where(frame["file"] != "~", bare)
    # Two built-in methods may share a bare name.
    table = frame[["calls", "pcalls", "tottime_s"]].groupby(place).sum()
    return table.assign(counts=table.apply(counts, axis="columns"))[["counts", "tottime_s"]]


@for_readers
def waits(observations: dict[str, Observation]) -> pd.DataFrame:
    """Return what pyOpenSSL's sockets waited for in urllib3's wait_for_read, in each profile.

    observations: label -> Observation of kind `profile`. Columns: profile, handshakes, responses
    (calls made from wrap_socket, and from recv or recv_into), all, source.
    """
    rows = [
        {"profile": label} | waited(observation) | {"source": observation.source}
        for label, observation in observations.items()
    ]
    return pd.DataFrame(rows)[["profile", "handshakes", "responses", "all", "source"]]


def waited(observation: Observation) -> dict[str, float]:
    """Return what a stack with pyOpenSSL waits for in urllib3's wait_for_read, from a profile.

    handshakes, responses (calls made from wrap_socket, and from recv or recv_into), all (calls);
    response_s (the time in those for responses), again (how often recv or recv_into called itself),
    poll_s (the system's `poll` alone), all_s (the own times of all functions).
    """
    frame, calls = observation.frame, callers(observation, "wait_for_read")
    for_responses = calls[calls["caller"].isin(_READING)]
    reading = callers(observation, _READING, "contrib/pyopenssl.py")
    polls = frame["function"].str.contains(_POLL) & (frame["file"] == "~")
    return {
        "handshakes": calls.loc[calls["caller"] == "wrap_socket", "calls"].sum(),
        "responses": for_responses["calls"].sum(),
        "all": calls["calls"].sum(),
        "response_s": for_responses["cumtime_s"].sum(),
        "again": reading.loc[reading["by_itself"], "calls"].sum(),
        "poll_s": frame.loc[polls, "tottime_s"].sum(),
        "all_s": frame["tottime_s"].sum(),
    }


@rounds.takes_until
def in_rounds(  # noqa: PLR0913  what a reader may choose
    name: str,
    figures: Callable[[Observation], dict[str, float]],
    n: int,
    delays_s: Iterable[float] = (0.0,),
    client: str = "grequests",
    trust: str = trust.AUTHORITY,
    repeats: int | range = 1,
) -> pd.DataFrame:
    """Measure figures of a stack's profiles, in turns.

    figures: from a profile to what is asked of it, such as `waited`. delays_s: seconds the server
    waits, one profile for each in every round. until, looks: what is to be decided
    (laboratory/rounds.py). One row per profile: stack, n, delay_s, repeat, its figures, wall_s,
    source, measured_at, key. Raises UsageError, RunFailed and MissingInterpreter.
    """
    stack, delays_s = stacks.get(name), list(delays_s)
    for delay_s in delays_s:
        runs.check_parameters([n], delay_s, client, trust=trust)
    environments.ensure(stack)  # raises: no recorded profile stands in for one of a round
    parameters = {"client": client, "trust": trust, "scheme": "https", "gather": "profile"}
    experiment, rows = fetching(stack, client, "profile"), []
    for repeat, delay_s in in_turns(delays_s, repeats):
        round_ = {"n": n, "delay_s": delay_s, "repeat": repeat}
        observation = observations.from_measurement(
            experiment.first_answer([stack], parameters | round_)
        )
        provenance = {
            field: getattr(observation, field) for field in ("source", "measured_at", "key")
        }
        wall = {"wall_s": observation.answer["wall_s"]}
        rows.append({"stack": name} | round_ | figures(observation) | wall | provenance)
    return pd.DataFrame(rows)


@for_readers
def all_threads(observation: Observation) -> pd.DataFrame:
    """Read the profile of a client with threads thread by thread, and add the threads up.

    One row per function, most processor time first: file, line, function, calls, pcalls, cpu_s
    (processor time of the function alone), tottime_s and cumtime_s (the time that passed in each
    thread, waiting included: those of several threads overlap), source, measured_at. Raises
    UsageError for a profile that is no recording of threads.
    """
    return _read(observation, lambda row: row, column="cpu_s")


@for_readers
def one_stack(observation: Observation) -> pd.DataFrame:
    """Read the same recording as cProfile of Python 3.12 does, all threads' calls on one stack.

    One row per function, most own time first; columns as `all_threads`, without cpu_s. When a
    function returns, the call that was opened last is closed, in whichever thread, and its time is
    booked for the function that returns. So the own times add up to the wall time of the fetch,
    and who is charged for it is as accidental as the order in which threads return.
    """
    frame = _read(observation, lambda row: row | row["one_stack"], column="tottime_s")
    return frame.drop(columns="cpu_s")


def _read(
    observation: Observation, read: Callable[[dict[str, Any]], dict[str, Any]], column: str
) -> pd.DataFrame:
    rows = observation.answer["profile"]
    if not rows or "one_stack" not in rows[0]:
        raise UsageError(
            f"this profile of {observation.stack} is not of threads; observe(..., "
            "client='threads') records them all"
        )
    figures = COUNTS | {"cpu": "cpu_s"}
    frame = pd.DataFrame(map(read, rows)).rename(columns=figures)
    frame = frame[["file", "line", "function", *figures.values()]]
    frame = frame.sort_values(column, ascending=False, ignore_index=True)
    return frame.assign(source=observation.source, measured_at=observation.measured_at)
