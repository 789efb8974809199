"""HTTP/1.1 over several kept connections with nothing but the standard library.

Each connection is a pipe: one book at a time goes through it, and the next one waits for it.
"""

import ssl
import threading
from http.client import HTTPSConnection
from urllib.parse import urlsplit

from shelf import path


def visit(spec, shelf):
    """Fetch the list of books, then each book through whichever pipe is free."""
    address = urlsplit(spec["url"])
    context = ssl.create_default_context(cafile=spec["ca_file"])

    def connect():
        return HTTPSConnection(address.hostname, address.port, context=context)

    def get(pipe, location):
        pipe.request("GET", location)
        response = pipe.getresponse()
        shelf.speaks({11: "http/1.1", 10: "http/1.0"}[response.version])
        return response.status, response.read(), response.getheader("Content-Length")

    first = connect()
    books = shelf.list(*get(first, "/"))
    remaining, lock, failures = iter(books), threading.Lock(), []

    def pump(pipe):
        try:
            while not failures:
                with lock:
                    book = next(remaining, None)
                    if book is None:
                        return
                    asking = shelf.asking(book)
                with asking:
                    response = get(pipe, path(book))
                with lock:
                    shelf.put(book, *response)
        except Exception as error:
            failures.append(error)

    pipes = [first] + [connect() for _ in range(min(spec["connections"], len(books)) - 1)]
    in_threads(pump, pipes)
    if failures:
        raise failures[0]


def in_threads(pump, pipes):
    """Run the pump in a daemon thread for each pipe, and wait for all.

    Daemons do not keep the process from leaving when the watch has ended the visit.
    """
    pumps = [threading.Thread(target=pump, args=(pipe,), daemon=True) for pipe in pipes]
    for thread in pumps:
        thread.start()
    for thread in pumps:
        thread.join()
