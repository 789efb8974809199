"""Who holds the thread: each turn of a greenlet, and the line at which it gave the thread away.

Bounded as the call trace is; it keeps a row for each switch from greenlet to greenlet, and one for
each call of the operating system in which a greenlet keeps the thread. With threads in the place of
greenlets each has its own, and only the calls are there to see.
"""

import sys

from counting import clock
from provenance import short

#: Rows after which no more are kept.
LIMIT = 5000

#: The C functions in which a whole thread waits, where the loop is not asked.
BLOCKING = frozenset(
    "poll select recv recv_into read do_handshake connect getaddrinfo "
    "SSL_read SSL_do_handshake".split()
)

#: The packages whose lines are shown, as `short` names their files.
SHOWN = ("grequests.py", "requests/", "urllib3/", "gevent_openssl/", "OpenSSL/", "gevent/")
#: Files of the standard library whose lines are shown.
SHOWN_MODULES = ("ssl.py", "socket.py", "http/client.py", "httplib.py")


class Turns(object):
    def __init__(self, of_threads=False, limit=LIMIT):
        """Set up. of_threads: each request has a thread of its own, and no greenlet counts."""
        self._of_threads, self._limit = of_threads, limit
        self._rows = []
        self._numbers = {}
        self._files = {}
        self._calls = {}

    def observe(self, function, *args):
        """Call the function and keep its turns."""
        import threading

        self._greenlet = None if self._of_threads else sys.modules.get("greenlet")
        self._thread = threading.current_thread
        self._number()  # the starting one is number 0
        self._start = clock()
        if self._greenlet:
            self._greenlet.settrace(self._on_switch)
        else:
            threading.setprofile(self._on_call)
        sys.setprofile(self._on_call)
        try:
            return function(*args)
        finally:
            self._add("end", self._number(), None)
            sys.setprofile(None)
            threading.setprofile(None)
            if self._greenlet:
                self._greenlet.settrace(None)

    def rows(self):
        """Return {"t_s", "event", "greenlet", "to", "function", "file", "line"} in order of time.

        event: "switch" (this greenlet gives the thread to another, `to`; its line is the one at
        which it does), "call" and "return" (of a C function of BLOCKING, from this line) and "end".
        greenlet: 0 is the script, -1 gevent's hub, the others count from 1. file: as
        `provenance.short` has it; None if no line of SHOWN is on the stack.
        """
        names = ("t_s", "event", "greenlet", "to", "function", "file", "line")
        return [dict(zip(names, row)) for row in self._rows]

    def _on_switch(self, event, greenlets):
        origin, target = greenlets
        frame = getattr(origin, "gr_frame", None)
        self._add("switch", self._number_of(origin), self._number_of(target), frame)

    def _on_call(self, frame, event, function):
        if event.startswith("c_") and function.__name__ in BLOCKING:
            # Elsewhere `read` reads a file.
            if function.__name__ != "read" or short(frame.f_code.co_filename) == "ssl.py":
                kind = "call" if event == "c_call" else "return"
                self._add(kind, self._number(), None, frame, function.__name__)

    def _add(self, event, number, to, frame=None, function=None):
        if len(self._rows) >= self._limit:
            return
        t_s = round(clock() - self._start, 6)
        name, file, line = self._place(frame)
        self._rows.append((t_s, event, number, to, function or name, file, line))

    def _place(self, frame):
        """Return the function, the file and the line of the innermost frame that is shown."""
        while frame is not None:
            code = frame.f_code
            file = self._files.get(code)
            if file is None:
                file = short(code.co_filename)
                is_shown = file.startswith(SHOWN) or file.endswith(SHOWN_MODULES)
                file = self._files[code] = file if is_shown else ""
            if file:
                return code.co_name, file, frame.f_lineno
            frame = frame.f_back
        return None, None, None

    def _number(self):
        if self._greenlet:
            return self._number_of(self._greenlet.getcurrent())
        return self._number_of(self._thread())

    def _number_of(self, runner):
        if runner not in self._numbers:
            is_hub = type(runner).__name__ == "Hub"
            positive = [number for number in self._numbers.values() if number >= 0]
            self._numbers[runner] = -1 if is_hub else len(positive)
        return self._numbers[runner]
