"""Local servers of every kind of trustworthiness, and proxies to reach them through.

Real sockets and real TLS, in threads of the test's own process.
"""

import contextlib
import datetime
import json
import select
import socket
import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import OpenSSL.crypto
import trustme
from cryptography.hazmat.primitives import serialization
from here import Quiet, serving

HOST = "127.0.0.1"
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


@contextlib.contextmanager
def world(folder: Path) -> Iterator[dict]:
    """All the servers, for as long as the block runs: what clients need to know of them and of the
    certificates in a folder, which fits into JSON.

    urls: of servers, by their kind; proxies; demanding: servers that demand a client certificate of
    the root; certs: what clients may give as `cert`; paths: of bundles. The others, of which one
    test has need, are URLs too.
    """
    root, other = (trustme.CA(organization_name=name) for name in ("the root", "another"))
    kinds = contexts(root, other)
    with contextlib.ExitStack() as running:

        def url(handler: type, context: ssl.SSLContext | None) -> str:
            return running.enter_context(serving(handler, context))

        yield {
            "urls": {name: url(Pages, context) for name, context in kinds.items()},
            "proxies": {
                "http proxy": url(Proxy, None),
                "https proxy": url(Proxy, kinds["valid"]),
                "distrusted https proxy": url(Proxy, kinds["unknown issuer"]),
            },
            "demanding": {
                "demanding": url(Pages, demanding(root, root)),
                "demanding, unknown issuer": url(Pages, demanding(root, other)),
            },
            "demanding TLS 1.2": url(Pages, demanding(root, root, ssl.TLSVersion.TLSv1_2)),
            "proxy of another name": url(Proxy, kinds["wrong host"]),
            "hosts": [url(Pages, kinds["valid"]) for _ in range(10)],
            "certs": client_certificates(folder, root, other),
            "paths": bundles(folder, root, other),
        }


class Pages(Quiet):
    """/ answers with who asked; /to?url= redirects. One request for each connection."""

    protocol_version, timeout, disable_nagle_algorithm = "HTTP/1.1", 30, True

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
        if not isinstance(self.connection, ssl.SSLSocket):
            return None
        certificate = self.connection.getpeercert() or {"subject": ()}
        return dict(pair for group in certificate["subject"] for pair in group).get("commonName")


class Proxy(Quiet):
    """Forwards http, and opens a tunnel for CONNECT."""

    timeout, disable_nagle_algorithm = 30, True

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


def contexts(root: trustme.CA, other: trustme.CA) -> dict[str, ssl.SSLContext | None]:
    """What servers are made with, by their kind; None: of the one without TLS."""
    issue, chain = root.issue_cert, root.create_child_ca().issue_cert(HOST)
    alone = trustme.CA(organization_name="nobody's")
    valid, past, future = issue(HOST), NOW - 9 * DAY, NOW + 9 * DAY
    return {
        "valid": presenting(valid),
        "expired": presenting(issue(HOST, not_before=past, not_after=NOW - DAY)),
        "not yet valid": presenting(issue(HOST, not_before=NOW + DAY, not_after=future)),
        "wrong host": presenting(issue("elsewhere.example")),
        "unknown issuer": presenting(other.issue_cert(HOST)),
        "whole chain": presenting(chain),
        "intermediate missing": presenting(chain, chain.cert_chain_pems[:1]),
        "self-signed": showing(alone.private_key_pem.bytes() + alone.cert_pem.bytes()),
        "TLS 1.0 only": old_tls(presenting(valid), ssl.TLSVersion.TLSv1),
        "TLS 1.1 only": old_tls(presenting(valid), ssl.TLSVersion.TLSv1_1),
        "http": None,
    }


def demanding(
    root: trustme.CA, issuer: trustme.CA, newest: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    """A server's context that demands a client certificate of the root; its own is of `issuer`."""
    context = presenting(issuer.issue_cert(HOST))
    context.verify_mode = ssl.CERT_REQUIRED
    if newest:
        context.maximum_version = newest
    root.configure_trust(context)
    return context


def bundles(folder: Path, root: trustme.CA, other: trustme.CA) -> dict[str, str]:
    """The paths of what may be trusted, by its kind."""
    pem = root.cert_pem.bytes()
    # As certifi's: the one certificate that is needed, among others.
    more = [trustme.CA(organization_name=f"no. {n}").cert_pem.bytes() for n in range(3)]
    directory = folder / "directory"
    directory.mkdir()
    certificate = OpenSSL.crypto.load_certificate(OpenSSL.crypto.FILETYPE_PEM, pem)
    for path, content in {
        folder / "file": pem,
        folder / "other": other.cert_pem.bytes(),
        folder / "certifi": b"".join([*more, pem]),
        folder / "corrupt": pem.replace(b"A", b"?"),
        directory / f"{certificate.subject_name_hash():08x}.0": pem,
    }.items():
        path.write_bytes(content)
    names = ("certifi", "file", "other", "corrupt", "directory", "missing")
    return {name: str(folder / name) for name in names}


def client_certificates(
    folder: Path, root: trustme.CA, other: trustme.CA
) -> dict[str, str | list[str]]:
    """What clients may give as `cert`, good and bad: a path, or two (certificate, key)."""

    def write(name: str, issuer: trustme.CA) -> str:
        path = folder / f"{name}.pem"
        own = issuer.issue_cert(f"{name}.example", common_name=name)
        own.private_key_and_cert_chain_pem.write_to_path(path)
        return str(path)

    alice, bob = write("alice", root), write("bob", root)
    key = serialization.load_pem_private_key(Path(alice).read_bytes(), None)
    locked = folder / "locked-key"
    secret = serialization.BestAvailableEncryption(b"secret")
    locked.write_bytes(key.private_bytes(PEM, PKCS8, secret))
    return {
        "alice": alice,
        "bob": bob,
        "alice, in two files": [alice, alice],
        "a stranger": write("stranger", other),
        "bob with alice's key": [bob, alice],
        "alice with a locked key": [alice, str(locked)],
        "a missing key": [alice, str(folder / "missing")],
        "no certificate": str(folder / "file"),
    }


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
