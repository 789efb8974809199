"""Pages with a driver that makes its own context, as those of databases do.

Over a connection for four pages, then over the next; and over three that are kept.
"""

import os
import socket
import ssl
from urllib.parse import urlsplit

URL = urlsplit(os.environ["SITE"])
REQUEST = f"GET {URL.path} HTTP/1.1\r\nHost: {URL.netloc}\r\n\r\n".encode()


class Connection:
    def __init__(self):
        plain = socket.create_connection((URL.hostname, URL.port))
        context = ssl.create_default_context()
        self.socket = context.wrap_socket(plain, server_hostname=URL.hostname)
        self.file = self.socket.makefile("rb")

    def request_page(self):
        self.socket.sendall(REQUEST)
        assert b" 200 " in self.file.readline()
        lines = iter(self.file.readline, b"\r\n")
        headers = dict(line.decode().lower().split(":", 1) for line in lines)
        self.file.read(int(headers["content-length"]))

    def close(self):
        self.file.close()
        self.socket.close()


def with_a_connection_each():
    for _ in range(6):
        connection = Connection()
        for _ in range(4):
            connection.request_page()
        connection.close()


def with_three_connections():
    pool = [Connection() for _ in range(3)]
    for _ in range(4):
        for connection in pool:
            connection.request_page()


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_connection_each,
    "kept": with_three_connections,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
