"""The store over HTTP/3, on aioquic: python quic_store.py OPTIONS (JSON).

The same answers as on Twisted. QUIC is UDP, and its handshake is TLS 1.3's.

Beside the options of every store: "interface"; "tickets", what becomes of the tickets with which a
client can take up an earlier session: "" (it gives out none), "once" (each is good for one
connection), "again" (as often as it is shown, which lets anybody send a recorded one again).
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

import owner
from aioquic.asyncio import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted
from books import Books, Counters

options = json.loads(sys.argv[1])
books = Books(options)


class Handshakes(Counters):
    """Counts connections, too, whose handshake came to its end.

    How many, how many of them took up a session, and how many had early data accepted. And, when
    they asked first, whether they had taken one up, and whether that was before the handshake's
    end, which some never bring.
    """

    def reset(self):
        """Forget what was counted."""
        super().reset()
        self._handshakes = {"handshakes": 0, "resumed": 0, "early": 0}
        self._handshakes.update(asked_resumed=0, asked_early=0)

    def note(self, **counts):
        """Count what is so."""
        for name, is_so in counts.items():
            self._handshakes[name] += bool(is_so)

    def report(self):
        """Return what was counted."""
        return dict(super().report(), **self._handshakes)


class Visitor(QuicConnectionProtocol):
    """One client's connection."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self._http, self._open, self._later = H3Connection(self._quic), set(), set()
        self._is_done = self._has_asked = False

    def quic_event_received(self, event):
        """Take what QUIC tells: a handshake, requests, or an end."""
        if isinstance(event, HandshakeCompleted):
            self._is_done = True
            resumed, early = event.session_resumed, event.early_data_accepted
            counters.note(handshakes=True, resumed=resumed, early=early)
        elif isinstance(event, ConnectionTerminated):
            for timer in self._later:
                timer.cancel()
        for http_event in self._http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                self._receive_request(http_event.stream_id, dict(http_event.headers))

    def _receive_request(self, stream, headers):
        self._open.add(stream)
        if not self._has_asked:
            self._has_asked, taken_up = True, self._quic.tls.session_resumed
            counters.note(asked_resumed=taken_up, asked_early=not self._is_done)
        counters.request(id(self), "HTTP/3", len(self._open))
        url = urlsplit(headers[b":path"].decode("ascii"))
        status, body, wait_s = page(headers[b":method"], url)
        if wait_s:
            later = self._loop.call_later(wait_s, self._answer, stream, status, body, True)
            self._later.add(later)
        else:
            # What is sent leaves when this datagram has been read as a whole.
            self._answer(stream, status, body)

    def _answer(self, stream, status, body, late=False):
        self._open.discard(stream)
        headers = [
            (b":status", str(status).encode("ascii")),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode("ascii")),
        ]
        self._http.send_headers(stream, headers)
        self._http.send_data(stream, body, end_stream=True)
        if late:
            self.transmit()


def page(method, url):
    """Return a status, a body, and seconds before they are sent."""
    if url.path not in ("/", "/book"):
        return 404, b"", 0
    if method != b"GET":
        return 405, b"", 0
    if url.path == "/":
        return 200, books.index(), 0
    number = books.find(parse_qs(url.query, keep_blank_values=True).get("id", []))
    if number is None:
        return 404, b"", 0
    return 200, books.book(number), books.wait_s(number)


def tickets(policy):
    """Return what a server does with tickets: it keeps one until it is shown."""
    if not policy:
        return {}
    store = {}
    fetch = store.pop if policy == "once" else store.get
    return {
        "session_ticket_handler": lambda ticket: store.update({ticket.ticket: ticket}),
        "session_ticket_fetcher": lambda label: fetch(label, None),
    }


async def main():
    """Serve until the owner ends."""
    owner.attend(options["folder"], counters)
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=False)
    configuration.load_cert_chain(options["chain_file"], options["key_file"])
    serves = {
        "configuration": configuration,
        "create_protocol": Visitor,
        **tickets(options["tickets"]),
    }
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: QuicServer(**serves), local_addr=(options["interface"], options["port"])
    )
    owner.report(port=transport.get_extra_info("sockname")[1])
    await asyncio.Event().wait()


counters = Handshakes()
asyncio.run(main())
