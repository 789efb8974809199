"""Visit the bookstore inside an environment: one JSON object in (standard input), one out.

In: {"script": "with_requests", "url", "ca_file", "protocol" (wanted), "ids" (null: all that the
store lists), "at_once", "connections", "order": "asked" or "completed", "timeout_s",
"started_at" (time.time() when this process was started)}.

Out: {"protocol", "wall_s", "user_s", "sys_s" (from the first connection to the last book),
"process_wall_s", "process_user_s", "process_sys_s" (of the whole process so far, as the article
measured), "index", "bodies": {id: text}, "order": [[id, seconds]], "connections",
"peak_in_flight", "streams_peak" (null over HTTP/1.1), "recovered": [text], "python",
"failure": null or {"book", "certain", "type", "message", "waiting"}}.

Runs on Python 3.7 and newer with the standard library and the packages of the environment.
"""

import importlib
import json
import os
import resource
import signal
import socket
import sys
import time

import shelf as shelves


class Connections:
    """Counts the TCP connections that are opened. More than planned means that some were lost,
    and that the client asked again over a new one."""

    def __init__(self, planned, shelf):
        self.planned = planned
        self.shelf = shelf
        self.count = 0
        self.recovered = []
        self._connect = socket.socket.connect

    def install(self):
        """Count from now on."""
        counting, connect = self, self._connect

        def counted(self, address):
            if self.family in (socket.AF_INET, socket.AF_INET6):
                counting.one_more()
            return connect(self, address)

        socket.socket.connect = counted

    def one_more(self):
        self.count += 1
        if self.count > self.planned:
            books = len(self.shelf.bodies)
            self.recovered.append(
                f"connection {self.count} (of {self.planned} planned) after {books} books"
            )


class Watch:
    """Ends a visit in which no book has arrived for timeout_s, whatever waits in which library."""

    def __init__(self, shelf, timeout_s, give_up):
        self.shelf = shelf
        self.timeout_s = timeout_s
        self.give_up = give_up
        self.barked = False

    def __enter__(self):
        signal.signal(signal.SIGALRM, self.look)
        step_s = min(1.0, self.timeout_s / 4.0)
        signal.setitimer(signal.ITIMER_REAL, step_s, step_s)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)

    def look(self, *_):
        still_s = shelves.clock() - self.shelf.last
        stalled = shelves.Stalled(f"no book arrived for {self.timeout_s:.3g} s")
        if still_s > self.timeout_s and not self.barked:
            self.barked = True
            raise stalled
        if still_s > self.timeout_s + 5:  # the library does not come back from its clean-up
            self.give_up(stalled)


def failure(shelf, error):
    """An exception as {"book", "certain", "type", "message", "waiting"}.

    book: null for the list of ids; certain: whether its response is the one that is wrong;
    waiting: the other books that had been asked for.
    """
    book, certain = next(iter(shelf.waiting), None), False
    if isinstance(error, shelves.BookFailed):
        book, certain, error = error.book, error.certain, error.cause
    cause = innermost(error)
    message = str(cause) or str(error) or "no further word"
    for folder in (sys.path[0], sys.prefix, getattr(sys, "base_prefix", "")):
        message = message.replace(folder + os.sep, "")
    waiting = [other for other in shelf.waiting if other != book]
    found = {"book": book, "certain": certain, "waiting": waiting}
    return dict(found, type=type(cause).__name__, message=" ".join(message.split()))


def innermost(error):
    """The exception at the bottom: libraries wrap the one that says what happened."""
    for _ in range(10):
        inside = [getattr(error, "reason", None), error.__cause__, *list(error.args)]
        inside = [e for e in inside if isinstance(e, Exception)]
        if not inside:
            break
        error = inside[0]
    return error


def run(spec, say):
    """Visit the store, and say (once) what was seen."""
    shelf = shelves.Shelf(spec["protocol"])
    planned = spec["connections"] if spec["protocol"] == "http/1.1" else 1
    connections = Connections(planned, shelf)

    def answer(error):
        done_s = shelf.seconds()
        after = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "python": sys.version.split()[0],
            "protocol": shelf.protocol,
            "wall_s": round(done_s, 6),
            "user_s": round(after.ru_utime - before.ru_utime, 6),
            "sys_s": round(after.ru_stime - before.ru_stime, 6),
            "process_wall_s": round(time.time() - spec["started_at"], 6),
            "process_user_s": round(after.ru_utime, 6),
            "process_sys_s": round(after.ru_stime, 6),
            "index": shelf.index,
            "bodies": shelf.bodies,
            "order": shelf.order,
            "connections": connections.count,
            "peak_in_flight": shelf.peak_in_flight,
            "streams_peak": shelf.peak_in_flight if shelf.protocol == "h2" else None,
            "recovered": connections.recovered,
            "failure": failure(shelf, error) if error else None,
        }

    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        client = importlib.import_module(spec["script"])
        connections.install()
        before = resource.getrusage(resource.RUSAGE_SELF)
        shelf.start()
        with Watch(shelf, spec["timeout_s"], lambda error: say(answer(error))):
            client.visit(spec, shelf)
        result = answer(None)
    except (Exception, shelves.Stalled) as error:
        result = answer(error)
    say(result)


def main():
    # Libraries that print, print to standard error: standard output is for the one object.
    out = os.dup(1)
    os.dup2(2, 1)

    def say(result):
        with os.fdopen(out, "w") as stream:
            json.dump(result, stream)
        os._exit(0)  # whatever threads or connections a library has left open

    run(json.load(sys.stdin), say)


if __name__ == "__main__":
    main()
