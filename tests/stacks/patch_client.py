"""Runs inside a stack's environment (Python 2.7 to today) for tests/stacks/test_patch.py.

Arguments: port, then what to read through: "connection" (gevent_openssl's, once with recv and once
with recv_into), "requests" over that Connection, or "requests on pyOpenSSL" over pyOpenSSL's own.
Asks the server for each kind of ending and prints what came of it, as JSON.
"""

# ruff: noqa: UP031
import json
import socket
import sys

import gevent
import gevent.socket
import gevent_openssl
import gevent_openssl.SSL
import OpenSSL.SSL

ENDINGS = ["clean", "cut", "reset", "slow", "silent", "peek"]
PART = 1000


def read_with_recv(connection, size, flags=0):
    return connection.recv(size, flags)


def read_with_recv_into(connection, size, flags=0):
    room = bytearray(b"." * (size + 7))
    read = connection.recv_into(room, size, flags)
    assert bytes(room[read:]) == b"." * (len(room) - read)
    return bytes(room[:read])


def connect(port):
    sock = gevent.socket.create_connection(("127.0.0.1", port))
    sock.settimeout(0.4)
    context = OpenSSL.SSL.Context(OpenSSL.SSL.SSLv23_METHOD)
    connection = gevent_openssl.SSL.Connection(context, sock)
    connection.set_connect_state()
    connection.do_handshake()
    return connection


def described(error):
    if isinstance(error, socket.timeout):
        return "timeout"
    return "%s%r" % (type(error).__name__, tuple(error.args[:1]))


def outcome(port, ending, read):
    connection = connect(port)
    connection.sendall(ending.encode("ascii") + b"\n")
    data, end = b"", None
    if ending == "peek":
        # The flag is the one argument beside the size: the same bytes are there twice.
        ahead = read(connection, 10, socket.MSG_PEEK)
        data = read(connection, 10)
        return {"twice": ahead == data, "data": data.decode("ascii")}
    while end is None:
        try:
            part = read(connection, PART)
            assert isinstance(part, bytes) and len(part) <= PART
            data += part
            if not part:
                end = "end"
        except Exception as error:
            end = described(error)
    try:
        again = repr(read(connection, PART))
    except Exception as error:
        again = described(error)
    return {"length": len(data), "first": data[:12].decode("ascii"), "end": end, "again": again}


def through_requests(port):
    """What requests makes of the answers: bytes received, or the name of the error."""
    import grequests  # noqa: F401  (patches)
    import requests
    import urllib3
    import urllib3.contrib.pyopenssl

    urllib3.disable_warnings()
    urllib3.contrib.pyopenssl.inject_into_urllib3()
    found = {}
    for ending in ["clean", "cut"]:
        try:
            url = "https://127.0.0.1:%d/%s" % (port, ending)
            found[ending] = len(requests.get(url, verify=False, timeout=5).content)
        except requests.RequestException as error:
            found[ending] = type(error).__name__
    return found


def through_connection(port, read):
    """All endings at once, in greenlets, and how often another greenlet ran meanwhile."""
    ticks = []

    def tick():
        while True:
            ticks.append(1)
            gevent.sleep(0.01)

    ticking = gevent.spawn(tick)
    jobs = dict((ending, gevent.spawn(outcome, port, ending, read)) for ending in ENDINGS)
    found = dict((ending, job.get()) for ending, job in jobs.items())
    ticking.kill()
    return found, len(ticks)


def main(port, what):
    if what == "connection":
        return [through_connection(port, read) for read in (read_with_recv, read_with_recv_into)]
    if what == "requests":
        gevent_openssl.monkey_patch()
    return through_requests(port)


if __name__ == "__main__":
    json.dump(main(int(sys.argv[1]), sys.argv[2]), sys.stdout)
