"""Six pages with requests."""

import os
import ssl
from concurrent.futures import ThreadPoolExecutor

import requests
from requests.adapters import HTTPAdapter

SITE = os.environ["SITE"]
#: A reply that takes so long that nobody else gets its connection meanwhile.
SLOW = SITE.replace("/get", "/delay/0.5")


def with_a_session_each():
    for _ in range(6):
        requests.get(SITE).raise_for_status()


def in_threads():
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: requests.get(SITE).raise_for_status(), range(6)))


def with_one_session():
    with requests.Session() as session:
        for _ in range(6):
            session.get(SITE).raise_for_status()


def shared_by_threads():
    """Fetch thirty pages, two of them slow: two threads have two connections in each run."""
    with requests.Session() as session, ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda url: session.get(url).raise_for_status(), [SLOW] * 2 + [SITE] * 28))


def at_once():
    """Use one Session, and a thread for each of its three connections."""
    with requests.Session() as session, ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: session.get(SLOW).raise_for_status(), range(3)))


def half_a_cure():
    """Use one context for all pools, into which cert_verify has each connection load once more."""
    context = ssl.create_default_context()

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args, **options):
            super().init_poolmanager(*args, ssl_context=context, **options)

    for _ in range(6):
        with requests.Session() as session:
            session.mount("https://", Adapter())
            session.get(SITE).raise_for_status()


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_session_each,
    "kept": with_one_session,
    "in_threads": in_threads,
    "shared_by_threads": shared_by_threads,
    "at_once": at_once,
    "half_a_cure": half_a_cure,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
