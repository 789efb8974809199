"""What the tests of the store ask it, over both protocols."""

import http.client
import json
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from here import environment, python_in

from casebook.cases.bookstore import readers, stock, witnesses
from casebook.cases.bookstore.store import ENGINES

CLIENT = Path(__file__).parent / "store_client.py"
IDS = list(stock.books())


def needed(engine):
    """The engine, or a test that is skipped: its environment is made now."""
    environment(ENGINES[engine][0])
    return engine


def needs(witness):
    """Skips where a witness is not installed, unless it is required (as in CI)."""
    if witnesses.find(witness) is None:
        pytest.skip(f"{witness} is not installed: {witnesses.INSTALL[witness]}")


def over_http2(store, *paths, at_once=1_000):
    """What store_client.py saw of these paths, so many asked for at once on one connection."""
    asked = {"clients": str(readers.SCRIPTS), "url": store.url, "ca_file": str(store.ca_file)}
    asked |= {"paths": paths, "at_once": at_once}
    done = python_in("twisted-today", CLIENT, input=json.dumps(asked), check=True)
    return json.loads(done.stdout)


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
