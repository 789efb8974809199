"""The clients: each gets n URLs, every one over a connection of its own, and returns the replies.

A class for each, made with `new_session` (what makes the session of each request, or None: the
library's own way); `get(urls, verify)` returns replies in the order of the URLs, each with
`status_code`, `reason` and `json()`, or the exception in its place.

Libraries, and `threading` too, are imported where they are used: this module is there before the
stack's first step, and what gets imported before gevent patches is the experiment.
"""

import sys


class Grequests(object):
    """All at once, as the author did it: `grequests.map` without a size."""

    def __init__(self, new_session):
        import grequests

        self.grequests = grequests
        self.new_session = new_session

    def get(self, urls, verify):
        grequests = self.grequests
        if self.new_session is None:
            rs = [grequests.get(url, verify=verify) for url in urls]
        else:
            new = self.new_session
            rs = [grequests.get(url, verify=verify, session=new()) for url in urls]
        return grequests.map(rs, exception_handler=lambda request, error: error)


class Requests(object):
    """One at a time: `requests.get` in a loop, up to the first that failed."""

    def __init__(self, new_session):
        import requests

        self.get_one = requests.get
        if new_session is not None:
            self.get_one = lambda *args, **kwargs: new_session().get(*args, **kwargs)

    def get(self, urls, verify):
        replies = []
        for url in urls:
            replies.append(self.reply(url, verify))
            if isinstance(replies[-1], Exception):
                break
        return replies

    def reply(self, url, verify):
        try:
            return self.get_one(url, verify=verify)
        except Exception as error:
            return error


class Threads(Requests):
    """A thread for each URL, and one `requests.get` in each: the post's script."""

    def get(self, urls, verify):
        import threading

        replies = [None] * len(urls)

        def fetch(page, url):
            replies[page] = self.reply(url, verify)

        threads = [threading.Thread(target=fetch, args=each) for each in enumerate(urls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return replies


def of_today(name):
    """What makes a client of clients_of_today.py, whose syntax Python 2.7 does not know."""

    def make(new_session):
        # As for the probe's other files: no bytecode beside them.
        writes_no_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        import clients_of_today

        sys.dont_write_bytecode = writes_no_bytecode
        return clients_of_today.CLIENTS[name]()

    return make


CLIENTS = {"grequests": Grequests, "requests": Requests, "threads": Threads}

OF_TODAY = ("httpx", "httpx-each", "aiohttp", "niquests", "urllib3", "pycurl", "curl_cffi")

CLIENTS.update((name, of_today(name)) for name in OF_TODAY)

#: Clients whose steps patch with gevent: nothing may be imported before those.
OF_GEVENT = ("grequests",)

#: Clients whose TLS is not Python's: their contexts and loads cannot be counted.
NOT_COUNTABLE = ("pycurl", "curl_cffi")
