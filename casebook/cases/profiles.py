"""Single lines of an observed profile: a function's counts and times, and who called it.

Of a client with threads a profile is a recording of all threads, which can be read in two ways:
`all_threads`, as the calls were made, and `one_stack`, as cProfile of Python 3.12 and newer does.
"""

from collections.abc import Iterable, Mapping

import pandas as pd

from casebook import stacks, words
from casebook.errors import UsageError
from casebook.runs import decisions, trust
from casebook.runs.bench import Bench
from casebook.runs.decisions import Question
from casebook.runs.measure import in_turns
from casebook.runs.observations import Observation
from casebook.runs.observations import dump_profile as dump_profile
from casebook.runs.observations import folder as folder
from casebook.stacks import environments


def calls_of(observation: Observation, function: str, file: str = "") -> int:
    """How often a function was called; 0 when the profile has no such line.

    function: its name; file: a part of its file's name, where several share one name.
    """
    rows = _rows(observation, function, file)
    return sum(row["nc"] for row in rows)


def line(observation: Observation | pd.DataFrame, function: str, file: str = "") -> pd.Series:
    """One line of a profile, or of a frame of its lines: file, line, function, calls, pcalls,
    tottime_s, cumtime_s.

    Raises UsageError when no line matches, or more than one.
    """
    frame = observation if isinstance(observation, pd.DataFrame) else observation.frame
    found = frame[(frame["function"] == function) & frame["file"].str.contains(file, regex=False)]
    if len(found) != 1:
        where = ", ".join(found["file"]) or "nowhere"
        raise UsageError(f"{function} is in this profile {len(found)} times ({where}); name a file")
    return found.iloc[0]


def beside(
    observations: Mapping[str, Observation], top: int = 4, only: Iterable[str] = ()
) -> pd.DataFrame:
    """Profiles side by side: for each function its calls and its own time in every one of them.

    observations: label -> Observation of kind `profile`. top: so many functions of each, those
    with the largest own times. only: these functions in place of them, each as the end of its
    file:line(function), or as "poll, built in". One row per function, largest own time first:
    where, "<label>, calls" (text, as `counts`; "–" where it was not called), "<label>, own time, s"
    (NaN where it was not called), source (`reference` where one of them is), measured_at. Raises
    UsageError where a function of `only` is in no profile.
    """
    tables = {label: _by_place(one.frame) for label, one in observations.items()}
    only, known = list(only), {place for table in tables.values() for place in table.index}
    chosen = [place for text in only for place in known if f"/{place}".endswith(f"/{text}")]
    if len(chosen) < len(only):
        raise UsageError(f"not each of {words.join(only)} is in one of these profiles")
    if not only:
        longest = [list(table.nlargest(top, "tottime_s").index) for table in tables.values()]
        chosen = list(dict.fromkeys(place for places in longest for place in places))
    recorded = [one for one in observations.values() if one.source == words.REFERENCE]
    one = (recorded or list(observations.values()))[0]
    frame = pd.DataFrame({"where": chosen})
    for label, table in tables.items():
        there = table.reindex(chosen)
        frame[f"{label}, calls"] = there["counts"].fillna("–").to_list()
        frame[f"{label}, own time, s"] = there["tottime_s"].to_list()
    own = frame.filter(like="own time").max(axis=1)
    frame = frame.loc[own.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)
    return frame.assign(source=one.source, measured_at=one.measured_at)


def _by_place(frame: pd.DataFrame) -> pd.DataFrame:
    """The lines of a profile by their place: counts (as `counts`) and tottime_s."""
    built_in = frame["function"].str.extract(r"(?:method|function) '?([\w.]+)", expand=False)
    in_a_file = frame["file"] + ":" + frame["line"].astype(str) + "(" + frame["function"] + ")"
    bare = built_in.fillna(frame["function"].str.strip("<>")) + ", built in"
    place = in_a_file.where(frame["file"] != "~", bare)
    table = pd.DataFrame(
        {
            "place": place,
            "calls": frame["calls"],
            "pcalls": frame["pcalls"],
            "tottime_s": frame["tottime_s"],
        }
    )
    # Two built-in methods may share a bare name.
    table = table.groupby("place").sum()
    return table.assign(counts=[counts(row) for _, row in table.iterrows()])


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


def waiting(
    name: str,
    n: int,
    delays_s: Iterable[float],
    until: Iterable[Question],
    looks: Iterable[int] = decisions.LOOKS,
) -> pd.DataFrame:
    """How long a stack with pyOpenSSL waits in urllib3, from profiles taken in turns.

    delays_s: seconds the server waits, one profile for each in every round. until, looks: what
    is to be decided (casebook/runs/decisions.py). One row per profile: stack, n, delay_s, repeat,
    poll_s (the system's `poll` alone), all_s (the own times of all functions), responses and
    response_s (calls of wait_for_read for responses, and the time in them), again (how often
    recv or recv_into called itself), source, measured_at, key. Raises RunFailed and
    MissingInterpreter.
    """
    environment = environments.ensure(stacks.get(name))
    asked = {"n": n, "client": environment.stack.client, "trust": trust.AUTHORITY}
    delays_s = list(delays_s)

    with Bench() as bench:

        def take(chosen: range) -> pd.DataFrame:
            rows = []
            for repeat, delay_s in in_turns(delays_s, chosen):
                told = asked | {"delay_s": delay_s, "repeat": repeat}
                seen = bench.observation(environment, "profile", **told)
                rows.append({"stack": name, "n": n, "delay_s": delay_s, "repeat": repeat})
                rows[-1] |= _waited(seen)
                rows[-1] |= {each: getattr(seen, each) for each in ("source", "measured_at", "key")}
            return pd.DataFrame(rows)

        return decisions.until_decided(take, until, looks)


def _waited(seen: Observation) -> dict[str, float]:
    frame, by = seen.frame, callers(seen, "wait_for_read")
    for_responses = by[by["caller"].isin(_READING)]
    [reading] = for_responses["caller"]
    its_callers = callers(seen, reading, "contrib/pyopenssl.py")
    polls = frame["function"].str.contains(_POLL) & (frame["file"] == "~")
    return {
        "poll_s": frame.loc[polls, "tottime_s"].sum(),
        "all_s": frame["tottime_s"].sum(),
        "responses": for_responses["calls"].sum(),
        "response_s": for_responses["cumtime_s"].sum(),
        "again": its_callers.loc[its_callers["by_itself"], "calls"].sum(),
    }


#: What reads a response through pyOpenSSL: on Python 2, and on Python 3.
_READING = ("recv", "recv_into")
#: The system's poll as Python 2.7 and 3 name it in a profile, and not what makes the object.
_POLL = r"method '?poll\b"


def all_threads(observation: Observation) -> pd.DataFrame:
    """The profile of a client with threads, each thread read for itself, and added up.

    One row per function, most processor time first: file, line, function, calls, pcalls, cpu_s
    (processor time of the function alone), tottime_s and cumtime_s (the time that passed in each
    thread, waiting included: those of several threads overlap), source, measured_at. Raises
    UsageError for a profile that is no recording of threads.
    """
    rows = [(row, row["cpu"], row) for row in _recorded(observation)]
    return _lines(observation, rows).sort_values("cpu_s", ascending=False, ignore_index=True)


def one_stack(observation: Observation) -> pd.DataFrame:
    """The same recording with all threads' calls on one stack, as cProfile of Python 3.12 reads it.

    One row per function, most own time first; columns as `all_threads`, without cpu_s. Whenever a
    function returns, the call that was opened last is closed, whoever opened it, and its time is
    booked for the function that returns. So the own times add up to the wall time of the fetch, and
    who is charged for it is as accidental as the order in which threads return.
    """
    rows = [(row, None, row["one_stack"]) for row in _recorded(observation)]
    frame = _lines(observation, rows).drop(columns="cpu_s")
    return frame.sort_values("tottime_s", ascending=False, ignore_index=True)


def in_threads(
    name: str,
    function: str,
    n: int,
    until: Question | Iterable[Question],
    trusting: str = trust.BUNDLE,
) -> pd.DataFrame:
    """What one function takes of the processor time of n threads, from recordings in rounds.

    function: its name in the profile, such as "<method 'read' of '_ssl._SSLSocket' objects>".
    until: what is to be decided (casebook/runs/decisions.py). One row per recording: stack, n,
    repeat, calls (of the function), cpu_s (its own), cpu_share (of all functions'), to_next (over
    that of the next function, the largest of the others), own_s (the time that passed in all
    functions of all threads), wall_s, source, measured_at, key. Raises UsageError, RunFailed and
    MissingInterpreter.
    """
    environment = environments.ensure(stacks.get(name))
    asked = {"n": n, "delay_s": 0, "client": "threads", "trust": trusting}
    with Bench() as bench:

        def take(chosen: range) -> pd.DataFrame:
            rows = []
            for repeat in chosen:
                seen = bench.observation(environment, "profile", **asked, repeat=repeat)
                row = {"stack": name, "n": n, "repeat": repeat, "wall_s": seen.answer["wall_s"]}
                told = {each: getattr(seen, each) for each in ("source", "measured_at", "key")}
                rows.append(row | _of_all(all_threads(seen), function) | told)
            return pd.DataFrame(rows)

        questions = [until] if isinstance(until, Question) else list(until)
        return decisions.until_decided(take, questions)


def _of_all(lines: pd.DataFrame, function: str) -> dict:
    """A function among all lines of a recording: see `in_threads`."""
    its = line(lines, function)
    return {
        "calls": int(its["calls"]),
        "cpu_s": its["cpu_s"],
        "cpu_share": its["cpu_s"] / lines["cpu_s"].sum(),
        "to_next": its["cpu_s"] / lines["cpu_s"].drop(its.name).max(),
        "own_s": lines["tottime_s"].sum(),
    }


def _recorded(observation: Observation) -> list[dict]:
    rows = observation.answer["profile"]
    if not rows or "one_stack" not in rows[0]:
        raise UsageError(
            f"this profile of {observation.stack} is not of threads; observe(..., "
            "client='threads') records them all"
        )
    return rows


def _lines(observation: Observation, rows: list[tuple]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "file": row["file"],
            "line": row["line"],
            "function": row["function"],
            "calls": read["nc"],
            "pcalls": read["cc"],
            "cpu_s": cpu_s,
            "tottime_s": read["tt"],
            "cumtime_s": read["ct"],
            "source": observation.source,
            "measured_at": observation.measured_at,
        }
        for row, cpu_s, read in rows
    )


def _rows(observation: Observation, function: str, file: str) -> list[dict]:
    return [
        row
        for row in observation.answer["profile"]
        if row["function"] == function and file in row["file"]
    ]
