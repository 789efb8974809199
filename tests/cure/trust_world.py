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

import trustme
from here import serving
from trust_files import HOST, bundles, client_certificates, servers

from casebook.cases.certificates import hosts

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


@contextlib.contextmanager
def world(folder: Path) -> Iterator[dict]:
    """Run all the servers, for as long as the block runs.

    Gives what clients need to know of them and of the certificates in a folder, which fits into
    JSON.

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
    """/ answers with whose certificate was shown; /to?url= redirects.

    A connection is kept for who asks for that.
    """

    def do_GET(self):
        asked = urlsplit(self.path)
        headers = {} if "keep" in asked.query else {"Connection": "close"}
        if asked.path == "/to":
            self.answer({}, 302, Location=parse_qs(asked.query)["url"][0], **headers)
        else:
            over_tls = isinstance(self.connection, ssl.SSLSocket)
            self.answer({"shown": self.common_name()} if over_tls else {}, **headers)


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
