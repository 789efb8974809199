"""When each request connected, shook hands, sent, waited and received.

Wraps the methods of urllib3's connections (1.24 to 2.8 call them by the same names):

- connect: `_new_conn`, from looking up the name to a connected TCP socket;
- handshake: the rest of an HTTPS `connect`: making the context, loading the certificates, the
  TLS handshake itself;
- send: `request`, until the last byte has been handed to the socket;
- wait: `getresponse`, until status line and headers are in;
- receive: reading the body, the wait for it included.
"""

import sys

from counting import clock


class Timeline(object):
    """Intervals of each greenlet, under the page that it fetches, from now on."""

    def __init__(self):
        from urllib3 import connectionpool, response

        self._intervals = []
        self._pages = {}
        self._opened = {}
        greenlet = sys.modules.get("greenlet")
        # Without greenlets there is one request at a time.
        self._here = greenlet.getcurrent if greenlet else lambda: None
        # HTTPS first: its class inherits from the other one, and must not be wrapped twice.
        https, http = connectionpool.HTTPSConnectionPool, connectionpool.HTTPConnectionPool
        self._watch_connection(https.ConnectionCls, tls=True)
        self._watch_connection(http.ConnectionCls, tls=False)
        self._watch_pool(http)
        self._watch_response(response.HTTPResponse)

    def rows(self, origin):
        """{"page", "event", "start_s", "end_s"} by start, in seconds after the clock's `origin`."""
        names = ("page", "event", "start_s", "end_s")
        return [
            dict(zip(names, (page, event, round(start - origin, 6), round(end - origin, 6))))
            for page, event, start, end in sorted(self._intervals, key=lambda row: row[2:])
        ]

    def _watch_pool(self, pool):
        """Remember which page each greenlet asks this kind of pool for."""
        urlopen = pool.urlopen

        def watched(pool, method, url, *args, **kwargs):
            self._pages[self._here()] = int(url.rpartition("page=")[2])
            return urlopen(pool, method, url, *args, **kwargs)

        pool.urlopen = watched

    def _watch_connection(self, connection_class, tls):
        """Time the four steps of this kind of connection up to the response's headers."""
        new_conn = connection_class._new_conn
        connect = connection_class.connect
        request = connection_class.request
        getresponse = connection_class.getresponse

        def timed_new_conn(connection):
            start = clock()
            sock = new_conn(connection)
            self._opened[self._here()] = self._add("connect", start)
            return sock

        def timed_connect(connection):
            connect(connection)
            here = self._here()
            self._opened[here] = self._add("handshake", self._opened[here])

        def timed_request(connection, *args, **kwargs):
            start = clock()
            request(connection, *args, **kwargs)
            # Plain HTTP connects in the middle of its first request.
            self._add("send", max(start, self._opened.get(self._here(), start)))

        def timed_getresponse(connection, *args, **kwargs):
            start = clock()
            response = getresponse(connection, *args, **kwargs)
            self._add("wait", start)
            return response

        connection_class._new_conn = timed_new_conn
        if tls:
            connection_class.connect = timed_connect
        connection_class.request = timed_request
        connection_class.getresponse = timed_getresponse

    def _watch_response(self, response_class):
        """Time the reading of bodies, from the first wish for a piece to the last piece."""
        stream = response_class.stream

        def timed_stream(response, *args, **kwargs):
            start = clock()
            for piece in stream(response, *args, **kwargs):
                yield piece
            self._add("receive", start)

        response_class.stream = timed_stream

    def _add(self, event, start):
        end = clock()
        self._intervals.append((self._pages.get(self._here()), event, start, end))
        return end
