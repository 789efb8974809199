"""requests' way of writing over HTTP/2: a multiplexed niquests Session.

Its responses are promises until they are gathered.
https://niquests.readthedocs.io/en/latest/user/quickstart.html#multiplexed-connection
"""

import niquests
from shelf import About, chunks, path

#: What it calls the versions of HTTP.
VERSIONS = {30: "h3", 20: "h2", 11: "http/1.1", 10: "http/1.0"}


def visit(spec, shelf):
    """Fetch the list of books, then the books in chunks."""
    fetch(spec, shelf, disable_http3=True)


def fetch(spec, shelf, **options):
    """Fetch the list of books, then the books in chunks; options: further ones of a Session."""
    with niquests.Session(
        multiplexed=True, verify=spec["ca_file"], timeout=None, **options
    ) as session:

        def response_parts(response):
            shelf.speaks(VERSIONS[response.raw.version])
            return response.status_code, response.content, response.headers.get("Content-Length")

        listed = session.get(spec["url"] + "/")
        session.gather(listed)
        for chunk in chunks(shelf.list(*response_parts(listed)), spec["at_once"]):
            promises = []
            for book in chunk:
                with shelf.asking(book):
                    promises.append((book, session.get(spec["url"] + path(book))))
            session.gather()
            for book, response in promises:
                with About(book):
                    shelf.put(book, *response_parts(response))
