"""A visit with the bare h2 client, which asks again over a new connection when one is lost.

It reads in any of three orders: as completed, as asked, or as completed in chunks, of which the
next is asked for when one is in (the article's barrier, without its order).
"""

import bare_h2
from h2.exceptions import ProtocolError
from shelf import BookFailed, path

LOST = (bare_h2.Broken, ProtocolError, OSError)


def visit(spec, shelf):
    """Fetch the list of books, then the books over one connection."""

    class Connection(bare_h2.Connection):
        def ask(self, where):
            if where != "/":
                shelf.asking(where.partition("=")[2])
            return super().ask(where)

    def connect():
        made = Connection(spec["url"], spec["ca_file"])
        shelf.speaks(made.protocol)
        made.settle()
        return made

    connection = connect()
    (reply,) = connection.fetch(["/"])
    index = shelf.list(*seen(reply))
    left = {path(book): book for book in spec["ids"] or index}
    at_once = spec["at_once"]
    while left:
        before = len(left)
        paths = list(left)
        if spec["order"] == "chunks":
            paths = paths[:at_once]
        replies = connection.fetch(paths, at_once)
        if spec["order"] == "asked":
            replies = bare_h2.in_order_asked(paths, replies)
        try:
            for reply in replies:
                shelf.put(left[reply.path], *seen(reply))
                del left[reply.path]
        except LOST as error:
            # Asking again does no harm to a book. A connection that brings none tries them one
            # at a time, so that the one which cannot be had is known by its name.
            brought = len(left) < before
            if at_once == 1 and not brought:
                raise BookFailed(left[next(iter(left))], error) from error
            at_once = spec["at_once"] if brought else 1
            connection.socket.close()
            connection = connect()  # should it fail, the books that were waited for are known
            shelf.waiting.clear()


def seen(reply):
    """What the shelf wants to know of a reply."""
    return int(reply.headers[":status"]), reply.body, reply.headers.get("content-length")
