"""A profile of the fetch, by cProfile.

cProfile knows nothing of greenlets: a function that was left by a switch counts as still running
when it is called again. That is where counts such as 10/1 come from (nc/cc: all calls / those
that were not inside another call of the same function). What it makes of threads is told in
recording.py, which takes its place where a client has threads.
"""

from provenance import short


class Profile(object):
    name = "profile"

    def __init__(self):
        import cProfile

        self._profile = cProfile.Profile()

    def observe(self, function, *args):
        """Call the function and profile it."""
        return self._profile.runcall(function, *args)

    def rows(self):
        """One row per function, most cumulated time first.

        {"file", "line", "function", "cc", "nc", "tt", "ct", "callers"}: calls that were not
        recursive, all calls, seconds inside the function alone and with what it called; callers
        are lists [file, line, function, cc, nc, tt, ct].
        """
        self._profile.create_stats()
        found = []
        for (path, line, function), (cc, nc, tt, ct, callers) in self._profile.stats.items():
            found.append(
                {
                    "file": short(path),
                    "line": line,
                    "function": name_of(function),
                    "cc": cc,
                    "nc": nc,
                    "tt": round(tt, 6),
                    "ct": round(ct, 6),
                    # cProfile has the two counts the other way round in here.
                    "callers": [
                        [short(file), at, name_of(name), cc, nc, round(tt, 6), round(ct, 6)]
                        for (file, at, name), (nc, cc, tt, ct) in sorted(callers.items())
                    ],
                }
            )
        return sorted(found, key=lambda row: -row["ct"])


def name_of(function):
    """A function's name without memory addresses and paths."""
    import re

    return re.sub(r" at 0x[0-9a-fA-F]+", "", function)
