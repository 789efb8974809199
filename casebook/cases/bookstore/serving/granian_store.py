"""The store on Granian: python granian_store.py OPTIONS (JSON). The same answers as on Twisted."""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from urllib.parse import parse_qs

import owner
from books import Books, Counters
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.server.embed import Server

_CHECK_S = 0.01
_HEADERS = [("content-type", "application/json")]

options = json.loads(sys.argv[1])
address = options.get("interface", "127.0.0.1")
books = Books(options)
counters = Counters()
in_flight = {}  # client's address: requests that are not answered yet


async def answer(scope, response):
    """Answer a request, and count it."""
    client = scope.client
    in_flight[client] = in_flight.get(client, 0) + 1
    counters.request(client, f"HTTP/{scope.http_version}", in_flight[client])
    try:
        await response()  # what the client sent along is read, and ignored
        status, body = await page(scope)
    finally:
        in_flight[client] -= 1
        if not in_flight[client]:
            del in_flight[client]
    response.response_bytes(status, _HEADERS, b"" if scope.method == "HEAD" else body)


async def page(scope):
    """Return the status and the body for a request."""
    if scope.path not in ("/", "/book"):
        return 404, b""
    if scope.method not in ("GET", "HEAD"):
        return 405, b""
    if scope.path == "/":
        return 200, books.index()
    query = parse_qs(scope.query_string, keep_blank_values=True)
    number = books.find(query.get("id", []))
    if number is None:
        return 404, b""
    wait_s = books.wait_s(number)
    if wait_s:
        await asyncio.sleep(wait_s)
    return 200, books.book(number)


def free_port():
    """Find a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def accepts(port):
    """Check whether somebody listens at a port."""
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


async def ready(port, serving):
    """Wait until the server answers, and tell the owner."""
    while not accepts(port):
        if serving.done():
            owner.report(error=f"Granian ended before it answered on port {port}")
            os._exit(1)
        await asyncio.sleep(_CHECK_S)
    owner.report(port=port)


async def main():
    """Serve until the owner ends."""
    owner.attend(options["folder"], counters)
    port = options["port"] or free_port()
    if accepts(port):
        owner.report(error=f"port {port} is in use")
        return
    server = Server(
        answer,
        address=address,
        port=port,
        interface=Interfaces.RSGI,
        http=HTTPModes.http1 if options["http1_only"] else HTTPModes.auto,
        backlog=options["backlog"],
        websockets=False,
        log_enabled=False,
        ssl_cert=Path(options["chain_file"]),
        ssl_key=Path(options["key_file"]),
        ssl_protocol_min=SSLProtocols.tls12,
    )
    serving = asyncio.ensure_future(server.serve())
    await ready(port, serving)
    await serving


asyncio.run(main())
