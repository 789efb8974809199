"""Counters inside the client: what its TLS did, and how long its event loop stood still.

Installed after the last step, so that only the fetch is counted and no step sees a difference; for
clients without gevent before the first, so that what imports load can be told.
"""

import resource
import sys
import time

clock = getattr(time, "perf_counter", time.time)

#: Seconds from one heartbeat to the next, when nothing blocks.
INTERVAL_S = 0.01


#: What is counted, of the standard library's contexts (gevent's is a subclass of them) and of
#: pyOpenSSL's: contexts made, calls of load_verify_locations, loads of the system's default
#: certificates. Each load counts once, whichever layers it went through.
NAMES = ("contexts", "load_verify_locations", "default_loads")


def count_imports():
    """Count from now on, before the steps, so that what imports load can be told.

    Not for gevent, which has to be there before `ssl` is imported. Returns the counters, for
    `install`.
    """
    import ssl

    counters = dict.fromkeys(NAMES, 0)
    # gevent's SSLContext and urllib3's wrappers end in one of these two classes.
    stdlib = [c for c in ssl.SSLContext.__mro__ if c.__module__ == "ssl"][-1]
    stdlib.__new__ = staticmethod(count_calls(stdlib.__new__, counters, "contexts"))
    count_loads(stdlib, counters)
    return counters


def install(counters=None):
    """Count the fetch that begins now; the counters, a dictionary that goes on changing.

    counters: those of `count_imports`, which start again from nothing but for a further one,
    loads_before: the loads up to now.
    """
    if counters is None:
        counters = count_imports()
    else:
        counters["loads_before"] = counters["load_verify_locations"] + counters["default_loads"]
        counters.update(dict.fromkeys(NAMES, 0))
    if "OpenSSL.SSL" in sys.modules:
        pyopenssl = sys.modules["OpenSSL.SSL"].Context
        pyopenssl.__init__ = count_calls(pyopenssl.__init__, counters, "contexts")
        count_loads(pyopenssl, counters)
    return counters


def count_calls(function, counters, name):
    """Wrap a function so that its calls are counted under that name."""

    def calling(*args, **kwargs):
        counters[name] += 1
        return function(*args, **kwargs)

    return calling


def count_loads(context_class, counters):
    """Count the two ways in which certificates get into contexts of this class."""
    load = context_class.load_verify_locations
    context_class.load_verify_locations = count_calls(load, counters, "load_verify_locations")
    # load_default_certs is Python code that ends in this one, on every version.
    load_defaults = context_class.set_default_verify_paths

    def loaded_defaults(*args, **kwargs):
        counters["default_loads"] += 1
        count_before = counters["load_verify_locations"]
        try:
            return load_defaults(*args, **kwargs)
        finally:
            # pyOpenSSL may fall back to load_verify_locations: that is the same load.
            counters["load_verify_locations"] = count_before

    context_class.set_default_verify_paths = loaded_defaults


class Tally(object):
    """What the process counted and used between one lap and the next; or its children used."""

    def __init__(self, counters, usage_of=resource.RUSAGE_SELF):
        self._counters = counters
        self._usage_of = usage_of
        self._totals = {}
        self.lap()

    def lap(self):
        """Return what was counted and used since the last lap.

        The counters, `loads` (both kinds together), `user_s`, `system_s` and `cpu_s` (both),
        `faults` (pages that the kernel had to bring), `wall_s`.
        """
        used, totals = resource.getrusage(self._usage_of), dict(self._counters)
        totals["loads"] = totals["load_verify_locations"] + totals["default_loads"]
        totals["user_s"], totals["system_s"] = used.ru_utime, used.ru_stime
        totals["cpu_s"], totals["faults"] = used.ru_utime + used.ru_stime, used.ru_minflt
        totals["wall_s"] = clock()
        spent = {name: total - self._totals.get(name, 0) for name, total in totals.items()}
        self._totals = totals
        return spent


class Heartbeat(object):
    """A greenlet that beats every 10 ms, as long as the event loop lets it.

    times: clock readings, the first of the start. Without gevent there is no event loop, and no
    time.
    """

    def __init__(self):
        self.times = []

    def start(self):
        if "gevent" not in sys.modules:
            return
        import gevent

        self.times.append(clock())
        self._greenlet = gevent.spawn(self._beat, gevent.sleep)

    def stop(self):
        """Stop, and return the longest time by which a beat came late, in seconds.

        Returns None if nothing beat.
        """
        if not self.times:
            return None
        moments = self.times + [clock()]
        self._greenlet.kill()
        longest_s = max(later - beat for beat, later in zip(moments, moments[1:]))
        return max(longest_s - INTERVAL_S, 0.0)

    def _beat(self, sleep):
        while True:
            sleep(INTERVAL_S)
            self.times.append(clock())
