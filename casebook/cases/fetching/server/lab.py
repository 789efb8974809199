"""The lab server itself: gevent's pywsgi, made patient, quiet and countable.

pywsgi has no time-out on handshakes or requests, so a client may stand still as long as it likes.
"""

import contextlib
from socket import IPPROTO_TCP, TCP_NODELAY

import gevent
from gevent import pywsgi, ssl

from casebook.cases.fetching.server.app import Application, Epoch
from casebook.cases.fetching.server.certificates import Certificates
from casebook.cases.fetching.server.limits import BACKLOG


class _Handler(pywsgi.WSGIHandler):
    """One connection's requests."""

    def get_environ(self) -> dict:
        return super().get_environ() | {"casebook.target": self.path}

    def _write_with_headers(self, data: bytes) -> None:
        # pywsgi writes the headers and the body apart: two TLS records and two system calls for
        # a few hundred bytes.
        self.headers_sent = True
        self.finalize_headers()
        if self.close_connection and self.request_version == "HTTP/1.1":
            # pywsgi closes without a word: a client would take the connection for one to keep, and
            # send its next request into the end of it.
            self.response_headers.append((b"Connection", b"close"))
        head = [b"HTTP/1.1 " + self.status]
        head.extend(b"%b: %b" % header for header in self.response_headers)
        self._sendall(b"\r\n".join(head) + b"\r\n\r\n" + data)


class LabServer(pywsgi.WSGIServer):
    """The lab server, which listens on 127.0.0.1:`port` (0: any free one) once it is started.

    Starting it raises OSError when the port cannot be had. It speaks TLS if there are certificates.
    room: connections at a time, None for any number; further clients wait in the kernel.
    """

    handler_class = _Handler

    def __init__(self, port: int, certificates: Certificates | None, room: int | None) -> None:
        super().__init__(
            ("127.0.0.1", port),
            Application(),
            backlog=BACKLOG,
            spawn=room or "default",
            log=None,
            error_log=None,
            environ={"SERVER_NAME": "127.0.0.1"},  # else pywsgi asks the resolver for it
            **({} if certificates is None else {"ssl_context": _context(certificates)}),
        )

    def do_read(self) -> tuple | None:
        """Accept a client, if one waits, and count its connection in the epoch of this moment."""
        accepted = super().do_read()
        if accepted is None:
            return None
        sock, address = accepted
        with contextlib.suppress(OSError):  # macOS refuses it for a client that has left already
            sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        epoch = self.application.epoch
        epoch.connections += 1
        return sock, address, epoch

    def wrap_socket_and_handle(self, client_socket, address, epoch: Epoch) -> None:
        """Shake hands with a client, count that in its connection's epoch, and answer it."""
        try:
            tls = self.wrap_socket(client_socket, **self.ssl_args)
        except OSError:  # SSLError is one. The client hung up, or does not trust us: its right
            return
        epoch.handshakes += 1  # that of its connection, not a later one
        with contextlib.closing(tls):
            self.handle(tls, address)

    def handle(
        self,
        sock,
        address,
        epoch: Epoch | None = None,  # noqa: ARG002  gevent passes on all that do_read returns
    ) -> None:
        """Answer a client's requests until the connection ends."""
        with contextlib.suppress(OSError):  # the client went away while it was being answered
            self.handler_class(sock, address, self).handle()

    def answer(self, question: str) -> dict:
        """Return the counters; the question "reset" sets them to zero.

        They include clients who connected or shook hands just before the question.
        """
        while not self.full() and (accepted := self.do_read()):
            self.do_handle(*accepted)
        gevent.idle()
        if question == "reset":
            self.application.epoch = Epoch()
        return self.application.epoch.report()


def _context(certificates: Certificates) -> ssl.SSLContext:
    """Return a server's TLS context, in gevent's class, so that a handshake stops nobody else."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.chain_file, certificates.key_file)
    tls.num_tickets = 0  # no client here resumes a session: each handshake is a full one
    return tls
