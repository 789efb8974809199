"""What a few names stand for after each step, and who waits while one page is read.

One JSON object in (standard input), one out (standard output). The steps are those of `steps`, and
`python`, which imports what gevent will patch. Up here nothing of that is imported: the order of
the imports is the experiment.
"""

import sys
import time

try:
    import _thread
except ImportError:  # Python 2
    import thread as _thread

import answering
import provenance
import steps

clock = getattr(time, "perf_counter", time.time)
#: gevent replaces this name; the thread that looks on has to sleep by itself.
sleep = time.sleep

#: Seconds between two looks, and between two heartbeats.
INTERVAL_S = 0.01
#: Where somebody says that nothing has arrived yet.
ANSWERING = ("OpenSSL/", "gevent/", "gevent_openssl/")
#: How that is said: an exception of one of these names.
NOTHING_YET = ("WantReadError", "SSLWantReadError", "BlockingIOError", "error")


def run(spec):
    """Take the steps, look at the names after each, and read one page.

    spec: steps, url, ca_file, delay_s (how long the server takes to answer).
    """
    owners = provenance.Provenance()
    for name in spec["steps"]:
        if name == "python":
            import_what_gevent_patches()
        else:
            steps.take(name)
        owners.note_names(name)
    read = read_page(spec, owners)
    return {"python": sys.version.split()[0], "names": owners.rows(), "read": read}


def import_what_gevent_patches():
    """Import the modules whose names change hands, so that there is something to see before."""
    import select  # noqa: F401
    import socket  # noqa: F401
    import ssl  # noqa: F401


def read_page(spec, owners):
    """Read one page in a greenlet while another beats and a thread looks on; say who waited.

    Returns failure (None if the page came), page, beats_s, wall_s, looks (how many), on_thread and
    in_greenlet (the stack seen most often: what the thread did, and where the reading greenlet
    was; outermost call first, each [file, function]) and refusals (who said that nothing had
    arrived: [file, function, exception]).
    """
    import gevent
    import requests

    url = "%s/delay/%s?page=0" % (spec["url"], spec["delay_s"])
    on_thread, in_greenlet, beats, refusals, finished = {}, {}, [], Refusals(), []
    main, start = _thread.get_ident(), clock()

    def look_on():
        while not finished:
            add(on_thread, stack_of(sys._current_frames().get(main)))
            sleep(INTERVAL_S)

    def beat():
        while not finished:
            beats.append(round(clock() - start, 6))
            add(in_greenlet, stack_of(getattr(reader, "gr_frame", None)))
            gevent.sleep(INTERVAL_S)

    def get():
        sys.settrace(refusals.trace)
        try:
            return requests.get(url, verify=spec["ca_file"])
        except Exception as error:  # gevent 1.4 loses its loop to one that nobody catches
            return error
        finally:
            sys.settrace(None)

    reader = gevent.spawn(get)
    heart = gevent.spawn(beat)
    _thread.start_new_thread(look_on, ())
    reply = owners.observe(reader.get)
    finished.append(True)
    heart.join()
    rows, failed = answering.pages([(0, reply)])
    return {
        "failure": answering.failure(*failed, ca_file=spec["ca_file"]) if failed else None,
        "page": rows[0],
        "wall_s": round(clock() - start, 6),
        "beats_s": beats,
        "looks": sum(on_thread.values()),
        "on_thread": most_seen(on_thread),
        "in_greenlet": most_seen(in_greenlet),
        "refusals": refusals.seen,
    }


def add(counts, stack):
    """Count a stack that was seen; one that is over is not."""
    if stack:
        counts[stack] = counts.get(stack, 0) + 1


def most_seen(counts):
    """Return the stack that was seen most often, an empty list if none was."""
    return list(max(counts, key=counts.get)) if counts else []


def stack_of(frame):
    """Return a stack as ((file, function), ...), the outermost call first."""
    calls = []
    while frame is not None:
        calls.append((provenance.short(frame.f_code.co_filename), frame.f_code.co_name))
        frame = frame.f_back
    return tuple(reversed(calls))


class Refusals(object):
    """Who raises that nothing has arrived yet, in the order in which it first happens."""

    def __init__(self):
        self.seen = []
        self._answering = {}

    def trace(self, frame, _event, _argument):
        """Follow the calls of those who may say so, and of nobody else."""
        code = frame.f_code
        if code not in self._answering:
            file = provenance.short(code.co_filename)
            self._answering[code] = file.startswith(ANSWERING) and file
        return self._note if self._answering[code] else None

    def _note(self, frame, event, argument):
        if event == "exception" and argument[0].__name__ in NOTHING_YET:
            code = frame.f_code
            refusal = [self._answering[code], code.co_name, argument[0].__name__]
            if refusal not in self.seen:
                self.seen.append(refusal)
        return self._note


if __name__ == "__main__":
    answering.answer(run)
