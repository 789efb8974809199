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
    connection = HTTPConnection(
        urlsplit(spec["url"]).netloc, secure=True, ssl_context=init_context(spec["ca_file"])
    )

    def read(stream=None):
        response = connection.get_response(stream)
        announced = response.headers.get(b"content-length", [None])[0]
        return response.status, response.read(), announced

    connection.request("GET", "/")
    # Without HTTP/2 it goes on with HTTP/1.1, and says nothing.
    shelf.speaks("h2" if type(connection._conn).__name__ == "HTTP20Connection" else "http/1.1")
    index = shelf.list(*read())
    ids, chunk = spec["ids"] or index, spec["at_once"]
    for i in range(0, len(ids), chunk):
        streams = []
        for book in ids[i : i + chunk]:
            shelf.asking(book)
            try:
                streams.append((book, connection.request("GET", path(book))))
            except Exception as error:
                raise BookFailed(book, error) from error
        for book, stream in streams:
            try:
                response = read(stream)
            except Exception as error:
                if connection._conn._sock is None:  # hyper has closed and forgotten all streams
                    error = HungUp(f"the server ended the connection (hyper: {error})")
                raise BookFailed(book, error) from error
            shelf.put(book, *response)
