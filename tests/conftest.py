"""What the whole suite shares; first of all what waits while the other tests run."""

import shutil
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from trust_runs import CURE, run
from trust_world import World

from casebook import server

STILL = 100
STILL_S = 120.0

#: Fixtures that begin with the first test and are used by the last.
WAITING = ("standing_still",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_waits)  # stable: what needs minutes of waiting goes last, so they are free


@pytest.fixture(scope="session", autouse=True)
def _from_the_start(request: pytest.FixtureRequest) -> None:
    wanted = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    for name in WAITING:
        if name in wanted:
            request.getfixturevalue(name)


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


@pytest.fixture
def ask(world, cure):
    """ask(version, task, **more) -> what a task of trust_tasks.py answers."""

    def asking(version, task, **more):
        return run(version, "trust_tasks.py", task, world.card(), cure, **more)

    return asking


def _waits(item: pytest.Item) -> bool:
    return any(name in WAITING for name in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Servers of every kind of trustworthiness: tests/trust_world.py."""
    with World(tmp_path_factory.mktemp("world")) as running:
        yield running


@pytest.fixture(scope="session")
def cure(tmp_path_factory) -> Path:
    """A folder with nothing but a copy of shared_context.py, as one would take it."""
    folder = tmp_path_factory.mktemp("cure")
    shutil.copy(CURE, folder)
    return folder
