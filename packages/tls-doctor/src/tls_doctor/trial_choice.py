"""Which trials a run asks for, and what each of them does."""

from __future__ import division, print_function

from .basis import ITS_OWN
from .clients import client_named
from .trials import CONTEXTS
from .verdicts import at_once, is_shared, wanting

#: How many connections at most are made again.
MOST_AGAIN = 50
#: If they ask at once: how often they ask at most, and how many do.
MOST_ROUNDS, MOST_AT_ONCE = 4, 50


def trials_for(row, counts):
    """Return the trials that the row of a client asks for.

    Each is a dictionary: "client" (as `try_changes` calls it), "change" (its name if it has one of
    its own, or None), "wanted" (how many ask at once), "awaits", "rounds" (as many requests are
    asked for one after the other), "trust", and of a larger pool "size", the one it has now.
    """
    client, trials = row["client"] or ITS_OWN, []
    n = min(MOST_AGAIN, row["connections"] or row["loads"])  # none, over plain HTTP
    repeats = row["loads"] - row["needed"] >= 2 and n >= 2
    record = client_named(client)
    keeps = row["kept"] or (record.loads_each and is_shared(row, counts))
    is_known = record.trial or [module for module, _ in row["by"]] == ["ssl"]
    trial = {
        "client": client,
        "change": None,
        "trust": row["trusts"][0][0] if row["trusts"] else None,
    }
    trial["awaits"] = bool(record.awaiting_trial) and 2 * row["awaits"] > row["loads"]
    trial["wanted"] = min(at_once(row), MOST_AT_ONCE)
    closing, pool = record.closing_change, record.larger_pool_change
    if closing in record.trials and row["closed"].get("program", 0) >= 2:
        trials.append(dict(trial, change=closing, rounds=n, wanted=1, awaits=False))
    if repeats and is_known and not keeps:
        # (A client may make several connections with one load, as FTP does for its data.)
        trials.append(dict(trial, rounds=min(n, row["loads"])))
    places = row["wanted"]["full"] if "full" in wanting(row) else None
    if repeats and pool in record.trials and places and places <= MOST_AGAIN:
        rounds = max(2, min(MOST_ROUNDS, MOST_AGAIN // places))
        of_pool = dict(trial, change=pool, wanted=places, size=row["size"]["full"])
        trials.append(dict(of_pool, rounds=rounds, awaits=False))
    return trials


def trial_functions(trial):
    """Return (module, function that loads again, function that does not), as `Client.trial`."""
    client = client_named(trial["client"])
    if trial["change"] is None:
        return (client.awaiting_trial if trial["awaits"] else client.trial) or CONTEXTS
    module, repeating, keeping = client.trials[trial["change"]]
    if is_of_places(trial):
        repeating = of_size(repeating, trial["size"])
        keeping = of_size(keeping, trial["wanted"])
    return module, repeating, keeping


def is_of_places(trial):
    """Return whether a trial is that of a larger pool."""
    pool = client_named(trial["client"]).larger_pool_change
    return trial["change"] is not None and trial["change"] == pool


def of_size(prepare, places):
    """Return a function of a trial that has a pool of so many places."""
    return lambda url, trust: prepare(url, trust, places)


def rounds_of(trial):
    """Return how many rounds a trial has, in each of which so many ask at once as in the run."""
    if is_of_places(trial) or trial["wanted"] == 1:
        return trial["rounds"]
    return max(1, min(MOST_ROUNDS, trial["rounds"] // trial["wanted"]))


def came_to_something(trial, result):
    """Return whether what a trial measured is to be told.

    One that saves no load is, if several asked at once with a client that is kept.
    """
    if result is None:
        return False
    has_to_save = trial["wanted"] == 1 or trial["change"]
    return not has_to_save or result["then"]["loads"] < result["now"]["loads"]
