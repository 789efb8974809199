"""A profile of the fetch, by cProfile.

cProfile knows nothing of greenlets: a function that was left by a switch counts as still running
when it is called again. That is where counts such as 10/1 come from (nc/cc: all calls / those
that were not inside another call of the same function). What it makes of threads is told in
thread_profile.py, which takes its place if a client has threads.
"""

import re

from provenance import short


class Profile(object):
    def observe(self, function, *args):
        """Call the function and profile it."""
        import cProfile

        self._profile = cProfile.Profile()
        return self._profile.runcall(function, *args)

    def rows(self):
        """Return one row per function, most cumulated time first: see `row`."""
        self._profile.create_stats()
        rows = []
        for place, (cc, nc, tt, ct, callers) in self._profile.stats.items():
            # cProfile has the two counts the other way round in here.
            caller_counts = {
                place_of(caller): (cc, nc, tt, ct) for caller, (nc, cc, tt, ct) in callers.items()
            }
            rows.append(row(place_of(place), (cc, nc, tt, ct), caller_counts))
        return sorted(rows, key=lambda row: -row["ct"])


def row(place, counts, callers):
    """Return {"file", "line", "function", "cc", "nc", "tt", "ct", "callers"} of a function.

    place: file, line, function. counts: calls that were not recursive, all calls, seconds inside
    the function alone and with what it called. callers: {place: counts}; in the row they are lists
    [file, line, function, cc, nc, tt, ct].
    """
    fields = dict(zip(("file", "line", "function"), place))
    fields.update(zip(("cc", "nc", "tt", "ct"), rounded(counts)))
    fields["callers"] = [
        list(caller) + rounded(counts_of_caller)
        for caller, counts_of_caller in sorted(callers.items())
    ]
    return fields


def rounded(counts):
    cc, nc, tt, ct = counts
    return [cc, nc, round(tt, 6), round(ct, 6)]


def place_of(place):
    """Return a place of cProfile's as the book shows it."""
    path, line, function = place
    return short(path), line, name_of(function)


def name_of(function):
    """Return a function's name without memory addresses and paths."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", function)
