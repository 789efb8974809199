"""The article's second client: hyper, which sends a chunk of requests over one HTTP/2 connection
and then reads the responses in the order in which it asked.

https://hyper.readthedocs.io/en/latest/quickstart.html
"""

from urllib.parse import urlsplit

from hyper import HTTPConnection
from hyper.tls import init_context
from shelf import BookFailed, HungUp, path


def visit(spec, shelf):
    """Fetch the list of books, then the books in chunks."""
    connection = connect(spec, shelf)
    index = shelf.list(*read(connection))
    ids, chunk = spec["ids"] or index, spec["at_once"]
    for i in range(0, len(ids), chunk):
        asked = []
        for book in ids[i : i + chunk]:
            shelf.asking(book)
            asked.append((book, ask(connection, book)))
        for book, stream in asked:
            shelf.put(book, *answer(connection, book, stream))


def connect(spec, shelf):
    """A connection that was asked for the list of books."""
    context = init_context(spec["ca_file"])
    connection = HTTPConnection(urlsplit(spec["url"]).netloc, secure=True, ssl_context=context)
    connection.request("GET", "/")
    # Without HTTP/2 it goes on with HTTP/1.1, and says nothing.
    shelf.speaks("h2" if type(connection._conn).__name__ == "HTTP20Connection" else "http/1.1")
    return connection


def ask(connection, book):
    """Send the request for a book: the number of its stream."""
    try:
        return connection.request("GET", path(book))
    except Exception as error:
        raise BookFailed(book, error) from error


def answer(connection, book, stream):
    """Wait for the response on a stream, and read it."""
    try:
        return read(connection, stream)
    except Exception as error:
        if connection._conn._sock is None:  # hyper has closed and forgotten all streams
            error = HungUp(f"the server ended the connection (hyper: {error})")
        raise BookFailed(book, error) from error


def read(connection, stream=None):
    """A response: its status, its body, the length that was announced."""
    response = connection.get_response(stream)
    announced = response.headers.get(b"content-length", [None])[0]
    return response.status, response.read(), announced
