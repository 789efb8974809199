"""The article's first client: one requests Session, one request after the other, HTTP/1.1.

https://docs.python-requests.org/en/latest/user/advanced/#session-objects
"""

import requests
from shelf import path


def visit(spec, shelf):
    """Fetch the list of books, then each book."""
    session = requests.Session()

    def get(location):
        response = session.get(spec["url"] + location, verify=spec["ca_file"])
        shelf.speaks("http/1.1" if response.raw.version == 11 else "http/1.0")
        return response.status_code, response.content, response.headers.get("Content-Length")

    for book in shelf.list(*get("/")):
        with shelf.asking(book):
            shelf.put(book, *get(path(book)))
