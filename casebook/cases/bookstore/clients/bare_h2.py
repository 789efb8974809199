"""HTTP/2 with h2 alone: many requests at once over one connection.

h2 knows the rules of HTTP/2 and no network: requests become bytes to send, and bytes that arrive
become events. https://python-hyper.org/projects/h2/en/stable/basic-usage.html
"""

import socket
from collections import deque
from urllib.parse import urlsplit

from h2 import config, connection, events
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes


class Broken(Exception):
    """The connection, or one stream of it, ended before its response did."""


#: What is raised when a connection cannot be had or is lost.
LOST = (Broken, ProtocolError, OSError)


class Reply:
    """What has arrived of one response."""

    def __init__(self, path):
        self.path, self.headers, self.body = path, {}, b""


class Connection:
    """One TLS connection that speaks HTTP/2.

    `open`: its replies that are not whole, by stream; `is_settled`: whether the server's settings
    are in.
    """

    def __init__(self, url, context, timeout_s=None, delays_small=False):
        address = urlsplit(url)
        context.set_alpn_protocols(["h2", "http/1.1"])
        plain = socket.create_connection((address.hostname, address.port), timeout_s)
        # Or TCP keeps a small packet back until the one before it is acknowledged.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not delays_small)
        self.socket = context.wrap_socket(plain, server_hostname=address.hostname)
        self.protocol = self.socket.selected_alpn_protocol()
        self.authority = address.netloc
        self.h2 = connection.H2Connection(config.H2Configuration(header_encoding="utf-8"))
        self.open, self.is_settled = {}, False

    def greet(self, window_bytes=0):
        """Say hello, together with the first request.

        A client need not wait for the server's settings (RFC 9113, section 3.4). window_bytes: how
        much the server may send ahead of our acknowledgement, on each stream and in all; 0 for
        HTTP/2's own 65,535.
        """
        if self.protocol != "h2":
            raise Broken(f"the server chose {self.protocol or 'no protocol'}, and not HTTP/2")
        self.h2.initiate_connection()
        if window_bytes:
            self.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window_bytes})
            self.h2.increment_flow_control_window(window_bytes - 65_535)

    def settle(self):
        """Say hello, and wait for the server's settings all the same.

        It is for callers that want to know how many streams the server allows.
        """
        self.greet()
        while not self.is_settled:
            self.exchange()

    def exchange(self):
        """Send what there is to send, wait for bytes, and return what they mean."""
        self.socket.sendall(self.h2.data_to_send())
        data = self.socket.recv(65536)
        if not data:
            raise Broken("the server closed the connection")
        received = self.h2.receive_data(data)
        self.is_settled |= any(
            isinstance(event, events.RemoteSettingsChanged) for event in received
        )
        return received

    def room(self):
        """Return how many streams the server allows.

        A hundred until it has said so, because it should not allow fewer (RFC 9113, section 6.5.2).
        """
        return self.h2.remote_settings.max_concurrent_streams if self.is_settled else 100

    def request(self, path):
        """Send a request, and return the number of its stream."""
        stream = self.h2.get_next_available_stream_id()
        target = [(":authority", self.authority), (":path", path)]
        headers = [(":method", "GET"), (":scheme", "https"), *target]
        self.h2.send_headers(stream, headers, end_stream=True)
        self.open[stream] = Reply(path)
        return stream

    def listen(self):
        """Wait for bytes, and yield (stream, reply) for each reply that they make whole."""
        for event in self.exchange():
            if isinstance(event, events.ConnectionTerminated):
                raise Broken(f"the server said GOAWAY: {event.error_code!r}")
            if isinstance(event, events.StreamReset):
                path = self.open[event.stream_id].path
                raise Broken(f"the server reset the stream of {path}: {event.error_code!r}")
            if isinstance(event, events.ResponseReceived):
                self.open[event.stream_id].headers = dict(event.headers)
            elif isinstance(event, events.DataReceived):
                self.open[event.stream_id].body += event.data
                # Without this the server stops after 65,535 bytes.
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, events.StreamEnded):
                yield event.stream_id, self.open.pop(event.stream_id)

    def fetch(self, paths, at_once=100):
        """Ask for every path, at most `at_once` at a time, and yield each reply once whole."""
        remaining = deque(paths)
        while remaining or self.open:
            while remaining and len(self.open) < min(at_once, self.room()):
                self.request(remaining.popleft())
            for _, reply in self.listen():
                yield reply
