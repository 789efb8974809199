"""The same library over either protocol: httpx, one request at a time or many at once.

Its Client makes one connection; its AsyncClient over HTTP/1.1 one for each request in flight.
https://www.python-httpx.org/http2/
"""

import asyncio
import ssl

import httpx
from sharing import share
from shelf import path

PROTOCOLS = {"HTTP/2": "h2", "HTTP/1.1": "http/1.1", "HTTP/1.0": "http/1.0"}


def visit(spec, shelf):
    """Fetch the list of books, then each book."""
    at_once = spec["at_once"] if spec["protocol"] == "h2" else spec["connections"]
    options = {
        "base_url": spec["url"],
        "http2": spec["protocol"] == "h2",
        "verify": ssl.create_default_context(cafile=spec["ca_file"]),
        "timeout": None,
        "limits": httpx.Limits(max_connections=spec["connections"]),
    }
    if at_once == 1:
        one_at_a_time(shelf, options)
    else:
        asyncio.run(many_at_once(shelf, options, at_once))


def response_parts(shelf, response):
    """Return what the shelf needs to know of a response."""
    shelf.speaks(PROTOCOLS[response.http_version])
    return response.status_code, response.content, response.headers.get("content-length")


def one_at_a_time(shelf, options):
    """Send each request after the response to the one before it."""
    with httpx.Client(**options) as client:
        for book in shelf.list(*response_parts(shelf, client.get("/"))):
            with shelf.asking(book):
                shelf.put(book, *response_parts(shelf, client.get(path(book))))


async def many_at_once(shelf, options, at_once):
    """Let as many readers as may ask at once share the list of books."""
    async with httpx.AsyncClient(**options) as client:

        async def get(location):
            return response_parts(shelf, await client.get(location))

        await share(shelf, shelf.list(*await get("/")), at_once, get)
