"""One thing that the whole suite shares: clients that stand still while the other tests run."""

import socket
import time
from urllib.parse import urlsplit

import pytest

from casebook import server

STILL = 100
STILL_S = 120.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_stands_still)  # stable: what needs the two minutes goes last, so they are free


@pytest.fixture(scope="session", autouse=True)
def _from_the_start(request: pytest.FixtureRequest) -> None:
    if any(_stands_still(item) for item in request.session.items):
        request.getfixturevalue("standing_still")


@pytest.fixture(scope="session")
def standing_still():
    """A lab server, and the sockets of STILL clients that connected to it when the first test began
    and have done nothing since; with the monotonic time, STILL_S later, at which they may move."""
    with server.start() as lab:
        address = urlsplit(lab.url)
        sockets = [socket.create_connection((address.hostname, address.port)) for _ in range(STILL)]
        yield lab, sockets, time.monotonic() + STILL_S
        for sock in sockets:
            sock.close()


def _stands_still(item: pytest.Item) -> bool:
    return "standing_still" in getattr(item, "fixturenames", ())
