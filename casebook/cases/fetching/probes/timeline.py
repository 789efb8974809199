"""When each request connected, shook hands, sent, waited and received.

Wraps what urllib3 calls for each connection (1.24 to 2.8 have the same names for it). One event
begins where its function is called, or where the one before it in the same greenlet ended, which
may be in the middle of the call:

- connect: `create_connection`, from looking up the name to a connected TCP socket;
- handshake: the rest of the pool's `_validate_conn`, which connects a new HTTPS connection: making
  the context, loading the certificates, the TLS handshake itself;
- send: `request`, until the last byte has been handed to the socket. Plain HTTP connects in it;
- wait: `getresponse`, until status line and headers are in;
- receive: reading the body, the wait for it included.

The connection's own `connect` and `_new_conn` stay as they are: where somebody has replaced them,
shared_context.py shares nothing, and a cured program would be shown uncured.
"""

import sys

from counting import clock


class Timeline(object):
    """Intervals of each greenlet, under the page that it fetches."""

    def __init__(self):
        self._intervals = []
        self._pages = {}
        self._ends = {}

    def observe(self, function, *args):
        """Call the function and time what it asks urllib3 for."""
        from urllib3 import connectionpool, response
        from urllib3.util import connection as sockets

        greenlet = sys.modules.get("greenlet")
        # Without greenlets there is one request at a time.
        self._here = greenlet.getcurrent if greenlet else lambda: None
        https, http = connectionpool.HTTPSConnectionPool, connectionpool.HTTPConnectionPool
        self._watch(sockets, "create_connection", "connect")
        self._watch_handshakes(https)
        # HTTPS first: its class inherits from the other one, and must not be wrapped twice.
        for connection in (https.ConnectionCls, http.ConnectionCls):
            self._watch(connection, "request", "send")
            self._watch(connection, "getresponse", "wait")
        self._watch_pool(http)
        self._watch_response(response.HTTPResponse)
        self._start = clock()
        return function(*args)

    def rows(self):
        """Return the events by start, each {"page", "event", "start_s", "end_s"}.

        The times are seconds after the call began.
        """
        rows = []
        for page, event, start, end in sorted(self._intervals, key=lambda row: row[2:]):
            times = {"start_s": round(start - self._start, 6), "end_s": round(end - self._start, 6)}
            rows.append(dict(times, page=page, event=event))
        return rows

    def _watch(self, owner, method, event):
        """Time each call of a method, or of a module's function."""
        call = getattr(owner, method)

        def timed(*args, **kwargs):
            start = clock()
            result = call(*args, **kwargs)
            self._add(event, start)
            return result

        setattr(owner, method, timed)

    def _watch_handshakes(self, pool):
        """Time what connects, if a connection is new; a kept one is only looked at."""
        validate = pool._validate_conn

        def timed(pool, connection):
            is_new, start = getattr(connection, "sock", None) is None, clock()
            validate(pool, connection)
            if is_new:
                self._add("handshake", start)

        pool._validate_conn = timed

    def _watch_response(self, response_class):
        """Time the reading of bodies, from the first wish for a piece to the last piece."""
        stream = response_class.stream

        def timed_stream(response, *args, **kwargs):
            start = clock()
            for piece in stream(response, *args, **kwargs):
                yield piece
            self._add("receive", start)

        response_class.stream = timed_stream

    def _watch_pool(self, pool):
        """Remember which page each greenlet asks this kind of pool for."""
        urlopen = pool.urlopen

        def watched(pool, method, url, *args, **kwargs):
            self._pages[self._here()] = int(url.rpartition("page=")[2])
            return urlopen(pool, method, url, *args, **kwargs)

        pool.urlopen = watched

    def _add(self, event, start):
        greenlet, end = self._here(), clock()
        start = max(start, self._ends.get(greenlet, start))
        self._ends[greenlet] = end
        self._intervals.append((self._pages.get(greenlet), event, start, end))
