"""A client of the bookstore over one HTTP/2 connection, for an environment that has `h2`.

Reads {"port", "ca_file", "paths", "at_once"} from standard input, asks for so many paths at once
and for the next ones when these are answered, and prints one JSON object: protocol (ALPN's
choice), answers ([path, status, body] in the order of completion), goaway ([error code, last
stream] or null), refused (paths whose streams the server reset), failure.
"""

import json
import socket
import ssl
import sys

from h2 import connection, events, exceptions


def ask(port, ca_file, paths, at_once):
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols(["h2", "http/1.1"])
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    tls = context.wrap_socket(sock, server_hostname="127.0.0.1")
    seen = {"protocol": tls.selected_alpn_protocol(), "failure": ""}
    seen |= {"answers": [], "refused": [], "goaway": None}
    if seen["protocol"] != "h2":
        return seen
    http2 = connection.H2Connection()
    http2.initiate_connection()
    try:
        for start in range(0, len(paths), at_once):
            ask_some(tls, http2, paths[start : start + at_once], seen)
    except (OSError, exceptions.ProtocolError) as error:
        seen["failure"] = type(error).__name__
    return seen


def ask_some(tls, http2, paths, seen):
    open_ = {}
    for path in paths:
        stream = http2.get_next_available_stream_id()
        headers = [(":method", "GET"), (":path", path), (":scheme", "https"), (":authority", "x")]
        http2.send_headers(stream, headers, end_stream=True)
        open_[stream] = [path, None, ""]
    tls.sendall(http2.data_to_send())
    while open_:
        data = tls.recv(65536)
        if not data:
            raise ConnectionError
        for event in http2.receive_data(data):
            take(event, open_, seen, http2)
        tls.sendall(http2.data_to_send())


def take(event, open_, seen, http2):
    if isinstance(event, events.ResponseReceived):
        open_[event.stream_id][1] = int(dict(event.headers)[b":status"])
    elif isinstance(event, events.DataReceived):
        open_[event.stream_id][2] += event.data.decode()
        http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
    elif isinstance(event, events.StreamEnded):
        seen["answers"].append(open_.pop(event.stream_id))
    elif isinstance(event, events.ConnectionTerminated):
        seen["goaway"] = [event.error_code, event.last_stream_id]
        if event.error_code:  # today's Twisted leaves the connection open after that
            raise ConnectionError
    elif isinstance(event, events.StreamReset):
        seen["refused"].append(open_.pop(event.stream_id)[0])


if __name__ == "__main__":
    print(json.dumps(ask(**json.load(sys.stdin))))
