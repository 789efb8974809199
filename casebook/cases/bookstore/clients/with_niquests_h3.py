"""requests' way of writing over HTTP/3: niquests, whose QUIC is qh3.

A server says with Alt-Svc that it speaks HTTP/3; here niquests is told so, and tries nothing else.
https://niquests.readthedocs.io/en/latest/user/advanced.html
"""

from urllib.parse import urlsplit

import niquests
from shelf import About, chunks, path


def visit(spec, shelf):
    """Fetch the list of books, then the books in chunks."""
    where = urlsplit(spec["url"])
    known = niquests.structures.QuicSharedCache(max_size=1)
    known[(where.hostname, where.port)] = (where.hostname, where.port)
    with niquests.Session(
        multiplexed=True, verify=spec["ca_file"], timeout=None, quic_cache_layer=known
    ) as session:

        def seen(response):
            shelf.speaks({30: "h3", 20: "h2"}.get(response.raw.version, "http/1.1"))
            return response.status_code, response.content, response.headers.get("Content-Length")

        listed = session.get(spec["url"] + "/")
        session.gather(listed)
        for chunk in chunks(shelf.list(*seen(listed)), spec["at_once"]):
            promises = []
            for book in chunk:
                with shelf.asking(book):
                    promises.append((book, session.get(spec["url"] + path(book))))
            session.gather()
            for book, response in promises:
                with About(book):
                    shelf.put(book, *seen(response))
