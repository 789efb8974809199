"""A server that is slow to shake hands, and counts the handshakes under way.

    with SlowToShakeHands(handshake_s=0.2) as server:
        ...                        # any client: server.url, server.ca_file
        print(server.counters())

The lab server waits before its *reply*. This one can wait in the *handshake*: the client's first
message is here, and the server's answer to it is not yet on its way, as with a server far away or
one whose processors are busy. It runs in threads of this process, and only on 127.0.0.1.
"""

import contextlib
import http.server
import json
import socket
import ssl
import tempfile
import threading
import time
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

import trustme

from casebook.mistakes import check_range, for_readers

ADDRESS = "127.0.0.1"

#: Nothing waits longer for the other end, in seconds.
PATIENCE_S = 60.0


class _Meter:
    """How many are at something, and the most there were at once."""

    def __init__(self) -> None:
        self._lock, self.now, self.peak, self.in_all = threading.Lock(), 0, 0, 0

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.in_all += 1
            self.peak = max(self.peak, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


class SlowToShakeHands(http.server.ThreadingHTTPServer):
    """The server, until the block ends.

    handshake_s: seconds between the client's first message and the answer to it; reply_s: seconds
    between a request and its reply. url: https://127.0.0.1:PORT. ca_file: the authority to trust;
    folder: where that is, and nothing else.
    """

    request_queue_size = 1024
    daemon_threads = True

    @for_readers
    def __init__(self, handshake_s: float = 0.0, reply_s: float = 0.0):
        check_range("handshake_s", handshake_s, 0, 60)
        check_range("reply_s", reply_s, 0, 60)
        super().__init__((ADDRESS, 0), _Page)
        self.handshake_s, self.reply_s = handshake_s, reply_s
        self.url = f"https://{ADDRESS}:{self.server_port}"
        self.reset()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            opened.callback(self.server_close)
            folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="casebook-"))
            authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
            self.folder = Path(folder)
            self.ca_file = self.folder / "ca.pem"
            authority.cert_pem.write_to_path(self.ca_file)
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            issued = authority.issue_cert(ADDRESS, key_type=trustme.KeyType.ECDSA)
            issued.configure_cert(self._context)
            serving = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
            serving.start()
            opened.callback(serving.join)
            opened.callback(self.shutdown)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def reset(self) -> None:
        """Set the counters to zero."""
        self.in_hand, self.requests = _Meter(), _Meter()

    def counters(self) -> dict[str, int]:
        """Return what the server counted since the start or the last reset.

        `handshakes` and `requests` that were begun, and the most of each that the server handled at
        once, `peak_handshakes` and `peak_requests`. It handles a handshake from the client's first
        message until it answers, so a client that waits for the answer before its next handshake is
        never counted twice.
        """
        return {
            "handshakes": self.in_hand.in_all,
            "peak_handshakes": self.in_hand.peak,
            "requests": self.requests.in_all,
            "peak_requests": self.requests.peak,
        }

    def finish_request(self, request, client_address) -> None:
        """Wait, shake hands, and answer."""
        request.settimeout(PATIENCE_S)
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A client that does not trust us, or hangs up, has the right to.
        with contextlib.suppress(OSError):
            if not request.recv(1, socket.MSG_PEEK):
                return
            with self.in_hand:
                time.sleep(self.handshake_s)
            with self._context.wrap_socket(request, server_side=True) as connection:
                _Page(connection, client_address, self)


class _Page(http.server.BaseHTTPRequestHandler):
    """Every page says which one it is, as the lab server's do, and ends the connection."""

    server: SlowToShakeHands
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with self.server.requests:
            time.sleep(self.server.reply_s)
        body = json.dumps({"args": parse_qs(urlsplit(self.path).query)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass
