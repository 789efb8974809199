"""The first words of a connection: which protocol a server chooses, and what its SETTINGS allow.

Frames and settings are those of RFC 9113, sections 3.4, 4.1 and 6.5.
"""

import socket
import ssl
import struct
from dataclasses import dataclass
from pathlib import Path

from casebook.errors import ServerFailed

#: What a client sends first: the preface, and SETTINGS that change nothing.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_SETTINGS = 0x4
_MAX_CONCURRENT_STREAMS = 0x3
_LONGEST_S = 10.0


@dataclass(frozen=True)
class Greeting:
    """`protocol`: the server's choice of "h2" and "http/1.1", None when it chose nothing.
    `max_streams`: over h2, the most requests that a connection may have open; None for no limit."""

    protocol: str | None
    max_streams: int | None = None


def greet(port: int, ca_file: Path, named: bool = True) -> Greeting:
    """Connect to 127.0.0.1:`port` as a client that speaks both protocols, and ask one thing.

    named: the certificate is for this address. Raises ServerFailed when the server cannot be
    trusted, or does not speak what it chose.
    """
    context = ssl.create_default_context(cafile=ca_file)
    context.check_hostname = named
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=_LONGEST_S) as tcp,
            context.wrap_socket(tcp, server_hostname="127.0.0.1") as tls,
        ):
            protocol = tls.selected_alpn_protocol()
            if protocol == "h2":
                return Greeting(protocol, _max_streams(tls))
            _ask_once(tls)
            return Greeting(protocol)
    except OSError as error:
        raise ServerFailed(f"the server on port {port} greets nobody: {error}") from error


def _max_streams(tls: ssl.SSLSocket) -> int | None:
    tls.sendall(_PREFACE)
    head = _read(tls, 9)
    length, kind = int.from_bytes(head[:3], "big"), head[3]
    if kind != _SETTINGS:
        raise ServerFailed(f"the server begins HTTP/2 with a frame of type {kind}, not SETTINGS")
    return dict(struct.iter_unpack(">HI", _read(tls, length))).get(_MAX_CONCURRENT_STREAMS)


def _ask_once(tls: ssl.SSLSocket) -> None:
    tls.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    line = _read(tls, 12)
    if line != b"HTTP/1.1 200":
        raise ServerFailed(f"the server answers HTTP/1.1 with {line!r}")


def _read(tls: ssl.SSLSocket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = tls.recv(length - len(data))
        if not more:
            raise ServerFailed("the server closed the connection while it was greeted")
        data += more
    return data
