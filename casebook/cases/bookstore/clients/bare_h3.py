"""HTTP/3 with aioquic alone: many requests at once over one connection, each on a stream of QUIC.

    async with connected(url, ca_file) as connection:
        reply = await connection.request("/")

aioquic knows QUIC and HTTP/3, and lends asyncio's loop for what arrives and for its timers.
https://aioquic.readthedocs.io/en/stable/asyncio.html
"""

import asyncio
import contextlib
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, StreamReset


class Broken(Exception):
    """The connection, or one stream of it, ended before its response did."""


class Reply:
    """What has arrived of one response."""

    def __init__(self, completion):
        self.headers, self.body, self.whole = {}, b"", completion


class Connection(QuicConnectionProtocol):
    """A connection that speaks HTTP/3.

    `resumed`, `early`: whether its handshake took up an earlier session, and whether the server
    took what was asked before the handshake's end (None before that).
    """

    def __init__(self, authority, quic):
        super().__init__(quic)
        self._authority, self._replies = authority, {}
        self._http = H3Connection(quic)
        self.protocol = self.resumed = self.early = None

    async def request(self, path):
        """Send a request, and return the reply once it is whole."""
        stream = self._quic.get_next_available_stream_id()
        reply = self._replies[stream] = Reply(self._loop.create_future())
        fields = {"method": "GET", "scheme": "https", "authority": self._authority, "path": path}
        headers = [(b":" + name.encode(), value.encode()) for name, value in fields.items()]
        self._http.send_headers(stream, headers, end_stream=True)
        # Requests that are made in one turn of the loop leave together.
        self._transmit_soon()
        await reply.whole
        return reply

    def quic_event_received(self, event):
        """Take what QUIC tells: a handshake, data, or an end."""
        if isinstance(event, HandshakeCompleted):
            self.protocol = event.alpn_protocol
            self.resumed, self.early = event.session_resumed, event.early_data_accepted
        elif isinstance(event, StreamReset):
            self._break({event.stream_id}, f"the server reset a stream: {event.error_code:#x}")
        elif isinstance(event, ConnectionTerminated):
            reason = event.reason_phrase or f"error {event.error_code:#x}"
            self._break(set(self._replies), f"the connection ended: {reason}")
        for part in self._http.handle_event(event):
            reply = self._replies.get(part.stream_id)
            if reply is None:
                continue
            if isinstance(part, HeadersReceived):
                reply.headers.update((name.decode(), text.decode()) for name, text in part.headers)
            elif isinstance(part, DataReceived):
                reply.body += part.data
            if part.stream_ended:
                del self._replies[part.stream_id]
                reply.whole.set_result(None)

    def _break(self, streams, reason):
        for stream in streams & set(self._replies):
            self._replies.pop(stream).whole.set_exception(Broken(reason))


@contextlib.asynccontextmanager
async def connected(url, ca_file, window_bytes=0, ticket=None, keep_ticket=None, early=False):
    """Connect to a server of HTTP/3; the connection is closed at the end of the block.

    window_bytes: so much the server may send ahead of our acknowledgement, on each stream and in
    all; 0 for aioquic's own, a million. ticket: of an earlier session, to take it up; keep_ticket:
    called with each ticket that the server gives. early: hand the connection out before its
    handshake has begun, so that the first request leaves with it (0-RTT, where the ticket allows
    it). Raises Broken where no handshake comes to its end.
    """
    address, loop = urlsplit(url), asyncio.get_running_loop()
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, server_name=address.hostname)
    configuration.load_verify_locations(ca_file)
    configuration.session_ticket = ticket
    if window_bytes:
        configuration.max_data = configuration.max_stream_data = window_bytes
    quic = QuicConnection(configuration=configuration, session_ticket_handler=keep_ticket)
    transport, connection = await loop.create_datagram_endpoint(
        lambda: Connection(address.netloc, quic), local_addr=("0.0.0.0", 0)
    )
    connection.connect((address.hostname, address.port), transmit=not early)
    try:
        if not early:
            try:
                await connection.wait_connected()
            except ConnectionError as error:
                raise Broken("the handshake did not come to its end") from error
        yield connection
    finally:
        connection.close()
        transport.close()
