"""A bookstore that misbehaves, in threads of this process.

HTTP/1.1 is written by hand; HTTP/2's frames are h2's.

The troubles: none · few-streams (SETTINGS that allow few; more are refused) · refused (more are
refused though SETTINGS allow them) · goaway (each connection ends after a number of requests) ·
hangs-up (none but the list is answered) · cut-short (half of the announced bytes) · half (half a
body, announced as that) · reset (the book's stream or connection is reset) · wrong-body (another
book's) · missing (404) · short-list (the list lacks the book) · stall (no answer to the book) ·
stalled-list · nonsense (in place of the book) · leaves (after some requests there is no server
any more; for one visit) · other-protocol (h2 clients get HTTP/1.1) · shy (over HTTP/2 not even
SETTINGS are said before the first request is in).
"""

import contextlib
import json
import socket
import ssl
import struct
import time
from functools import cache

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, RequestReceived
from h2.exceptions import ProtocolError
from here import serving
from hyperframe.frame import GoAwayFrame, HeadersFrame, SettingsFrame

from casebook.cases.bookstore import stock

#: The book in trouble; how many requests a connection lives for (of the list and 12 books, at least
#: one has to be asked for over a fourth connection), and how many it takes at a time.
BOOK, AFTER, STREAMS = stock.ids()[7], 4, 2
ABOUT = f"/book?id={BOOK}"


class Answers:
    """What is answered in a trouble. A connection that asks for anything else is closed."""

    def __init__(self, trouble):
        self.trouble, self.have_left = trouble, False
        _, length, body = usual()[ABOUT]
        half = body[: length // 2]
        ids = [book for book in stock.ids() if book != BOOK]
        otherwise = {
            "missing": {ABOUT: (404, 0, b"")},
            "cut-short": {ABOUT: (200, length, half)},
            "half": {ABOUT: (200, len(half), half)},
            "wrong-body": {ABOUT: usual()[f"/book?id={ids[0]}"]},
            "short-list": {"/": whole(ids)},
            "stall": {ABOUT: None},
            "stalled-list": {"/": None},
        }
        self.by_path = usual() | otherwise.get(trouble, {})
        if trouble == "hangs-up":
            self.by_path = {"/": usual()["/"]}


def whole(content):
    """Status, announced length and body; in the place of all three stands None for no answer."""
    body = json.dumps(content).encode()
    return 200, len(body), body


@cache
def usual():
    """What is answered without trouble, by path."""
    books = {f"/book?id={number}": whole(book) for number, book in stock.books().items()}
    return {"/": whole(stock.ids())} | books


def speak_http1(tls, answers):
    """Requests one after the other, as they come."""
    stream = tls.makefile("rb")
    for count in range(1, 100_000):
        line = stream.readline().split()
        if not line:
            return
        while stream.readline().strip():
            pass
        path = line[1].decode()
        if path == ABOUT and answers.trouble == "reset":
            # A TCP reset, as of a server that died.
            tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        if path == ABOUT and answers.trouble == "nonsense":
            tls.sendall(b"\x00\xff nothing that means anything\r\n\r\n" * 40)
            continue
        if path not in answers.by_path:
            return
        if answers.by_path[path] is None:
            time.sleep(60)
        status, announced, body = answers.by_path[path]
        is_last = answers.trouble == "goaway" and count == AFTER
        head = f"HTTP/1.1 {status} whatever\r\nContent-Length: {announced}\r\n"
        head += "Connection: close\r\n" if is_last else ""
        head += "Content-Type: application/json\r\n\r\n"
        tls.sendall(head.encode() + body)
        if is_last or len(body) != announced:
            return


class Http2:
    """One HTTP/2 connection: what has been asked within a moment is answered together."""

    def __init__(self, tls, answers):
        self.tls, self.answers = tls, answers
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.initiate_connection()
        if answers.trouble == "few-streams":
            # Said by hand: h2 would end the connection of a client that does not keep to it.
            self.h2.data_to_send()
            allowed = {SettingsFrame.MAX_CONCURRENT_STREAMS: STREAMS}
            tls.sendall(SettingsFrame(0, settings=allowed).serialize())
        self.count = 0

    def speak(self):
        asked, is_shy = [], self.answers.trouble == "shy"
        while True:
            if not is_shy:
                self.tls.sendall(self.h2.data_to_send())
            self.tls.settimeout(0.02 if asked else 60)
            try:
                data = self.tls.recv(65536)
            except TimeoutError:
                self.answer(asked)
                asked = []
                continue
            if not data:
                return
            for event in self.h2.receive_data(data):
                if isinstance(event, ConnectionTerminated):
                    return
                if isinstance(event, RequestReceived):
                    is_shy = False
                    asked.append((event.stream_id, dict(event.headers)[":path"]))

    def answer(self, asked):
        trouble = self.answers.trouble
        for open_streams, (stream, path) in enumerate(asked, 1):
            if trouble in ("few-streams", "refused") and open_streams > STREAMS:
                self.h2.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
            elif path == ABOUT and trouble == "reset":
                self.h2.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)
            elif path == ABOUT and trouble == "nonsense":
                frame = HeadersFrame(stream, data=b"\xff" * 40, flags=["END_HEADERS"])
                self.tls.sendall(self.h2.data_to_send() + frame.serialize())
            else:
                self.answer_one(stream, path)
            self.count += 1
            if trouble in ("goaway", "leaves") and self.count == AFTER:
                self.answers.have_left = trouble == "leaves"
                said = self.h2.data_to_send()
                if trouble == "goaway":
                    said += GoAwayFrame(0, last_stream_id=stream, error_code=0).serialize()
                self.tls.sendall(said)
                raise ConnectionError

    def answer_one(self, stream, path):
        if path not in self.answers.by_path:
            raise ConnectionError
        if self.answers.by_path[path] is None:
            return
        status, announced, body = self.answers.by_path[path]
        headers = [(":status", str(status)), ("content-type", "application/json")]
        self.h2.send_headers(stream, [*headers, ("content-length", str(announced))])
        while len(body) > 16_000:  # the list is longer than a frame
            self.h2.send_data(stream, body[:16_000])
            body = body[16_000:]
        self.h2.send_data(stream, body, end_stream=True)


@contextlib.contextmanager
def bookstore(trouble, made):
    """The URL of a bookstore in trouble, with these certificates, as long as the block runs."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.chain_file, made.key_file)
    context.set_alpn_protocols(["http/1.1"] if trouble == "other-protocol" else ["h2", "http/1.1"])
    answers = Answers(trouble)

    def connected(tls, *_):
        """One connection, whatever becomes of it."""
        with contextlib.suppress(OSError, ProtocolError):
            if answers.have_left:
                return
            tls.do_handshake()
            if tls.selected_alpn_protocol() == "h2":
                Http2(tls, answers).speak()
            else:
                speak_http1(tls, answers)

    with serving(connected, context) as url:
        yield url
