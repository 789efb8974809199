"""What the tests of the store ask it, over both protocols."""

import http.client
import ssl
from urllib.parse import urlsplit

import pytest

from casebook.cases.bookstore import stock, witnesses
from casebook.cases.bookstore.clients import bare_h2

IDS = list(stock.books())


def needs(witness):
    """Skips where a witness is not installed, unless it is required (as in CI)."""
    if witnesses.find(witness) is None:
        pytest.skip(f"{witness} is not installed: {witnesses.INSTALL[witness]}")


def over_http2(store, *paths):
    """Fetch on one connection, up to a hundred at once: [path, status, body] as they come."""
    client = bare_h2.Connection(store.url, trusting(store), 20)
    with client.socket:
        client.settle()
        replies = list(client.fetch(paths))
    return [[reply.path, int(reply.headers[":status"]), reply.body.decode()] for reply in replies]


def trusting(store):
    """A context for TLS that trusts this store."""
    return ssl.create_default_context(cafile=store.ca_file)


def connection(store, context=None):
    context = context or trusting(store)
    return http.client.HTTPSConnection(
        "127.0.0.1", urlsplit(store.url).port, context=context, timeout=20
    )


def over_http1(store, *paths):
    """[path, status, body] of each path, asked for one after the other on one connection."""
    client, seen = connection(store), []
    for path in paths:
        client.request("GET", path)
        response = client.getresponse()
        seen.append([path, response.status, response.read().decode()])
    client.close()
    return seen


def book(number):
    return f"/book?id={number}"
