"""Local servers of every kind of trustworthiness, and proxies to reach them through.

Real sockets and real TLS, in threads of the test's own process.
"""

import contextlib
import datetime
import socket
import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import OpenSSL.crypto
import trustme
from cryptography.hazmat.primitives import serialization
from here import serving

from casebook.cases.certificates import hosts

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
            "servers": servers(folder, root, other),
        }


class Pages(hosts.Page):
    """/ answers with whose certificate was shown; /to?url= redirects. A connection is kept for who
    asks for that."""

    def do_GET(self):
        asked = urlsplit(self.path)
        headers = {} if "keep" in asked.query else {"Connection": "close"}
        if asked.path == "/to":
            self.answer({}, 302, Location=parse_qs(asked.query)["url"][0], **headers)
        else:
            over_tls = isinstance(self.connection, ssl.SSLSocket)
            self.answer({"shown": self.shown()} if over_tls else {}, **headers)


class Proxy(hosts.Tunnel):
    """Forwards http, too."""

    def do_GET(self):
        self.close_connection = True
        asked = urlsplit(self.path)
        with socket.create_connection((asked.hostname, asked.port), timeout=30) as there:
            path = self.path.partition(asked.netloc)[2] or "/"
            there.sendall(f"GET {path} HTTP/1.0\r\nHost: {asked.netloc}\r\n\r\n".encode())
            while data := there.recv(65536):
                self.wfile.write(data)


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
        "intermediate missing": showing(chain.private_key_pem, chain.cert_chain_pems[0]),
        "self-signed": showing(alone.private_key_pem, alone.cert_pem),
        "TLS 1.0 only": old_tls(presenting(valid), ssl.TLSVersion.TLSv1),
        "TLS 1.1 only": old_tls(presenting(valid), ssl.TLSVersion.TLSv1_1),
        "http": None,
    }


def presenting(certificate: trustme.LeafCert) -> ssl.SSLContext:
    """A server's context that shows a certificate with its chain."""
    return showing(certificate.private_key_and_cert_chain_pem)


def showing(*pems: trustme.Blob) -> ssl.SSLContext:
    """A server's context with a private key and certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with trustme.Blob(b"".join(pem.bytes() for pem in pems)).tempfile() as path:
        context.load_cert_chain(path)
    return context


def demanding(
    root: trustme.CA, issuer: trustme.CA, newest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED
) -> ssl.SSLContext:
    """A server's context that demands a client certificate of the root; its own is of `issuer`."""
    context = presenting(issuer.issue_cert(HOST))
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = newest
    root.configure_trust(context)
    return context


def old_tls(context: ssl.SSLContext, version: ssl.TLSVersion) -> ssl.SSLContext:
    """The context, restricted to one version that OpenSSL itself no longer likes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
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


def servers(folder: Path, root: trustme.CA, other: trustme.CA) -> dict[str, str]:
    """The files of a server's certificate with its key, by who issued it."""
    paths = {}
    for name, issuer in {"root": root, "other": other}.items():
        path = paths[name] = folder / f"server-of-{name}.pem"
        issuer.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(path)
    return {name: str(path) for name, path in paths.items()}


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # only pyOpenSSL encrypts with nothing
        form = OpenSSL.crypto.FILETYPE_PEM
        pkey = OpenSSL.crypto.load_privatekey(form, Path(alice).read_bytes())
        unlocked = OpenSSL.crypto.dump_privatekey(form, pkey, "aes-128-cbc", b"")
    (folder / "key-locked-with-nothing").write_bytes(unlocked)
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
