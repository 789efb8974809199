"""Six pages with urllib3."""

import os
import ssl

import urllib3

SITE = os.environ["SITE"]


def with_a_pool_each():
    for _ in range(6):
        urllib3.PoolManager(ca_certs=os.environ["SSL_CERT_FILE"]).request("GET", SITE)


def own_context():
    pool = urllib3.PoolManager(ssl_context=ssl.create_default_context())
    for _ in range(6):
        pool.request("GET", SITE, headers={"Connection": "close"})


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_pool_each,
    "own_context": own_context,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
