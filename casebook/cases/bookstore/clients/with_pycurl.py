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
    """Fetch the list of books, then so many books at a time."""
    multi, is_h2 = pycurl.CurlMulti(), spec["protocol"] == "h2"
    version = pycurl.CURL_HTTP_VERSION_2TLS if is_h2 else pycurl.CURL_HTTP_VERSION_1_1
    if is_h2:
        multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
    multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, spec["connections"])

    def open_socket(_, address):
        # libcurl would open its own, of which nothing in Python would know.
        shelf.connecting()
        return socket.socket(address.family, address.socktype, address.protocol)

    def start_transfer(location):
        transfer, body = pycurl.Curl(), io.BytesIO()
        transfer.setopt(pycurl.URL, spec["url"] + location)
        transfer.setopt(pycurl.CAINFO, spec["ca_file"])
        transfer.setopt(pycurl.HTTP_VERSION, version)
        transfer.setopt(pycurl.PIPEWAIT, is_h2)
        transfer.setopt(pycurl.OPENSOCKETFUNCTION, open_socket)
        transfer.setopt(pycurl.WRITEDATA, body)
        multi.add_handle(transfer)
        return transfer, body

    def get(paths):
        """Yield (path, response) for each path, once it is whole."""
        remaining, open_ = deque(paths), {}
        while remaining or open_:
            while remaining and len(open_) < max(spec["at_once"], spec["connections"]):
                location = remaining.popleft()
                if location in books:
                    shelf.asking(books[location])
                transfer, body = start_transfer(location)
                open_[transfer] = location, body
            multi.perform()
            _, completed, failed = multi.info_read()
            for transfer, code, message in failed:
                location, _ = open_[transfer]
                with About(books[location]) if location in books else nullcontext():
                    raise pycurl.error(code, message)
            for transfer in completed:
                location, body = open_.pop(transfer)
                multi.remove_handle(transfer)
                shelf.speaks(_SPOKEN.get(transfer.getinfo(pycurl.INFO_HTTP_VERSION), "another"))
                status = transfer.getinfo(pycurl.RESPONSE_CODE)
                size = transfer.getinfo(pycurl.CONTENT_LENGTH_DOWNLOAD)
                yield location, (status, body.getvalue(), None if size < 0 else size)
            if open_ and not completed:
                due_ms = multi.timeout()
                if multi.select(due_ms / 1000 if due_ms >= 0 else 1.0) < 0:
                    time.sleep(0.001)  # there is nothing to wait for yet

    books = {}
    [(_, listed)] = get(["/"])
    books.update((path(book), book) for book in shelf.list(*listed))
    for location, response in get(list(books)):
        shelf.put(books[location], *response)
