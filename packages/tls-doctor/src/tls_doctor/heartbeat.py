"""The heartbeat: how long an event loop stands still while the program runs."""

from __future__ import division, print_function

import os
import sys
import time
import weakref

from .basis import BEAT_S, OWN_FILE, clock

#: As they are before anybody patches.
sleep = time.sleep
#: What waits for so long in one turn of a loop is noted; a silence that goes on, each second.
SILENT_FROM_S = 0.05
NOTED_EACH_S = 1.0
#: If a look comes more than this many beats late, the rest is not taken for a silence: perhaps the
#: whole process was stopped.
LATE_BEATS = 50
#: Threads that are asked, at most, how long each wanted a processor.
MOST_THREADS = 64
#: Where the threads of loops are when nothing is to be done: (the end of a file's name, function,
#: what has to call it, if others do as well: a driver may wait by a selector of its own).
RESTS = (
    ("/selectors.py", "select", "_run_once"), ("/windows_events.py", "_poll", None),
    ("/gevent/hub.py", "run", None),
    ("/eventlet/hubs/poll.py", "do_poll", None), ("/eventlet/hubs/epolls.py", "do_poll", None),
    ("/eventlet/hubs/poll.py", "wait", None), ("/eventlet/hubs/selects.py", "wait", None),
    ("/eventlet/hubs/hub.py", "run", None),
    ("/trio/_core/_io_epoll.py", "get_events", None),
    ("/trio/_core/_io_kqueue.py", "get_events", None),
    ("/trio/_core/_io_windows.py", "get_events", None),
    ("/twisted/internet/epollreactor.py", "doPoll", None),
    ("/twisted/internet/pollreactor.py", "doPoll", None),
    ("/twisted/internet/selectreactor.py", "doSelect", None),
)  # fmt: skip


class Turns(object):
    """A loop that counts its turns as it takes them."""

    def __init__(self, name, waits):
        self.name, self.waits, self.turns = name, waits, 0

    def turn(self):
        """Return how many turns the loop has taken."""
        return self.turns


class Beats(object):
    """A loop that hides its turns: it is asked to count one, again and again.

    schedule: has the loop call a function, from another thread.
    """

    def __init__(self, name, waits, schedule):
        self.name, self.waits, self.schedule = name, waits, schedule
        self.turns, self.wanted = 0, 0

    def turn(self):
        """Return how many of its turns were counted, and ask for another."""
        if self.turns == self.wanted:
            self.wanted += 1
            try:
                self.schedule(self.beat)
            except Exception:  # it is being closed
                self.turns = self.wanted
                raise
        return self.turns

    def beat(self):
        """Count the turn that was asked for."""
        self.turns = self.wanted


class Greenlets(object):
    """The loop of a hub of gevent's."""

    name = "gevent"

    def __init__(self, hub):
        self.hub = weakref.ref(hub)

    def turn(self):
        """Return how many turns the loop has taken."""
        return self.hub().loop.iteration

    def waits(self):
        """Return whether anything waits for the loop."""
        loop = self.hub().loop
        return loop.activecnt > 0 or bool(getattr(loop, "_callbacks", None))


class Silence(object):
    """One turn of a loop, or several that wait in one place, and what its thread did meanwhile."""

    def __init__(self, turn, times, place=None):
        self.turn, self.times, self.s, self.waiting, self.places = turn, times, 0.0, False, {}
        self.last, self.pending, self.place, self.several = times, 0.0, place, False


class Heartbeat(object):
    """A heartbeat: a thread that watches the loops of this process.

    It notes each turn of a loop that took long while its thread waited: for a socket that
    nobody awaits, say.

    probes: what notes it, and tells who called. The thread begins with the first loop, and ends
    when none runs, or when the process forks.
    """

    def __init__(self, probes):
        self.probes, self.loops, self.silences = probes, {}, {}
        self.looking, self.stop, self.used_ms, self.noted = None, False, 0.0, set()
        threads = sys.modules.get("_thread") or sys.modules.get("thread")
        self.begin, self.ident = threads.start_new_thread, threads.get_ident
        self.number_of = getattr(threads, "get_native_id", None)
        self.main, self.numbers = self.ident(), {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self.pause, after_in_parent=self.look_on, after_in_child=self.look_on
            )

    def watch(self, loop):
        """Look at a loop that runs in this thread, from now on; returns what does it no more."""
        if not self.probes.active:
            return lambda: None
        thread = self.ident()
        previous = self.loops.get(thread)
        number = os.getpid() if thread == self.main else None
        self.numbers[thread] = self.number_of() if self.number_of else number
        self.loops[thread] = loop
        if (os.getpid(), loop.name) not in self.noted:
            self.noted.add((os.getpid(), loop.name))
            self.probes.note("heartbeat", by=loop.name)
        self.look_on()

        def leave():
            self.end(thread, loop)
            if previous is not None:
                self.loops[thread] = previous
            else:
                self.loops.pop(thread, None)

        return leave

    def look_on(self):
        """Look, if there is anything to look at and nobody does."""
        if self.looking not in (None, os.getpid()):  # the thread has stayed with the parent
            self.looking, self.main = None, self.ident()
            self.silences.clear()
            if self.number_of:
                self.numbers = {self.main: self.number_of()}
        if self.loops and self.looking is None and self.probes.active:
            self.looking, self.stop = os.getpid(), False
            try:
                self.begin(self.watch_all, ())
            except Exception:  # no thread is to be had
                self.looking = None

    def pause(self):
        """Look no more, so that this process has no thread that it would not have without."""
        self.stop, deadline = True, clock() + 1
        while self.looking == os.getpid() and clock() < deadline:
            sleep(BEAT_S / 10)

    def watch_all(self):
        """Look at the loops again and again, in a thread of its own."""
        previous, thread_ms = clock(), getattr(time, "thread_time", None)
        idle = 0
        try:
            while not self.stop and idle < 100:
                sleep(BEAT_S)
                present = clock()
                step, previous = min(present - previous, LATE_BEATS * BEAT_S), present
                idle = 0 if self.loops else idle + 1
                if not self.probes.active:
                    continue
                for thread, loop in list(self.loops.items()):
                    try:
                        self.see(thread, loop, step)
                    except Exception:  # a loop that ends meanwhile
                        self.silences.pop(thread, None)
                if thread_ms:
                    self.used_ms = 1000 * thread_ms()
        finally:
            self.looking = None

    def see(self, thread, loop, step):
        """Look at one loop, after a step of that many seconds."""
        frame = sys._current_frames().get(thread)
        if frame is None:  # the thread has ended, and left its hub
            self.loops.pop(thread, None)
        if frame is None or is_resting(innermost(frame)):
            self.end(thread, loop)
            return
        turn, silence = loop.turn(), self.silences.get(thread)
        place = frame.f_code, frame.f_lasti
        if silence is None or (silence.turn != turn and silence.place != place):
            self.end(thread, loop)
            self.silences[thread] = Silence(turn, self.times(thread), place)
            return
        # A thread that waits in the same place again, and has not been seen to rest, goes on so.
        silence.several = silence.several or silence.turn != turn
        silence.turn, silence.place = turn, place
        silence.pending += step
        if self.wants_processor(thread):  # and nobody tells yet since when
            return
        silence.s, silence.pending = silence.s + silence.pending, 0.0
        silence.last = self.times(thread)
        if silence.s >= SILENT_FROM_S / 2:
            record = silence.places.get(place)
            if record is None:
                importing = is_importing(frame)
                record = silence.places[place] = [0.0, importing, self.probes.callers(frame)]
            record[0] += step
            silence.waiting = silence.waiting or loop.waits()
        if silence.s >= NOTED_EACH_S:
            self.end(thread, loop)

    def end(self, thread, loop):
        """Note a silence that is over, if it was one."""
        silence = self.silences.pop(thread, None)
        if silence is None or not silence.places or silence.s < SILENT_FROM_S:
            return
        used, others_s = used_between(silence.times, silence.last)
        if others_s > silence.s / 2:  # to get Python's lock, a thread waits for those that compute
            return
        _, importing, origin = max(silence.places.values(), key=lambda record: record[0])
        waited_s = silence.s - used
        if silence.several and waited_s < silence.s / 2:  # it computes in that place
            return
        if waited_s >= SILENT_FROM_S and not importing:
            values = dict(s=round(waited_s, 4), waiting=silence.waiting, who=origin)
            self.probes.note("silence", by=loop.name, **values)

    def wants_processor(self, thread):
        """Return whether a thread has a processor or waits for one; False if nobody tells."""
        try:
            return b") R " in read("/proc/self/task/%d/stat" % self.numbers[thread])
        except Exception:
            return False

    def times(self, thread):
        """Return (seconds of a thread, seconds of all others but this, CPU seconds of the process).

        The first two are those in which they had a processor or wanted one; None if nobody
        tells.
        """
        process = sum(os.times()[:2])
        try:
            number = str(self.numbers[thread])
            own_number = str(self.number_of()) if self.number_of else None
            names = os.listdir("/proc/self/task")
            thread_s, others_s = seconds_of(number), 0.0
            if len(names) > MOST_THREADS:
                return thread_s, None, process
            for name in names:
                if name not in (number, own_number):
                    others_s += seconds_of(name)
            return thread_s, others_s, process
        except Exception:
            return None, None, process


def read(path):
    """Return the first bytes of a file of the system's."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.read(handle, 1000)
    finally:
        os.close(handle)


def seconds_of(number):
    """Return how long a thread of this process has had a processor, or wanted one. Linux tells."""
    ran, queued = read("/proc/self/task/%s/schedstat" % number).split()[:2]
    return (int(ran) + int(queued)) / 1e9


def used_between(start, end):
    """Return (seconds in which the thread ran or wanted to, the same of all others).

    start, end: of `Heartbeat.times`. If nobody tells, whatever the process used was the
    thread's.
    """
    process = end[2] - start[2]
    if start[0] is None or end[0] is None:
        return process, 0.0
    used = end[0] - start[0]
    if start[1] is None or end[1] is None:
        return used, max(0.0, process - used)
    return used, max(0.0, end[1] - start[1])  # a thread that has ended takes its own with it


def innermost(frame):
    """Return the innermost two frames of a stack, as `is_resting` takes them."""
    codes = [level.f_code for level in (frame, frame.f_back) if level is not None]
    return [(code.co_filename, code.co_name) for code in codes]


def is_resting(frames):
    """Return whether a loop's thread is where it has nothing to do.

    frames: (file, function), the innermost first.
    """
    path, name = frames[0]
    if path == OWN_FILE and name == "run_forever":  # uvloop has no frame of its own
        return True
    callers = [None] + [function for _, function in frames[1:2]]
    return any(
        name == function and caller in callers and path.replace("\\", "/").endswith(file)
        for file, function, caller in RESTS
    )


def is_importing(frame):
    """Return whether a module is being imported: what that waits for is a disk."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
