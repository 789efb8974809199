"""Visit the bookstore inside an environment: one JSON object in (standard input), one out.

In: {"script": "with_requests", "url", "ca_file", "protocol" (wanted), "ids" (null: all that the
store lists), "at_once", "connections", "order": "asked", "completed" or "chunks", "timeout_s",
"started_at" (time.time() when this process was started)}.

Out: {"protocol", "wall_s", "user_s", "sys_s" (from the first connection to the last book),
"process_wall_s", "process_user_s", "process_sys_s" (of the whole process so far, as the article
measured), "index", "bodies": {id: text}, "arrivals": [[id, seconds]], "opened": [books that were
there before, for each TCP connection], "peak_in_flight", "python", "failure": null or what
`failure` says}.

Runs on Python 3.7 and newer with the standard library and the packages of the environment.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import socket
import sys
import time

from shelf import BookFailed, Shelf, Stalled, clock


def note_connections(shelf):
    """Note each TCP connection on the shelf from now on."""
    connect = socket.socket.connect

    def noted(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            shelf.connecting()
        return connect(self, address)

    socket.socket.connect = noted


@contextlib.contextmanager
def watched(shelf, timeout_s, give_up):
    """End a visit in which no book has arrived for timeout_s, whichever library is waiting."""
    barked = []

    def check(*_):
        still_s = clock() - shelf.last
        stalled = Stalled(f"no book arrived for {timeout_s:.3g} s")
        if still_s > timeout_s and not barked:
            barked.append(still_s)
            raise stalled
        if still_s > timeout_s + 5:  # the library does not come back from its clean-up
            give_up(stalled)

    signal.signal(signal.SIGALRM, check)
    step_s = min(1.0, timeout_s / 4.0)
    signal.setitimer(signal.ITIMER_REAL, step_s, step_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def failure(shelf, error):
    """Describe an exception as {"book", "certain", "type", "message", "waiting"}.

    book: null for the list of ids; certain: whether its response is the one that is wrong;
    waiting: the other books that had been asked for.
    """
    book, certain = next(iter(shelf.waiting), None), False
    if isinstance(error, BookFailed):
        book, certain, error = error.book, error.certain, error.cause
    cause = innermost(error)
    message = str(cause) or str(error) or "no further word"
    for folder in (sys.path[0], sys.prefix, getattr(sys, "base_prefix", "")):
        message = message.replace(folder + os.sep, "")
    return {
        "book": book,
        "certain": certain,
        "type": type(cause).__name__,
        "message": " ".join(message.split()),
        "waiting": [waiting_book for waiting_book in shelf.waiting if waiting_book != book],
    }


def innermost(error):
    """Return the exception at the bottom: libraries wrap the one that says what happened."""
    for _ in range(10):
        inside = [getattr(error, "reason", None), error.__cause__, *list(error.args)]
        inside = [e for e in inside if isinstance(e, Exception)]
        if not inside:
            break
        error = inside[0]
    return error


def used_s():
    """Return the user and system CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime


def run(spec, report):
    """Visit the store, and report once what happened."""
    shelf = Shelf(spec)

    def outcome(error=None):
        wall_s, (user_s, sys_s) = clock() - shelf.began, used_s()
        return {
            "wall_s": round(wall_s, 6),
            "user_s": round(user_s - start_cpu_s[0], 6),
            "sys_s": round(sys_s - start_cpu_s[1], 6),
            "process_wall_s": round(time.time() - spec["started_at"], 6),
            "process_user_s": round(user_s, 6),
            "process_sys_s": round(sys_s, 6),
            "python": sys.version.split()[0],
            "protocol": shelf.protocol,
            "index": shelf.index,
            "bodies": shelf.bodies,
            "arrivals": shelf.arrivals,
            "opened": shelf.opened,
            "peak_in_flight": shelf.peak_in_flight,
            "failure": failure(shelf, error) if error else None,
        }

    start_cpu_s = used_s()
    try:
        client = importlib.import_module(spec["script"])
        note_connections(shelf)
        start_cpu_s = used_s()
        shelf.start()
        with watched(shelf, spec["timeout_s"], lambda error: report(outcome(error))):
            client.visit(spec, shelf)
        result = outcome()
    except (Exception, Stalled) as error:
        result = outcome(error)
    report(result)


def main():
    """Visit as standard input says, and answer on standard output."""
    # Libraries that print, print to standard error: standard output is for the one object.
    out = os.dup(1)
    os.dup2(2, 1)

    def report(result):
        with os.fdopen(out, "w") as stream:
            json.dump(result, stream)
        os._exit(0)  # whatever threads or connections a library has left open

    run(json.load(sys.stdin), report)


if __name__ == "__main__":
    main()
