"""A visit over HTTP/3 with the bare client on aioquic: books all at once, or some at a time."""

import asyncio

from bare_h3 import connected
from shelf import path


def visit(spec, shelf):
    """Fetch the list of books, then the books over one connection."""

    async def over_one_connection():
        window = spec.get("window_bytes", 0)
        async with connected(spec["url"], spec["ca_file"], window) as connection:
            shelf.speaks(connection.protocol)
            remaining = iter(shelf.list(*response_parts(await connection.request("/"))))

            async def one_after_the_other():
                for book in remaining:
                    with shelf.asking(book):
                        shelf.put(book, *response_parts(await connection.request(path(book))))

            await asyncio.gather(*(one_after_the_other() for _ in range(spec["at_once"])))

    asyncio.run(over_one_connection())


def response_parts(reply):
    """Return what the shelf needs to know of a reply."""
    return int(reply.headers[":status"]), reply.body, reply.headers.get("content-length")
