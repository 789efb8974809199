"""HTTPS hosts on this machine that keep connections open, and ask for client certificates.

    with Hosts(3) as hosts:
        requests.get(hosts.urls[0], verify=hosts.ca_file).json()  # {"shown": "nobody"}

Every host answers whose client certificate it was shown, without insisting on one. Beside them
are proxies that open tunnels to them, and a reception that makes all hosts close their idle
connections, as servers do when nothing has come for a while. All of it in threads of this
process, and only on 127.0.0.1.
"""

import contextlib
import http.server
import json
import select
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import trustme

from casebook.mistakes import check_range, for_readers

ADDRESS = "127.0.0.1"

#: Names in the certificate of every host.
NAMES = (ADDRESS, "localhost")

#: Who is shown to a host that is shown no certificate.
NOBODY = "nobody"

#: Nothing waits longer for the other end, in seconds.
PATIENCE_S = 30.0


class Hosts(contextlib.AbstractContextManager):
    """Hosts, proxies and a reception, running until the block ends.

    urls: of the hosts, each another port. proxies: URLs of HTTP proxies. reception: a POST to it
    closes the connections on which no host is at work. request_lines: the first line of each
    request that the proxies could read. ca_file: the authority to trust. folder:
    where that is, for further files.
    """

    @for_readers
    def __init__(self, count: int = 1, proxies: int = 0):
        check_range("count", count, 1, 1000)
        check_range("proxies", proxies, 0, 1000)
        self._counts = count, proxies

    def __enter__(self) -> "Hosts":
        count, proxies = self._counts
        with contextlib.ExitStack() as opened:
            folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="casebook-"))
            self.folder = Path(folder)
            self.ca_file = self.folder / "ca.pem"
            self._authority = trustme.CA()
            self._authority.cert_pem.write_to_path(self.ca_file)
            context = self._context()
            hosts = [opened.enter_context(Server(Page, context)) for _ in range(count)]
            tunnels = [opened.enter_context(Server(Tunnel)) for _ in range(proxies)]
            desk = opened.enter_context(Server(_Reception))
            desk.hosts = hosts
            self.urls, self.proxies = (
                [server.url for server in hosts],
                [server.url for server in tunnels],
            )
            self.reception, self._tunnels = desk.url, tunnels
            self._open = opened.pop_all()
        return self

    def __exit__(self, *exception) -> None:
        self._open.close()

    @property
    def request_lines(self) -> list[str]:
        """Return the request lines that the proxies got."""
        return [line for tunnel in self._tunnels for line in tunnel.request_lines]

    def client_certificate(self, name: str) -> str:
        """Return the path of a new client certificate, with its key; its common name is `name`."""
        issued = self._authority.issue_cert(f"{name}.example", common_name=name)
        path = self.folder / f"{name}.pem"
        issued.private_key_and_cert_chain_pem.write_to_path(path)
        return str(path)

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*NAMES).configure_cert(context)
        self._authority.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.num_tickets = 0  # each handshake is a full one
        return context


class Server(http.server.ThreadingHTTPServer):
    """A server on a free port, in threads of this process, until the block ends.

    handler: as of http.server, or any function of a connection; over TLS where there is a context.
    url: without a slash at its end.
    """

    request_queue_size = 1024

    def __init__(self, handler: Callable, context: ssl.SSLContext | None = None):
        super().__init__((ADDRESS, 0), handler)
        self.context = context
        self.url = f"http{'s' if context else ''}://{ADDRESS}:{self.server_port}"
        self.hosts: list[Server] = []
        self.request_lines: list[str] = []
        self._kept: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __exit__(self, *exception) -> None:
        self.shutdown()
        self._thread.join()
        self.hang_up()
        super().__exit__(*exception)

    def finish_request(self, request, client_address):
        """Shake hands in the connection's own thread, and answer it."""
        request.settimeout(PATIENCE_S)
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A client that does not trust us, or hangs up, has the right to.
        with contextlib.suppress(OSError):
            if self.context:  # the handshake belongs here, in the connection's own thread
                request = self.context.wrap_socket(request, server_side=True)
            with request:
                self._kept.add(request)
                try:
                    self.RequestHandlerClass(request, client_address, self)
                finally:
                    self._kept.discard(request)

    def hang_up(self) -> None:
        """Close every connection; a client finds that out when it uses the connection next."""
        for connection in list(self._kept):
            with contextlib.suppress(OSError):
                # Not that of TLS, which belongs to the connection's thread.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers in JSON, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Write nothing."""
        pass

    def answer(self, content: dict, status: int = 200, **headers: str) -> None:
        """Send a whole response."""
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:  # or a client's pool would send its next request into the end
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


class Page(Handler):
    """Every page says whose certificate was shown; the connection is kept."""

    def do_GET(self):
        """Say whose certificate was shown."""
        self.answer({"shown": self.common_name()})

    def common_name(self) -> str:
        """Return the common name of the client's certificate, or NOBODY."""
        certificate = self.connection.getpeercert() or {"subject": ()}
        parts = dict(pair for group in certificate["subject"] for pair in group)
        return parts.get("commonName", NOBODY)


class _Reception(Handler):
    """A POST closes what is open at the hosts."""

    def do_POST(self):
        self.close_connection = True
        for host in self.server.hosts:
            host.hang_up()
        self.answer({})


class Tunnel(Handler):
    """A proxy: opens a tunnel for CONNECT, and passes on what comes from either end."""

    def parse_request(self):
        """Note a request, and read it."""
        self.server.request_lines.append(self.raw_requestline.decode("latin-1").strip())
        return super().parse_request()

    def do_CONNECT(self):
        """Open a tunnel, and pass on what comes from either end."""
        self.close_connection = True
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as upstream:
            self.send_response(200)
            self.end_headers()
            peers = {self.connection: upstream, upstream: self.connection}
            while ready := select.select(list(peers), [], [], PATIENCE_S)[0]:
                for end in ready:
                    data = end.recv(65536)  # whole records of TLS, so that none is left inside
                    if not data:
                        return
                    peers[end].sendall(data)
