"""Six pages with tornado."""

import asyncio
import os

from tornado.httpclient import AsyncHTTPClient

SITE = os.environ["SITE"]


def each():
    async def all_of_them():
        for _ in range(6):
            await AsyncHTTPClient().fetch(SITE, ca_certs=os.environ["SSL_CERT_FILE"])

    asyncio.run(all_of_them())


def kept():
    async def all_of_them():
        for _ in range(6):
            await AsyncHTTPClient().fetch(SITE)

    asyncio.run(all_of_them())


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
