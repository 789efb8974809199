"""A profile of all threads: every call and return of each, recorded once and read in two ways.

cProfile cannot give it. Up to Python 3.11 it sees only the thread that started it. From 3.12 on it
gets the calls of all threads, but keeps one stack, as if one thread had made them all, and refuses
to run twice at a time (https://github.com/python/cpython/issues/110770, 124656).

So each thread records its own calls here, with two clocks: the time of day and the processor time
of the thread. `each_its_own` reads them as they were made; `as_one_stack` reads them as cProfile
of 3.12 and newer does, to show what comes of it. Python 3.7 and newer.
"""

import gc
import sys
import threading
from functools import lru_cache
from time import perf_counter, thread_time

from profiling import name_of, rounded, row
from provenance import short

ENTERS = ("call", "c_call")


class ThreadProfile(object):
    def __init__(self):
        #: For each thread, (time, processor time, whether it enters, function) in order.
        self.threads = []

    def observe(self, function, *args):
        """Call the function and record all threads, those that it starts included."""
        # What is noted here is garbage to go through, and no function should be charged for that.
        gc.disable()
        threading.setprofile(self._begin)
        try:
            sys.setprofile(self._recorder())
            return function(*args)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            gc.enable()

    def _begin(self, frame, event, arg):
        """Give a thread a list of its own at its first event."""
        sys.setprofile(self._recorder())

    def _recorder(self):
        events = []
        self.threads.append(events)

        def record(frame, event, arg, add=events.append, enters=ENTERS):
            function = arg if event.startswith("c_") else frame.f_code
            add((perf_counter(), thread_time(), event in enters, function))

        return record

    def rows(self):
        """Return one row per function, the most processor time first.

        As Profile.rows, of all threads together: tt and ct are the seconds that passed in each
        thread, waiting included, and overlap. Further: cpu, the processor seconds of the function
        alone; one_stack, {"cc", "nc", "tt", "ct"}, the same as cProfile of Python 3.12 reads it.
        """
        by_thread, callers = each_its_own(self.threads)
        mixed = as_one_stack(self.threads)
        rows = []
        for key, (cc, nc, tt, ct, cpu) in by_thread.items():
            fields = row(key, (cc, nc, tt, ct), callers.get(key, {}))
            fields["cpu"] = round(cpu, 6)
            fields["one_stack"] = dict(zip(("cc", "nc", "tt", "ct"), rounded(mixed[key])))
            rows.append(fields)
        return sorted(rows, key=lambda row: -row["cpu"])


def each_its_own(threads):
    """Read each thread's calls on its own stack, and add the threads up.

    Returns {key: [cc, nc, tt, ct, cpu]} and {key: {calling key: [cc, nc, tt, ct]}}.
    """
    counts, callers = {}, {}
    for events in threads:
        stack, running = [], {}
        for moment, cpu_at, enters, function in events:
            key = key_of(function)
            if enters:
                stack.append([key, moment, cpu_at, 0.0, 0.0])
                running[key] = running.get(key, 0) + 1
            elif stack and stack[-1][0] == key:
                _, began, cpu_began, inside, cpu_inside = stack.pop()
                took, cpu_took = moment - began, cpu_at - cpu_began
                running[key] -= 1
                outermost = not running[key]
                row = counts.setdefault(key, [0, 0, 0.0, 0.0, 0.0])
                add(row, outermost, took, inside)
                row[4] += cpu_took - cpu_inside
                if stack:
                    stack[-1][3] += took
                    stack[-1][4] += cpu_took
                    caller_counts = callers.setdefault(key, {}).setdefault(
                        stack[-1][0], [0, 0, 0.0, 0.0]
                    )
                    add(caller_counts, outermost, took, inside)
    return counts, callers


def as_one_stack(threads):
    """Read all calls in the order of time on one stack: {key: [cc, nc, tt, ct]}.

    As CPython's Modules/_lsprof.c: a return closes whatever is on top, and what passed since that
    began is booked for the function that returns.
    """
    mixed, stack, running = {}, [], {}
    in_order = sorted((event for events in threads for event in events), key=lambda event: event[0])
    for moment, _, enters, function in in_order:
        key = key_of(function)
        mixed.setdefault(key, [0, 0, 0.0, 0.0])
        if enters:
            stack.append([moment, 0.0])
            running[key] = running.get(key, 0) + 1
        elif stack and running.get(key):
            began, inside = stack.pop()
            running[key] -= 1
            add(mixed[key], not running[key], moment - began, inside)
            if stack:
                stack[-1][1] += moment - began
    return mixed


def add(row, outermost, took, inside):
    """Book a call in [cc, nc, tt, ct, ...]."""
    row[0] += outermost
    row[1] += 1
    row[2] += took - inside
    row[3] += took if outermost else 0.0


@lru_cache(maxsize=None)
def key_of(function):
    """Return (file, line, function) of a code object or a built-in function, as in cProfile."""
    if hasattr(function, "co_code"):
        return short(function.co_filename), function.co_firstlineno, function.co_name
    return "~", 0, name_of(label(function))


def label(function):
    """Return a built-in function's label in cProfile.

    Such as "<method 'read' of '_ssl._SSLSocket' objects>".
    """
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", repr(function))
    if owner is None or type(owner) is type(sys):
        module = getattr(function, "__module__", None) or getattr(owner, "__name__", "builtins")
        return "<built-in method %s.%s>" % (module, name)
    for owner_class in type(owner).__mro__:
        # A Python function of that name is somebody's wrapper around it.
        if type(owner_class.__dict__.get(name)) is type(str.join):
            return repr(owner_class.__dict__[name])
    return "<built-in method %s>" % name
