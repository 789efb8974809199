"""Six pages with requests."""

import os
from concurrent.futures import ThreadPoolExecutor

import requests

SITE = os.environ["SITE"]


def each():
    for _ in range(6):
        requests.get(SITE).raise_for_status()


def in_threads():
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: requests.get(SITE).raise_for_status(), range(6)))


def kept():
    with requests.Session() as session:
        for _ in range(6):
            session.get(SITE).raise_for_status()


def shared_by_threads():
    with requests.Session() as session, ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: session.get(SITE).raise_for_status(), range(30)))


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
