"""Two loops over one HTTP/2 connection, as alike as they can be: only whom they wait for differs.

As a client they are one, and the order of reading chooses the loop.
"""

import ssl

import bare_h2
from shelf import path as path_of
from with_h2 import response_parts


def in_order(connection, paths, keep):
    pending = {}
    for path in paths:
        stream = connection.request(path)
        pending[stream] = path
    for stream in list(pending):
        body = connection.response(stream)
        path = pending.pop(stream)
        keep(path, body)


def as_completed(connection, paths, keep):
    pending = {}
    for path in paths:
        stream = connection.request(path)
        pending[stream] = path
    while pending:
        stream, body = connection.next_response()
        path = pending.pop(stream)
        keep(path, body)


class Connection(bare_h2.Connection):
    """The bare client's, with a way to wait for one response, and a way to wait for any."""

    def __init__(self, url, context):
        super().__init__(url, context)
        self.whole = {}

    def response(self, stream):
        """Wait for the response on this stream, whatever else comes in meanwhile."""
        while stream not in self.whole:
            self.whole.update(self.listen())
        return self.whole.pop(stream)

    def next_response(self):
        """Wait for any response: the number of its stream, and its body."""
        while not self.whole:
            self.whole.update(self.listen())
        return self.whole.popitem()


def visit(spec, shelf):
    """Fetch the list of books, then the books with the loop for the order."""
    connection = Connection(spec["url"], ssl.create_default_context(cafile=spec["ca_file"]))
    shelf.speaks(connection.protocol)
    connection.greet()
    (listed,) = connection.fetch(["/"])
    books = {path_of(book): book for book in shelf.list(*response_parts(listed))}
    loop = in_order if spec["order"] == "asked" else as_completed
    loop(
        connection, books, lambda location, body: shelf.put(books[location], *response_parts(body))
    )
