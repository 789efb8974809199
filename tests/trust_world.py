"""Local servers of every kind of trustworthiness, and proxies to reach them through.

Real sockets and real TLS, in threads of the test's own process. `World` starts them all; what
clients need to know of it is in `World.card()`, which fits into JSON.
"""

import contextlib
import datetime
import http.server
import ipaddress
import json
import select
import socket
import ssl
import threading
import warnings
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import OpenSSL.crypto
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from here import Quiet

HOST = "127.0.0.1"
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


class Server(http.server.ThreadingHTTPServer):
    """An HTTP or HTTPS server on a free port."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, handler: type, context: ssl.SSLContext | None = None):
        super().__init__((HOST, 0), handler)
        self.context = context
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http{'s' if self.context else ''}://{HOST}:{self.server_port}"

    def finish_request(self, request, client_address):
        # The handshake belongs here, in the connection's own thread.
        request.settimeout(30)
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context:
            with contextlib.suppress(OSError):
                with self.context.wrap_socket(request, server_side=True) as wrapped:
                    self.RequestHandlerClass(wrapped, client_address, self)
        else:
            self.RequestHandlerClass(request, client_address, self)

    def handle_error(self, request, client_address):
        pass  # a client that refuses our certificate is what these servers are for

    def __exit__(self, *exception):
        self.shutdown()
        super().__exit__(*exception)


class Pages(Quiet):
    """/ answers with who asked; /to?url= redirects. One request for each connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        asked = urlsplit(self.path)
        if asked.path == "/to":
            self.send_response(302)
            self.send_header("Location", parse_qs(asked.query)["url"][0])
            body = b""
        else:
            self.send_response(200)
            body = json.dumps({"shown": self._shown()}).encode()
        self.send_header("Content-Length", str(len(body)))
        if "keep" not in asked.query:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _shown(self) -> str | None:
        """The common name of the client's certificate."""
        if not self.server.context:
            return None
        certificate = self.connection.getpeercert() or {"subject": ()}
        return dict(pair for group in certificate["subject"] for pair in group).get("commonName")


class Proxy(Quiet):
    """Forwards http, and opens a tunnel for CONNECT."""

    def do_GET(self):
        asked = urlsplit(self.path)
        with socket.create_connection((asked.hostname, asked.port), timeout=30) as there:
            path = self.path.partition(asked.netloc)[2] or "/"
            there.sendall(f"GET {path} HTTP/1.0\r\nHost: {asked.netloc}\r\n\r\n".encode())
            while data := there.recv(65536):
                self.wfile.write(data)

    def do_CONNECT(self):
        host, _, port = self.path.partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as there:
            self.send_response(200)
            self.end_headers()
            self._relay(there)

    def _relay(self, there: socket.socket) -> None:
        ends = {self.connection: there, there: self.connection}
        while True:
            for end in select.select(list(ends), [], [], 30)[0] or [None]:
                data = end.recv(65536) if end else b""
                if not data:
                    return
                ends[end].sendall(data)
                while isinstance(end, ssl.SSLSocket) and end.pending():
                    ends[end].sendall(end.recv(65536))


class World(contextlib.ExitStack):
    """All the servers, running until the block ends. `folder` holds certificates."""

    def __init__(self, folder: Path):
        super().__init__()
        self.folder = folder
        self.root = trustme.CA(organization_name="the root")
        self.other = trustme.CA(organization_name="another")
        self.middle = self.root.create_child_ca()
        self.servers: dict[str, Server] = {}
        self.proxies: dict[str, Server] = {}

    def __enter__(self):
        super().__enter__()
        self._write_bundles()
        issue, chain = self.root.issue_cert, self.middle.issue_cert(HOST)
        valid, past, future = issue(HOST), NOW - 9 * DAY, NOW + 9 * DAY
        contexts = {
            "valid": presenting(valid),
            "expired": presenting(issue(HOST, not_before=past, not_after=NOW - DAY)),
            "not yet valid": presenting(issue(HOST, not_before=NOW + DAY, not_after=future)),
            "wrong host": presenting(issue("elsewhere.example")),
            "unknown issuer": presenting(self.other.issue_cert(HOST)),
            "whole chain": presenting(chain),
            "intermediate missing": presenting(chain, chain.cert_chain_pems[:1]),
            "self-signed": self_signed(),
            "TLS 1.0 only": old_tls(presenting(valid), ssl.TLSVersion.TLSv1),
            "TLS 1.1 only": old_tls(presenting(valid), ssl.TLSVersion.TLSv1_1),
        }
        for name, context in contexts.items():
            self.servers[name] = self.enter_context(Server(Pages, context))
        self.servers["http"] = self.enter_context(Server(Pages))
        for name, like in (("http proxy", "http"), ("https proxy", "valid"),
                           ("distrusted https proxy", "unknown issuer")):  # fmt: skip
            self.proxies[name] = self.enter_context(Server(Proxy, self.servers[like].context))
        return self

    def card(self) -> dict:
        """What clients need: urls, proxies and paths, by name."""
        files = ("certifi", "file", "other", "corrupt", "directory", "missing")
        return {
            "urls": {name: server.url for name, server in self.servers.items()},
            "proxies": {name: server.url for name, server in self.proxies.items()},
            "paths": {name: str(self.folder / name) for name in files},
        }

    def server_for_clients(
        self, issuer: trustme.CA | None = None, tls: ssl.TLSVersion | None = None
    ) -> Server:
        """Another server, which demands a client certificate of the root; its own is of `issuer`,
        or of the root too. tls: the newest version that it speaks."""
        context = presenting((issuer or self.root).issue_cert(HOST))
        context.verify_mode = ssl.CERT_REQUIRED
        if tls:
            context.maximum_version = tls
        self.root.configure_trust(context)
        return self.enter_context(Server(Pages, context))

    def proxy_of_another_name(self) -> Server:
        """Another https proxy, with a certificate of the root for a name that is not its own."""
        return self.enter_context(Server(Proxy, self.servers["wrong host"].context))

    def client_certificate(self, name: str, issuer: trustme.CA | None = None) -> str:
        """The path of a client certificate with its key; its common name is `name`."""
        path = self.folder / f"{name}.pem"
        own = (issuer or self.root).issue_cert(f"{name}.example", common_name=name)
        own.private_key_and_cert_chain_pem.write_to_path(path)
        return str(path)

    def client_certificates(self) -> dict[str, str | list[str]]:
        """What clients may give as `cert`, good and bad: a path, or two (certificate, key)."""
        alice, bob = (Path(self.client_certificate(name)) for name in ("alice", "bob"))
        key = serialization.load_pem_private_key(alice.read_bytes(), None)
        locked = self.folder / "locked-key"
        secret = serialization.BestAvailableEncryption(b"secret")
        locked.write_bytes(key.private_bytes(PEM, PKCS8, secret))
        return {
            "alice": str(alice),
            "bob": str(bob),
            "alice, in two files": [str(alice), str(alice)],
            "a stranger": self.client_certificate("stranger", self.other),
            "bob with alice's key": [str(bob), str(alice)],
            "alice with a locked key": [str(alice), str(locked)],
            "a missing key": [str(alice), str(self.folder / "missing")],
            "no certificate": str(self.folder / "file"),
        }

    def _write_bundles(self) -> None:
        root, other = self.root.cert_pem.bytes(), self.other.cert_pem.bytes()
        (self.folder / "file").write_bytes(root)
        (self.folder / "other").write_bytes(other)
        # As certifi's: the one certificate that is needed, among others.
        more = [trustme.CA(organization_name=f"no. {n}").cert_pem.bytes() for n in range(3)]
        (self.folder / "certifi").write_bytes(b"".join([*more, root]))
        (self.folder / "corrupt").write_bytes(root.replace(b"A", b"?"))
        directory = self.folder / "directory"
        directory.mkdir()
        certificate = OpenSSL.crypto.load_certificate(OpenSSL.crypto.FILETYPE_PEM, root)
        (directory / f"{certificate.subject_name_hash():08x}.0").write_bytes(root)


def self_signed() -> ssl.SSLContext:
    """A server's context that shows a certificate for HOST which nobody has issued."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    address = x509.IPAddress(ipaddress.ip_address(HOST))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(NOW - DAY).not_valid_after(NOW + DAY)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    private = key.private_bytes(PEM, PKCS8, serialization.NoEncryption())
    return showing(private + certificate.public_bytes(PEM))


def presenting(certificate: trustme.LeafCert, chain: list | None = None) -> ssl.SSLContext:
    """A server's context that shows a certificate, with its chain or only what is given."""
    blobs = certificate.cert_chain_pems if chain is None else chain
    return showing(b"".join(blob.bytes() for blob in [certificate.private_key_pem, *blobs]))


def showing(pem: bytes) -> ssl.SSLContext:
    """A server's context with a private key and certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with trustme.Blob(pem).tempfile() as path:
        context.load_cert_chain(path)
    return context


def old_tls(context: ssl.SSLContext, version: ssl.TLSVersion) -> ssl.SSLContext:
    """The context, restricted to one version that OpenSSL itself no longer likes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
    return context
