"""Six pages with tornado."""

import asyncio
import os

from tornado.httpclient import AsyncHTTPClient

SITE = os.environ["SITE"]


def with_a_client_each():
    async def all_of_them():
        for _ in range(6):
            await AsyncHTTPClient().fetch(SITE, ca_certs=os.environ["SSL_CERT_FILE"])

    asyncio.run(all_of_them())


def with_one_client():
    async def all_of_them():
        for _ in range(6):
            await AsyncHTTPClient().fetch(SITE)

    asyncio.run(all_of_them())


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_client_each,
    "kept": with_one_client,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
