"""The grader's own servers: what they count of clients that are slow, serial, or gone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from here import eventually

from casebook.classroom.witness import Site, World


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with World() as world:
        yield world.site("plain")


def fetch(site: Site, page: int) -> bool:
    reply = requests.get(f"{site.url}/delay/0?page={page}", timeout=60)
    return reply.json()["word"] == site.word(str(page))


def test_the_first_request_is_held_until_a_second_one_is_in_flight(site: Site) -> None:
    """However slow a machine is, a concurrent client is seen to be one."""
    site.reset(patience_s=60)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(fetch, site, 1)
        assert eventually(lambda: site.counts().in_flight == 1)
        assert not first.done()
        assert fetch(site, 2) and first.result()
    assert site.counts().peak_in_flight == 2


def test_a_serial_client_is_held_once_and_stays_serial(site: Site) -> None:
    site.reset(patience_s=0.1)
    assert all(fetch(site, page) for page in range(4))
    seen = site.counts()
    assert (seen.requests, seen.peak_in_flight, seen.overlap.is_set()) == (4, 1, True)


def test_without_patience_nobody_is_held(site: Site) -> None:
    site.reset()
    assert fetch(site, 1)
    assert site.counts().peak_in_flight == 1


def test_a_reply_that_ends_its_connection_says_so(site: Site) -> None:
    """Otherwise a pool of connections would send its next request into the end of one."""
    site.reset()
    with requests.Session() as session:
        for page in range(50):
            url = f"{site.url}/delay/0?page={page}"
            reply = session.get(url, headers={"Connection": "close"}, timeout=60)
            assert reply.headers["Connection"] == "close"
    assert "Connection" not in requests.get(url, timeout=60).headers
    assert (site.counts().requests, len(site.counts().connections)) == (51, 51)
