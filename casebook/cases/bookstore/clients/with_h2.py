"""A visit with the bare h2 client, which asks again over a new connection when one is lost.

It asks for all books at once, or in chunks, of which the next is asked for when one is in (the
article's barrier, without its order).
"""

import ssl

import bare_h2
from shelf import BookFailed, path


def visit(spec, shelf):
    """Fetch the list of books, then the books over one connection."""

    class Connection(bare_h2.Connection):
        def request(self, location):
            if location in remaining:
                shelf.asking(remaining[location])
            return super().request(location)

    def connect():
        context = ssl.create_default_context(cafile=spec["ca_file"])
        new_connection = Connection(
            spec["url"], context, delays_small=spec.get("delays_small", False)
        )
        shelf.speaks(new_connection.protocol)
        new_connection.greet(spec.get("window_bytes", 0))
        return new_connection

    remaining = {}
    connection = connect()
    (reply,) = connection.fetch(["/"])
    remaining.update((path(book), book) for book in shelf.list(*response_parts(reply)))
    at_once = spec["at_once"]
    while remaining:
        count, paths = len(remaining), list(remaining)
        if spec["order"] == "chunks":
            paths = paths[:at_once]
        try:
            for reply in connection.fetch(paths, at_once):
                shelf.put(remaining.pop(reply.path), *response_parts(reply))
        except bare_h2.LOST as error:
            # Asking again does no harm to a book. A connection that brings none tries them one
            # at a time, so that the one which cannot be had is known by its name.
            brought = len(remaining) < count
            if at_once == 1 and not brought:
                raise BookFailed(remaining[next(iter(remaining))], error) from error
            at_once = spec["at_once"] if brought else 1
            connection.socket.close()
            connection = connect()  # should it fail, the books that were waited for are known
            shelf.waiting.clear()


def response_parts(reply):
    """Return what the shelf needs to know of a reply."""
    return int(reply.headers[":status"]), reply.body, reply.headers.get("content-length")
