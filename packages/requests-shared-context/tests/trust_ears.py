"""Servers and proxies that keep what they receive, byte for byte.

They run in threads of the client's own process, beside any release of requests and urllib3 (Python
3.7 to today): `heard` says what came when all its connections are over.
"""

import select
import socket
import ssl
import threading
from contextlib import ExitStack, contextmanager, suppress

#: Nobody waits longer than this for anything, in seconds.
LIMIT = 20


class Ear:
    """One listening server, from `with` on.

    context: of its TLS, or None. forges: it is a proxy, which answers everything but CONNECT by
    itself. pause: a function that a proxy calls between CONNECT and its answer.

    heard: a list with one dict for each connection, {"tls": the version of TLS, "none" or
    "refused", "shown": the client's certificate or None, "requests": the request that came,
    in the clear or inside the TLS, with its body}.
    """

    def __init__(self, context=None, forges=False, pause=None):
        self.context, self.forges, self.pause = context, forges, pause
        self.heard, self._threads = [], []

    def __enter__(self):
        self._listening = socket.socket()
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen(100)
        self.port, self._last = self._listening.getsockname()[1], None
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()
        return self

    def __exit__(self, *_):
        # Whoever connected before this one is accepted before it.
        with socket.socket() as last:
            last.bind(("127.0.0.1", 0))
            self._last = last.getsockname()[1]
            last.connect(("127.0.0.1", self.port))
            self._accepting.join(LIMIT)
        for thread, connection in self._threads:
            thread.join(1)
            if thread.is_alive():  # a client that failed, and did not hang up
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            thread.join(LIMIT)
            assert not thread.is_alive(), "a connection does not end"
        self._listening.close()

    def _accept(self):
        while True:
            connection, (_, port) = self._listening.accept()
            if port == self._last:
                connection.close()
                return
            connection.settimeout(LIMIT)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append((thread, connection))
            thread.start()

    def _serve(self, connection):
        heard = {"tls": "none", "shown": None, "requests": []}
        self.heard.append(heard)
        with ExitStack() as closing:
            closing.callback(lambda: connection.close())
            try:
                if self.context:
                    heard["tls"] = "refused"
                    connection = self.context.wrap_socket(connection, server_side=True)
                    heard["tls"] = connection.version()
                    shown = connection.getpeercert()
                    if shown:
                        heard["shown"] = dict(each[0] for each in shown["subject"])["commonName"]
                self._answer(connection, heard)
            except OSError:
                pass

    def _answer(self, connection, heard):
        head = read_request(connection)
        if head:
            heard["requests"].append(head.decode("latin-1"))
            if self.forges and head.startswith(b"CONNECT "):
                host, _, port = head.split()[1].decode().rpartition(":")
                if self.pause:
                    self.pause()
                with socket.create_connection((host, int(port)), timeout=LIMIT) as there:
                    connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    relay(connection, there)
                return
            body = b"FORGED BY THE PROXY" if self.forges else b"THE SERVER"
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
                % (len(body), body)
            )


def read_request(connection):
    """The bytes of a request, with its body: fewer where they end."""
    heard, length = b"", None
    while length is None or len(heard) < length:
        data = connection.recv(65536)
        if not data:
            break
        heard += data
        head, end, _ = heard.partition(b"\r\n\r\n")
        if end and length is None:
            sizes = [
                int(line[15:])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            ]
            length = len(head) + 4 + sum(sizes)
    return heard


def relay(one, other):
    """Pass bytes on in both directions until one end is silent.

    In one thread, since a connection of TLS is not for two.
    """
    ends = {one: other, other: one}
    while True:
        for end in select.select(list(ends), [], [], LIMIT)[0] or [None]:
            data = end.recv(65536) if end else b""  # whole records of TLS: none is left inside
            if not data:
                return
            ends[end].sendall(data)


def server_context(certificate, demands=None, **settings):
    """Return the context of a server.

    certificate: the path of its certificate with its key. demands: the CA file of the client
    certificates that it demands. settings: attributes to set.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if demands:
        context.load_verify_locations(demands)
        context.verify_mode = ssl.CERT_REQUIRED
    for name, value in settings.items():
        setattr(context, name, value)
    return context


@contextmanager
def replaced(owner, name, value):
    """Something of a module or class, exchanged for a while."""
    stock = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, stock)
