"""The shelf that a client fills: what was asked for, what arrived and when, and what is refused.

Every client puts each response here, so that all of them check and read the same way.
"""

import json
import time

clock = time.perf_counter


class WrongStatus(Exception):
    """A response that is not a 200."""


class CutShort(Exception):
    """A body of fewer bytes than its server had announced."""


class HungUp(Exception):
    """The server ended the connection."""


class WrongProtocol(Exception):
    """The server does not speak what this client was to be measured with."""


class Stalled(BaseException):
    """No book arrived for too long. No Exception, so that no library takes it for its own."""


class BookFailed(Exception):
    """What went wrong, with the book that it went wrong with.

    certain: it is this book's own response that is wrong, and not one beside it.
    """

    def __init__(self, book, cause, certain=False):
        Exception.__init__(self, book, cause)
        self.book = book
        self.cause = cause
        self.certain = certain


class Shelf:
    """index: the ids that the store lists. bodies: id -> text. order: [id, seconds] as arrived.

    wanted: the protocol that each response must have come over, "h2" or "http/1.1".
    """

    def __init__(self, wanted):
        self.wanted = wanted
        self.protocol = None
        self.index = []
        self.bodies = {}
        self.order = []
        self.waiting = {}  # id -> when it was asked for, in that order
        self.peak_in_flight = 0
        self.began = self.last = clock()

    def start(self):
        """Set the clock to zero."""
        self.began = self.last = clock()

    def seconds(self):
        """Seconds since the start."""
        return clock() - self.began

    def speaks(self, protocol):
        """Note the protocol of a response or connection; refuse another than the wanted one."""
        self.protocol = protocol or "http/1.1"
        if self.protocol != self.wanted:
            raise WrongProtocol(
                f"the server answers {self.protocol} where {self.wanted} was asked for"
            )

    def list(self, status, body, announced=None):
        """Put the list of ids; returns it."""
        self.index = json.loads(self._text(status, body, announced))
        self.last = clock()
        return self.index

    def asking(self, book):
        """Note that a book is being asked for."""
        self.waiting[book] = clock()
        if len(self.waiting) > self.peak_in_flight:
            self.peak_in_flight = len(self.waiting)

    def put(self, book, status, body, announced=None):
        """Put the response about a book: its status, its bytes, its Content-Length if any.

        Raises BookFailed unless it is a whole book. As in the article, the client reads the
        JSON, so that reading it is part of what is measured.
        """
        try:
            text = self._text(status, body, announced)
            json.loads(text)
        except Exception as error:
            raise BookFailed(book, error, certain=True) from error
        self.waiting.pop(book, None)
        self.bodies[book] = text
        self.last = clock()
        self.order.append([book, round(self.last - self.began, 6)])

    def _text(self, status, body, announced):
        if status != 200:
            raise WrongStatus(f"status {status}")
        if announced is not None and len(body) != int(announced):
            raise CutShort(f"{len(body)} of {announced} bytes arrived")
        return body.decode("utf-8")


class InOrder:
    """Puts books on the shelf in the order asked: one that is early waits for those before it."""

    def __init__(self, shelf, ids):
        self.shelf = shelf
        self.ids = iter(ids)
        self.next = next(self.ids, None)
        self.early = {}

    def put(self, book, *response):
        """As Shelf.put, in turn."""
        self.early[book] = response
        while self.next in self.early:
            self.shelf.put(self.next, *self.early.pop(self.next))
            self.next = next(self.ids, None)


def putter(spec, shelf, ids):
    """How responses get on the shelf: as they are complete, or in the order asked for."""
    return InOrder(shelf, ids).put if spec["order"] == "asked" else shelf.put


def path(book):
    """Where a book is in the store."""
    return f"/book?id={book}"
