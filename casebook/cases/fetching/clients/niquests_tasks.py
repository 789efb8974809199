"""niquests: one AsyncSession with room for all connections, and a task for each page."""

import asyncio
import os
import sys
import time

import niquests


def fetch(urls, verify):
    # With True it would read the system's folders of certificates, whatever is declared.
    verify = os.environ.get("SSL_CERT_FILE", True) if verify is True else verify
    return asyncio.run(fetch_all(urls, verify))


async def fetch_all(urls, verify):
    close = {"Connection": "close"}
    async with niquests.AsyncSession(pool_maxsize=len(urls), headers=close) as session:
        pages = [session.get(url, verify=verify, timeout=60) for url in urls]
        return await asyncio.gather(*pages, return_exceptions=True)


if __name__ == "__main__":
    url, n, ca_file = sys.argv[1:]
    urls = ["%s/delay/1?page=%d" % (url, page) for page in range(int(n))]
    start = time.time()
    print(fetch(urls, ca_file))
    print("%.2f s" % (time.time() - start))
