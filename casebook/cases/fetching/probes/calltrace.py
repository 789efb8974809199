"""A call trace of the fetch: from `send` down to the call that blocks, or to the hub that switches.

Bounded: Python functions of the files below, C functions of the names below, and each switch
from greenlet to greenlet; after LIMIT rows it stops.
"""

import re
import sys

from counting import clock
from provenance import short

#: Rows after which the trace ends with a row whose event is "limit".
LIMIT = 20000

#: The Python files in which calls are traced.
FILES = re.compile(
    r"^(requests/|urllib3/|gevent/|gevent_openssl/|OpenSSL/SSL|~probe/counting|(http/client|httplib|ssl|socket)\.)"
)

#: The Python functions that are traced: the way from a request down to its socket and back.
FUNCTIONS = frozenset(
    "request send urlopen _make_request connect _new_conn create_connection "
    "create_urllib3_context ssl_wrap_socket wrap_socket load_verify_locations do_handshake "
    "endheaders sendall _send_until_done __iowait "
    "getresponse begin _read_status readinto read recv recv_into "
    "wait_for_read wait_for_write poll_wait_for_socket select_wait_for_socket do_poll poll".split()
)

#: The C functions that are traced: those that touch a socket or wait for one.
C_FUNCTIONS = frozenset(
    "connect do_handshake recv recv_into send sendall select load_verify_locations "
    "SSL_do_handshake SSL_read SSL_write".split()
)

#: The files in which `read` and `write` mean a socket; elsewhere they read and write memory.
TLS_FILES = re.compile(r"^(gevent/_?ssl|ssl\.)")


def is_traced(function, file):
    """Say whether this C function, called from that file, belongs in the trace."""
    name = function.__name__
    if name in ("read", "write"):
        return TLS_FILES.match(file)
    if name == "poll":
        # The method that waits, not `select.poll`, which makes the object to wait with.
        return hasattr(function.__self__, "register")
    return name in C_FUNCTIONS


class Trace(object):
    def __init__(self, limit=LIMIT):
        self._limit = limit
        self._rows = []
        self._files = {}
        self._numbers = {}
        self._depths = {}

    def observe(self, function, *args):
        """Call the function and trace it."""
        self._greenlet = sys.modules.get("greenlet")
        self._number()  # the starting one is number 0
        self._start = clock()
        if self._greenlet:
            self._greenlet.settrace(self._on_switch)
        sys.setprofile(self._on_call)
        try:
            return function(*args)
        finally:
            self._end()

    def rows(self):
        """Return the events in order of time.

        Each is {"t_s", "greenlet", "depth", "function", "file", "line", "event"}.

        greenlet: 0 is the main program, -1 gevent's hub, the others count from 1. event: "call"
        and "return" of Python functions, "c_call" and "c_return" of C functions (whose file and
        line are the caller's), "switch" when this greenlet goes on. depth: how many of the traced
        calls are open in this greenlet.
        """
        names = ("t_s", "greenlet", "depth", "function", "file", "line", "event")
        return [dict(zip(names, row)) for row in self._rows]

    def _on_call(self, frame, event, function):
        code = frame.f_code
        file = self._files.get(code)
        if file is None:
            file = short(code.co_filename)
            file = self._files[code] = file if FILES.match(file) else ""
        if not file:
            return
        if event in ("call", "return"):
            if code.co_name in FUNCTIONS:
                self._add(event, code.co_name, file, code.co_firstlineno)
        elif is_traced(function, file):
            event = "c_return" if event == "c_exception" else event
            self._add(event, function.__name__, file, frame.f_lineno)

    def _on_switch(self, event, greenlets):
        self._add("switch", "switch", None, None)

    def _add(self, event, function, file, line):
        number = self._number()
        depth = self._depths.get(number, 0)
        if event in ("call", "c_call"):
            self._depths[number] = depth + 1
        elif event in ("return", "c_return"):
            depth = self._depths[number] = max(depth - 1, 0)
        if len(self._rows) == self._limit:
            self._end()
            event = "limit"
        t_s = round(clock() - self._start, 6)
        self._rows.append((t_s, number, depth, function, file, line, event))

    def _number(self):
        """Return the number of the running greenlet."""
        if not self._greenlet:
            return 0
        current = self._greenlet.getcurrent()
        if current not in self._numbers:
            is_hub = type(current).__name__ == "Hub"
            positive = [number for number in self._numbers.values() if number >= 0]
            self._numbers[current] = -1 if is_hub else len(positive)
        return self._numbers[current]

    def _end(self):
        sys.setprofile(None)
        if self._greenlet:
            self._greenlet.settrace(None)
