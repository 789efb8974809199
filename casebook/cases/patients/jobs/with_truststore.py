"""Eight pages at once, over connections that share one context."""

import os
import ssl
from concurrent.futures import ThreadPoolExecutor

import truststore
import urllib3

SITE = os.environ["SITE"]


def fetch_with(context):
    pool = urllib3.PoolManager(ssl_context=context, maxsize=8)
    with ThreadPoolExecutor(8) as threads:
        for reply in threads.map(lambda _: pool.request("GET", SITE), range(8)):
            assert reply.status == 200


def with_the_lock():
    fetch_with(truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def without_a_lock():
    fetch_with(ssl.create_default_context())


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
