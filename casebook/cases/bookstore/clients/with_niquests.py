"""requests' way of writing over HTTP/2: a multiplexed niquests Session.

Its responses are promises until they are gathered.
https://niquests.readthedocs.io/en/latest/user/quickstart.html#multiplexed-connection
"""

import niquests
from shelf import BookFailed, path


def visit(spec, shelf):
    """Fetch the list of books, then the books in chunks."""
    with niquests.Session(
        multiplexed=True, disable_http3=True, verify=spec["ca_file"], timeout=None
    ) as session:

        def get(where):
            return session.get(spec["url"] + where)

        def seen(response):
            shelf.speaks({20: "h2", 11: "http/1.1", 10: "http/1.0"}[response.raw.version])
            return response.status_code, response.content, response.headers.get("Content-Length")

        response = get("/")
        session.gather(response)
        index = shelf.list(*seen(response))
        ids, chunk = spec["ids"] or index, spec["at_once"]
        for i in range(0, len(ids), chunk):
            promises = []
            for book in ids[i : i + chunk]:
                shelf.asking(book)
                promises.append((book, get(path(book))))
            session.gather()
            for book, response in promises:
                try:
                    answer = seen(response)
                except Exception as error:
                    raise BookFailed(book, error) from error
                shelf.put(book, *answer)
