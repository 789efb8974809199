"""What every server of the store answers, and what it counted. Runs inside the environments."""

import json


class Books:
    """The books, as the article's server keeps them: each answer is made when it is asked for."""

    def __init__(self, options):
        with open(options["books"], encoding="utf-8") as file:
            self.books = json.load(file)
        self.delay_s, self.slow = options["delay_s"], options["slow"]
        self.least_bytes = options.get("least_bytes", 0)

    def index(self):
        """Return the ids as JSON."""
        return json.dumps(list(self.books)).encode("utf-8")

    def find(self, numbers):
        """Return the one book's id from the values of `id` in the query, or None."""
        return numbers[0] if len(numbers) == 1 and numbers[0] in self.books else None

    def book(self, number):
        """Return a book as JSON, with blanks behind it if there must be more bytes."""
        return json.dumps(self.books[number]).encode("utf-8").ljust(self.least_bytes)

    def wait_s(self, number):
        """Return seconds before this book is answered; None: until the owner lets it go."""
        return self.slow.get(number, self.delay_s)


class Counters:
    """What the server was asked since the last reset; a connection counts once it asks."""

    def __init__(self):
        self.reset()

    def reset(self):
        """Forget what was counted."""
        self._clients, self._requests, self._peak_streams, self._protocols = set(), 0, 0, {}

    def request(self, client, protocol, streams):
        """Count a request.

        streams: how many requests of this connection are open now, this one among them.
        """
        self._clients.add(client)
        self._requests += 1
        self._peak_streams = max(self._peak_streams, streams)
        self._protocols[protocol] = self._protocols.get(protocol, 0) + 1

    def report(self):
        """Return what was counted."""
        return {
            "connections": len(self._clients),
            "requests": self._requests,
            "peak_streams": self._peak_streams,
            "protocols": dict(self._protocols),
        }
