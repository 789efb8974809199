"""Six pages with requests, for gevent: in greenlets, and in its pool of threads."""

import os

if os.environ["JOB"] == "patched":
    from gevent import monkey

    monkey.patch_all()

import gevent
import requests
from gevent.threadpool import ThreadPool

SITE = os.environ["SITE"].replace("/get", "/delay/0.2")
session = requests.Session()


def fetch(_):
    session.get(SITE).raise_for_status()


def in_greenlets():
    gevent.joinall([gevent.spawn(fetch, page) for page in range(6)], raise_error=True)


patched = unpatched = in_greenlets


def in_threads():
    ThreadPool(3).map(fetch, range(6))


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
