"""What the bookstore's clients and columns are called, and their colours."""

from casebook import colours, words

words.call(
    "client",
    {
        "requests-py37": "requests, Python 3.7",
        "requests-2.10-py37": "requests 2.10, Python 3.7",
        "requests-2.31-py37": "requests 2.31, Python 3.7",
        "httpx-h1": "httpx, HTTP/1.1",
        "httpx-h2": "httpx, HTTP/2",
        "pycurl-h1": "pycurl, HTTP/1.1",
        "pycurl-h2": "pycurl, HTTP/2",
        "bare-h2": "bare h2",
        "bare-h3": "bare h3",
        "curl-h3": "curl, HTTP/3",
        "niquests-h3": "niquests, HTTP/3",
        "pipes": "http.client",
    },
)
colours.choose(
    "client",
    {
        "h2load": "go",
        "requests-py37": "requests",
        "requests-2.10-py37": "requests",
        "requests-2.31-py37": "requests",
        "hyper": "threads",
        "httpx-h1": "httpx",
        "httpx-h2": "httpx-each",
        "pycurl-h1": "pycurl",
        "pycurl-h2": "cured-threads",
        "bare-h2": "go",
        "bare-h3": "olive",
        "curl-h3": "curl_cffi",
        "niquests-h3": "niquests",
        "pipes": "steel",
    },
)
words.call("protocol", {"h3": "HTTP/3", "h2": "HTTP/2", "http/1.1": "HTTP/1.1"})
colours.choose("protocol", {"h2": "httpx", "http/1.1": "pycurl"})
words.call(
    "engine",
    {
        "twisted": "Twisted",
        "twisted-16.3": "Twisted 16.3",
        "granian": "Granian",
        "aioquic": "aioquic",
    },
)
colours.choose("engine", {"twisted": "stage-3", "granian": "stage-4"})
words.call(
    "order", {"completed": "as completed", "asked": "in the order asked", "chunks": "in chunks"}
)
colours.choose("order", {"completed": colours.ROLES["fast"], "asked": colours.ROLES["slow"]})
words.call("connections", {1: "1 connection"}, "{:,} connections")
words.call("at_once", {1: "one at a time"}, "{:,} at once")
# The ways over a line, as the model knows them (line/model.py): the same colours in all charts.
# None of them is a role's, since which way is slow depends on the line.
colours.choose(
    "way",
    {
        "one connection": "urllib3",
        "six connections": "pycurl",
        "a connection for each": "stage-3",
        "streams, own window": "httpx",
        "streams, wide window": "cured",
    },
)
colours.choose(
    "label",
    {
        "http.client, 1 connection": "urllib3",
        "http.client, 6 connections": "pycurl",
        "http.client, 13 connections": "stage-3",
        "http.client, 100 connections": "stage-3",
        "bare h2, 100 at once": "httpx",
    },
)
words.LIBRARIES.update(("http.client", "hyper", "h2load"))
