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
    """Count from now on, before the steps, so that what imports load can be told. Not for gevent,
    which has to be there before `ssl` is imported. The counters, for `install`."""
    counters = dict.fromkeys(NAMES, 0)
    count_stdlib(counters)
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
    count_pyopenssl(counters)
    return counters


def count_stdlib(counters):
    """Count the contexts and loads of the standard library's ssl."""
    import ssl

    # gevent's SSLContext and urllib3's wrappers end in one of these two classes.
    stdlib = [c for c in ssl.SSLContext.__mro__ if c.__module__ == "ssl"][-1]
    make = stdlib.__new__

    def made(*args, **kwargs):
        counters["contexts"] += 1
        return make(*args, **kwargs)

    stdlib.__new__ = staticmethod(made)
    count_loads(stdlib, counters)


def count_pyopenssl(counters):
    """Count the contexts and loads of pyOpenSSL, where it has been imported."""
    if "OpenSSL.SSL" in sys.modules:
        pyopenssl = sys.modules["OpenSSL.SSL"].Context
        initialise = pyopenssl.__init__

        def initialised(*args, **kwargs):
            counters["contexts"] += 1
            return initialise(*args, **kwargs)

        pyopenssl.__init__ = initialised
        count_loads(pyopenssl, counters)


def count_loads(context_class, counters):
    """Count the two ways in which certificates get into contexts of this class."""
    load = context_class.load_verify_locations
    # load_default_certs is Python code that ends in this one, on every version.
    load_defaults = context_class.set_default_verify_paths

    def loaded(*args, **kwargs):
        counters["load_verify_locations"] += 1
        return load(*args, **kwargs)

    def loaded_defaults(*args, **kwargs):
        counters["default_loads"] += 1
        before = counters["load_verify_locations"]
        try:
            return load_defaults(*args, **kwargs)
        finally:
            # pyOpenSSL may fall back to load_verify_locations: that is the same load.
            counters["load_verify_locations"] = before

    context_class.load_verify_locations = loaded
    context_class.set_default_verify_paths = loaded_defaults


class Tally(object):
    """What the process counted and used between one look and the next."""

    def __init__(self, counters):
        self._counters = counters
        self._seen = {}
        self.look()

    def look(self):
        """The counters, `loads` (both kinds together), `cpu_s` and `wall_s` since the last look."""
        used, now = resource.getrusage(resource.RUSAGE_SELF), dict(self._counters)
        now["loads"] = now["load_verify_locations"] + now["default_loads"]
        now["cpu_s"], now["wall_s"] = used.ru_utime + used.ru_stime, clock()
        spent = {name: round(at - self._seen.get(name, 0), 6) for name, at in now.items()}
        self._seen = now
        return spent


class Heartbeat(object):
    """A greenlet that beats every 10 ms, as long as the event loop lets it.

    longest_stall_s: the longest time by which a beat came late. times: clock readings, the first
    of the start, kept only when asked for. Without gevent there is no event loop, and no time.
    """

    def __init__(self, keep_times=False):
        self.longest_stall_s = None
        self.times = [] if keep_times else None
        self._greenlet = None

    def start(self):
        if "gevent" not in sys.modules:
            return
        import gevent

        self.longest_stall_s = 0.0
        self._sleep = gevent.sleep
        self._last = clock()
        if self.times is not None:
            self.times.append(self._last)
        self._greenlet = gevent.spawn(self._beat)

    def stop(self):
        if self._greenlet is None:
            return
        self._note(clock())
        self._greenlet.kill()

    def _beat(self):
        while True:
            self._sleep(INTERVAL_S)
            now = clock()
            self._note(now)
            self._last = now
            if self.times is not None:
                self.times.append(now)

    def _note(self, now):
        late = now - self._last - INTERVAL_S
        if late > self.longest_stall_s:
            self.longest_stall_s = late
