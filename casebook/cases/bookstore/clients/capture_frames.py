"""Ask a server over HTTP/2 and keep every byte that goes either way: one JSON object in, one out.

In: {"url", "ca_file", "paths": [path, ...], "at_once"}. Asks for the paths over one connection with
the bare h2 client, and leaves with a GOAWAY, as RFC 9113, 6.8 wants it.

Out: {"chunks": [[seconds since the first, "client" or "server", hexadecimal], ...] in the order
sent or received, "replies": [{"path", "status", "body"}] in the order complete, "failure": null
or a text}. What TLS adds is not in the chunks.
"""

import json
import sys
import time

import bare_h2

_PATIENCE_S = 15


class Tap:
    """A socket that keeps what goes through it."""

    def __init__(self, socket):
        self.socket, self.chunks = socket, []

    def keep(self, sender, data):
        self.chunks.append([time.perf_counter(), sender, data.hex()])

    def sendall(self, data):
        if data:
            self.keep("client", data)
            self.socket.sendall(data)

    def recv(self, most):
        data = self.socket.recv(most)
        self.keep("server", data)
        return data


def capture(spec):
    connection = bare_h2.Connection(spec["url"], spec["ca_file"])
    if connection.protocol != "h2":
        spoken = connection.protocol or "no protocol"
        raise bare_h2.Broken(f"the server chose {spoken}, so that there are no frames")
    connection.socket.settimeout(_PATIENCE_S)
    tap = connection.socket = Tap(connection.socket)
    connection.settle()
    replies = [
        {"path": reply.path, "status": int(reply.headers[":status"]), "body": reply.body.decode()}
        for reply in connection.fetch(spec["paths"], spec["at_once"])
    ]
    connection.h2.close_connection()
    tap.sendall(connection.h2.data_to_send())
    start = tap.chunks[0][0]
    chunks = [[round(at - start, 6), sender, data] for at, sender, data in tap.chunks]
    return {"chunks": chunks, "replies": replies}


if __name__ == "__main__":
    try:
        answer = dict(capture(json.load(sys.stdin)), failure=None)
    except Exception as error:
        answer = {"failure": f"{type(error).__name__}: {error}"}
    json.dump(answer, sys.stdout)
