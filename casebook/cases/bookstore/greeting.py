"""The first words of a connection: which protocol a server chooses, and what its SETTINGS allow.

Frames and settings are those of RFC 9113, sections 3.4, 4.1 and 6.5.
"""

import ssl
import struct
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

from casebook.errors import ServerFailed

#: What a client sends first: the preface, and SETTINGS that change nothing.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_SETTINGS = 0x4
_MAX_CONCURRENT_STREAMS = 0x3
_LONGEST_S = 10.0


def greet(port: int, ca_file: Path, named: bool = True) -> tuple[str | None, int | None]:
    """Connect to 127.0.0.1:`port` as a client that speaks both protocols: the server's choice of
    "h2" and "http/1.1" (None: it chose nothing), and over h2 the most requests that a connection
    may have open (None: no limit).

    named: the certificate is for this address. Raises ServerFailed when the server cannot be
    trusted, or does not speak what it chose.
    """
    context = ssl.create_default_context(cafile=ca_file)
    context.check_hostname = named
    context.set_alpn_protocols(["h2", "http/1.1"])
    connection = HTTPSConnection("127.0.0.1", port, context=context, timeout=_LONGEST_S)
    try:
        connection.connect()
        protocol = connection.sock.selected_alpn_protocol()
        if protocol == "h2":
            return protocol, _max_streams(connection.sock)
        connection.request("GET", "/")
        status = connection.getresponse().status
        if status != 200:
            raise ServerFailed(f"the server answers HTTP/1.1 with status {status}")
        return protocol, None
    except (OSError, HTTPException) as error:
        raise ServerFailed(f"the server on port {port} greets nobody: {error}") from error
    finally:
        connection.close()


def _max_streams(tls: ssl.SSLSocket) -> int | None:
    tls.sendall(_PREFACE)
    with tls.makefile("rb") as heard:
        head = heard.read(9)
        if head[3:4] != bytes([_SETTINGS]):
            raise ServerFailed(f"the server begins HTTP/2 with {head!r}, and not with SETTINGS")
        settings = struct.iter_unpack(">HI", heard.read(int.from_bytes(head[:3], "big")))
        return dict(settings).get(_MAX_CONCURRENT_STREAMS)
