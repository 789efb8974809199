"""What the tests of the store ask it, over both protocols."""

import http.client
import json
import os
import ssl
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from casebook import stacks
from casebook.cases.bookstore import stock
from casebook.cases.bookstore.store import ENGINES
from casebook.errors import MissingInterpreter
from casebook.stacks import environments

CLIENT = Path(__file__).parent / "store_client.py"
IDS = list(stock.books())


def needed(engine):
    """The engine, or a test that is skipped: its environment is made now."""
    stack = stacks.get(ENGINES[engine][0])
    try:
        environments.ensure(stack)
    except MissingInterpreter as error:
        if stack.python in environments.required():
            raise
        pytest.skip(str(error))
    return engine


def over_http2(store, *paths, at_once=1_000):
    """What store_client.py saw of these paths, so many asked for at once on one connection."""
    environment = environments.ensure(stacks.get("twisted-today"))
    asked = {
        "port": urlsplit(store.url).port,
        "ca_file": str(store.ca_file),
        "paths": paths,
        "at_once": at_once,
    }
    done = subprocess.run(
        [environment.python, CLIENT],
        input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=60,
        env=environments.clean_environ(environment),
    )  # fmt: skip
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


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(what, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not what():
            return True
        time.sleep(0.02)
    return False
