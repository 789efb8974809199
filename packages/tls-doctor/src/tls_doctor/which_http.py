"""Which HTTP the clients speak, and which a server offers."""

from __future__ import division, print_function

from .basis import MOST_REQUESTS, clock
from .client_sessions import GeventHttpClient, Httpx
from .clients import Client, clients_with_sessions, topmost
from .left_behind import try_import
from .wording import describe, print_line

HTTP_NAMES = {10: "HTTP/1.0", 11: "HTTP/1.1", 20: "HTTP/2", 30: "HTTP/3"}


def check_http(url, imported):
    """Return which HTTP each client speaks with a URL.

    Two announced HEADs each, none redirected. What is said of the URL is without its password.
    Without a URL, nobody is asked.
    """
    results = {"url": None, "offers": None, "clients": [], "requests": 0}
    if not url:
        return results
    host, port, secret = parts_of(url)
    results["url"] = public = url.replace(secret, "", 1)
    if url.startswith("https://"):
        print_line("connecting to %s: which protocols does it offer? (no request)" % host)
        results["offers"] = offered(host, port)
    clients = clients_with_sessions()
    names = imported or set(client.module for client in clients if try_import(client.module))
    speakers = [client for client in clients if client.module in topmost(names)]
    # geventhttpclient speaks HTTP/1.1 alone.
    speakers = [client for client in speakers if client.kind is not GeventHttpClient]
    if "httpx" in names and try_import("h2"):
        speakers.append(
            Client("httpx with http2=True", module="httpx", kind=Httpx, options={"http2": True})
        )
    for speaker in speakers:
        row = {"client": speaker.name, "version": None, "ms": [], "error": None}
        results["clients"].append(row)
        try:
            session = speaker.session()
            for _ in range(2):
                results["requests"] += 1
                numbers = (public, speaker.name, results["requests"], MOST_REQUESTS)
                print_line("asking %s with %s (request %d of at most %d)" % numbers)
                start = clock()
                version = session.fetch(url, "HEAD", timeout=5)[3]
                row["version"] = HTTP_NAMES.get(version, str(version))
                row["ms"].append(round(1000 * (clock() - start), 1))
            session.close()
        except Exception as error:
            row["error"] = describe(error).replace(secret or "\0", "")
    return results


def parts_of(url):
    """Return (host, port, "user:password@" or "")."""
    try:
        from urllib.parse import urlsplit
    except ImportError:
        from urlparse import urlsplit
    parts = urlsplit(url)
    secret, separator, _ = parts.netloc.rpartition("@")
    return parts.hostname, parts.port or 443, secret + separator


def offered(host, port):
    """Return the protocol that a server chooses when h2 and http/1.1 are offered to it, or None.

    Its certificate is not looked at: nothing is sent after the handshake.
    """
    import socket
    import ssl

    try:
        context = ssl.SSLContext(getattr(ssl, "PROTOCOL_TLS_CLIENT", ssl.PROTOCOL_SSLv23))
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2", "http/1.1"])
        plain = socket.create_connection((host, port), 5)
        try:
            tls = context.wrap_socket(plain, server_hostname=host)
            return tls.selected_alpn_protocol() or "http/1.1"
        finally:
            plain.close()
    except Exception:
        return None
