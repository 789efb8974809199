"""A crowd of clients, each with one new connection, all at once.

    python crowd.py URL CA_FILE N PATH

prints one line of JSON: `wall_s`, `ok` (answers with status 200 and the right page), `failures` (of
what kind, how many) and `done_s`, the seconds from the common start to each complete answer.
CA_FILE is `-` over plain HTTP.

Cheap on purpose (one process, one TLS context, no client library), so that the server decides.
"""

import json
import resource
import sys
import time
from collections import Counter
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlsplit

import gevent
from gevent import socket, ssl


def fetch(address: tuple[str, int], context: ssl.SSLContext | None, path: str, page: int) -> str:
    """One GET on a new connection. Returns `ok` or what was wrong."""
    sock = socket.socket()
    try:
        sock.connect(address)
        if context is not None:
            sock = context.wrap_socket(sock, server_hostname=address[0])
        sock.sendall(
            f"GET {path}?page={page} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n\r\n".encode()
        )
        with HTTPResponse(sock) as response:
            response.begin()
            body = response.read()
    finally:
        sock.close()
    if response.status != 200:
        return f"status {response.status}"
    return "ok" if json.loads(body)["args"] == {"page": [str(page)]} else "wrong page"


def crowd(url: str, ca_file: str | None, n: int, path: str) -> dict:
    """Send `n` clients at once; see the module for what is returned."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    address = (urlsplit(url).hostname, urlsplit(url).port)
    context = None
    if ca_file is not None:
        # Not ssl.create_default_context: unpatched, that makes a context of the standard library,
        # whose sockets block the loop, and this crowd would queue up one by one.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(ca_file)
    outcomes: Counter[str] = Counter()
    done_s = []

    def client(page: int) -> None:
        try:
            outcome = fetch(address, context, path, page)
        except (OSError, HTTPException) as error:
            outcome = type(error).__name__
        outcomes[outcome] += 1
        done_s.append(time.perf_counter() - start)

    start = time.perf_counter()
    gevent.joinall([gevent.spawn(client, page) for page in range(n)])
    wall_s = time.perf_counter() - start
    return {
        "wall_s": wall_s,
        "ok": outcomes.pop("ok", 0),
        "failures": dict(outcomes),
        "done_s": done_s,
    }


if __name__ == "__main__":
    url, ca_file, n, path = sys.argv[1:]
    print(json.dumps(crowd(url, None if ca_file == "-" else ca_file, int(n), path)))
