"""A profile of the fetch, by cProfile.

cProfile knows nothing of greenlets: a function that was left by a switch counts as still running
when it is called again. That is where counts such as 10/1 come from (nc/cc: all calls / those
that were not inside another call of the same function). What it makes of threads is told in
thread_profile.py, which takes its place where a client has threads.
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
        """One row per function, most cumulated time first: see `row`."""
        self._profile.create_stats()
        found = []
        for place, (cc, nc, tt, ct, callers) in self._profile.stats.items():
            # cProfile has the two counts the other way round in here.
            its = {shown(caller): (cc, nc, tt, ct) for caller, (nc, cc, tt, ct) in callers.items()}
            found.append(row(shown(place), (cc, nc, tt, ct), its))
        return sorted(found, key=lambda row: -row["ct"])


def row(place, counts, callers):
    """{"file", "line", "function", "cc", "nc", "tt", "ct", "callers"} of a function.

    place: file, line, function. counts: calls that were not recursive, all calls, seconds inside
    the function alone and with what it called. callers: {place: counts}; in the row they are lists
    [file, line, function, cc, nc, tt, ct].
    """
    found = dict(zip(("file", "line", "function"), place))
    found.update(zip(("cc", "nc", "tt", "ct"), rounded(counts)))
    found["callers"] = [list(each) + rounded(its) for each, its in sorted(callers.items())]
    return found


def rounded(counts):
    cc, nc, tt, ct = counts
    return [cc, nc, round(tt, 6), round(ct, 6)]


def shown(place):
    """A place of cProfile's as the book shows it."""
    path, line, function = place
    return short(path), line, name_of(function)


def name_of(function):
    """A function's name without memory addresses and paths."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", function)
