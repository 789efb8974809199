"""What the tests of the store ask it, over both protocols."""

import http.client
import ssl
from urllib.parse import urlsplit

import pytest
from here import environment

from casebook.cases.bookstore import readers, stock, witnesses
from casebook.cases.bookstore.store import ENGINES
from casebook.errors import VisitFailed

IDS = list(stock.books())


def needed(engine):
    """The engine, or a test that is skipped: its environment is made now."""
    environment(ENGINES[engine][0])
    return engine


def needs(witness):
    """Skips where a witness is not installed, unless it is required (as in CI)."""
    if witnesses.find(witness) is None:
        pytest.skip(f"{witness} is not installed: {witnesses.INSTALL[witness]}")


def over_http2(store, *paths):
    """[path, status, body] of each path in the order complete, up to a hundred asked for at once
    on one connection. Raises VisitFailed where the store does not speak HTTP/2, or not to the end.
    """
    script = readers.SCRIPTS / "capture_frames.py"
    asked = {"paths": paths, "at_once": 100}
    answer = readers.ask(script, "h2-today", store, 60, store.url, **asked)
    if answer["failure"]:
        raise VisitFailed(answer["failure"])
    return [[reply["path"], reply["status"], reply["body"]] for reply in answer["replies"]]


def connection(store, context=None):
    context = context or ssl.create_default_context(cafile=store.ca_file)
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
