"""The article's second client: hyper, which sends requests in chunks over one HTTP/2 connection.

It reads the responses of a chunk in the order in which it asked.
https://hyper.readthedocs.io/en/latest/quickstart.html
"""

from urllib.parse import urlsplit

from hyper import HTTPConnection
from hyper.tls import init_context
from shelf import About, HungUp, chunks, path


def visit(spec, shelf):
    """Fetch the list of books, then the books in chunks."""
    connection = connect(spec, shelf)
    for chunk in chunks(shelf.list(*read(connection)), spec["at_once"]):
        streams = []
        for book in chunk:
            with shelf.asking(book):
                streams.append((book, connection.request("GET", path(book))))
        for book, stream in streams:
            with About(book):
                shelf.put(book, *read(connection, stream))


def connect(spec, shelf):
    """Open a connection, and ask it for the list of books."""
    context = init_context(spec["ca_file"])
    connection = HTTPConnection(urlsplit(spec["url"]).netloc, secure=True, ssl_context=context)
    connection.request("GET", "/")
    # Without HTTP/2 it goes on with HTTP/1.1, and says nothing.
    shelf.speaks("h2" if type(connection._conn).__name__ == "HTTP20Connection" else "http/1.1")
    return connection


def read(connection, stream=None):
    """Wait for a response: its status, its body, the length that was announced."""
    try:
        response = connection.get_response(stream)
        announced = response.headers.get(b"content-length", [None])[0]
        return response.status, response.read(), announced
    except Exception as error:
        if connection._conn._sock is None:  # hyper has closed and forgotten all streams
            raise HungUp(f"the server ended the connection (hyper: {error})") from None
        raise
