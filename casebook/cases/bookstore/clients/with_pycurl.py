"""A visit with libcurl (pycurl): over some connections of HTTP/1.1, or as streams of one of HTTP/2.

Neither protocol is written in Python here: HTTP/2 is nghttp2's, and TLS is OpenSSL's.
http://pycurl.io/docs/latest/curlmultiobject.html
"""

import io
import socket
import time
from collections import deque
from contextlib import nullcontext

import pycurl
from shelf import About, path

_SPOKEN = {
    pycurl.CURL_HTTP_VERSION_1_1: "http/1.1",
    pycurl.CURL_HTTP_VERSION_2_0: "h2",
}


def visit(spec, shelf):
    """Fetch the list of books, then `at_once` books at a time."""
    transfers = Transfers(spec, shelf)
    [(_, listed)] = transfers.get(["/"], {})
    books = {path(book): book for book in shelf.list(*listed)}
    for location, response in transfers.get(list(books), books):
        shelf.put(books[location], *response)


class Transfers:
    """Transfers that libcurl runs side by side."""

    def __init__(self, spec, shelf):
        self.spec, self.shelf, self.multi = spec, shelf, pycurl.CurlMulti()
        self.is_h2 = spec["protocol"] == "h2"
        self.at_once = max(spec["at_once"], spec["connections"])
        if self.is_h2:
            self.multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
        self.multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, spec["connections"])

    def open_socket(self, _, address):
        """Open a socket: libcurl would open its own, of which nothing in Python would know."""
        self.shelf.connecting()
        return socket.socket(address.family, address.socktype, address.protocol)

    def start(self, location):
        """Begin a transfer, and return it with its body."""
        transfer, body = pycurl.Curl(), io.BytesIO()
        version = pycurl.CURL_HTTP_VERSION_2TLS if self.is_h2 else pycurl.CURL_HTTP_VERSION_1_1
        transfer.setopt(pycurl.URL, self.spec["url"] + location)
        transfer.setopt(pycurl.CAINFO, self.spec["ca_file"])
        transfer.setopt(pycurl.HTTP_VERSION, version)
        transfer.setopt(pycurl.PIPEWAIT, self.is_h2)
        transfer.setopt(pycurl.OPENSOCKETFUNCTION, self.open_socket)
        transfer.setopt(pycurl.WRITEDATA, body)
        self.multi.add_handle(transfer)
        return transfer, body

    def get(self, paths, books):
        """Yield (path, response) for each path, once it is whole. books: by their paths."""
        remaining, open_ = deque(paths), {}
        while remaining or open_:
            while remaining and len(open_) < self.at_once:
                location = remaining.popleft()
                if location in books:
                    self.shelf.asking(books[location])
                transfer, body = self.start(location)
                open_[transfer] = location, body
            self.multi.perform()
            _, completed, failed = self.multi.info_read()
            for transfer, code, message in failed:
                location, _ = open_[transfer]
                with About(books[location]) if location in books else nullcontext():
                    raise pycurl.error(code, message)
            for transfer in completed:
                location, body = open_.pop(transfer)
                yield location, self.response(transfer, body)
            if open_ and not completed:
                self.wait()

    def response(self, transfer, body):
        """Return what the shelf needs to know of a transfer that is complete."""
        self.multi.remove_handle(transfer)
        self.shelf.speaks(_SPOKEN.get(transfer.getinfo(pycurl.INFO_HTTP_VERSION), "another"))
        size = transfer.getinfo(pycurl.CONTENT_LENGTH_DOWNLOAD)
        status = transfer.getinfo(pycurl.RESPONSE_CODE)
        return status, body.getvalue(), None if size < 0 else size

    def wait(self):
        """Wait until something arrives, or libcurl has something to do."""
        due_ms = self.multi.timeout()
        if self.multi.select(due_ms / 1000 if due_ms >= 0 else 1.0) < 0:
            time.sleep(0.001)  # there is nothing to wait for yet
