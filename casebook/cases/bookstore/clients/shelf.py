"""The shelf that a client fills: what was asked for, what arrived and when, and what is refused.

A client is a module with `visit(spec, shelf)`; the spec is that of visit.py. All do the same:

    for book in shelf.list(*get("/")):
        with shelf.asking(book):
            shelf.put(book, *get(path(book)))
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
        self.book, self.cause, self.certain = book, cause, certain


class About:
    """A block in which whatever fails has failed with this book."""

    def __init__(self, book):
        self.book = book

    def __enter__(self):
        pass

    def __exit__(self, _, error, trace):
        if isinstance(error, Exception) and not isinstance(error, BookFailed):
            raise BookFailed(self.book, error) from error


class Shelf:
    """index: the ids that the store lists. bodies: id -> text. arrivals: [id, seconds] as read.

    Of the spec it knows the books to be asked for, the protocol that each response must have come
    over, and the order of reading: in the order asked, a book that is early waits for its turn.
    """

    def __init__(self, spec):
        self.ids, self.wanted = spec["ids"], spec["protocol"]
        self.is_in_turn = spec["order"] == "asked"
        self.protocol = None
        self.index, self.bodies, self.arrivals = [], {}, []
        self.early = {}  # id -> response, of those whose turn has not come
        self.waiting = {}  # id -> when it was asked for, in that order
        self.peak_in_flight = 0
        self.opened = []  # for each TCP connection, how many books were there before it
        self.start()

    def start(self):
        """Set the clock to zero."""
        self.began = self.last = clock()

    def connecting(self):
        """Note that a TCP connection is being opened."""
        self.opened.append(len(self.bodies))

    def speaks(self, protocol):
        """Note the protocol of a response or connection; refuse another than the wanted one."""
        self.protocol = protocol or "http/1.1"
        if self.protocol != self.wanted:
            raise WrongProtocol(
                f"the server answers {self.protocol} where {self.wanted} was asked for"
            )

    def list(self, status, body, announced=None):
        """Put the list of ids; returns the books to ask for."""
        self.index = json.loads(text_of(status, body, announced))
        self.last = clock()
        books = self.ids or self.index
        self.turns = iter(books)
        self.turn = next(self.turns, None)
        return books

    def asking(self, book):
        """Note that a book is being asked for; a block that is about this book."""
        self.waiting[book] = clock()
        if len(self.waiting) > self.peak_in_flight:
            self.peak_in_flight = len(self.waiting)
        return About(book)

    def put(self, book, *response):
        """Put the response about a book: its status, its bytes, its Content-Length if any.

        Raises BookFailed unless it is a whole book.
        """
        if not self.is_in_turn:
            self.read(book, *response)
            return
        self.early[book] = response
        while self.turn in self.early:
            self.read(self.turn, *self.early.pop(self.turn))
            self.turn = next(self.turns, None)

    def read(self, book, status, body, announced=None):
        """Read the JSON of a book, as the article's client does: it is part of what is measured."""
        try:
            text = text_of(status, body, announced)
            json.loads(text)
        except Exception as error:
            raise BookFailed(book, error, certain=True) from error
        self.waiting.pop(book, None)
        self.bodies[book] = text
        self.last = clock()
        self.arrivals.append([book, round(self.last - self.began, 6)])


def text_of(status, body, announced):
    """Return the text of a response. Raises WrongStatus and CutShort."""
    if status != 200:
        raise WrongStatus(f"status {status}")
    if announced is not None and len(body) != int(announced):
        raise CutShort(f"{len(body)} of {announced} bytes arrived")
    return body.decode("utf-8")


def path(book):
    """Return the path of a book in the store."""
    return f"/book?id={book}"


def chunks(books, size):
    """Split the books into lists of this size."""
    return [books[i : i + size] for i in range(0, len(books), size)]
