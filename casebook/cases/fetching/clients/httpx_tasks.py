"""httpx: one AsyncClient without limits, and a task for each page."""

import asyncio
import ssl
import sys
import time

import httpx

# A connection that is idle is one too many, and closed: no second page goes over it.
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=0)


def fetch(urls, verify):
    return asyncio.run(fetch_all(urls, verify))


async def fetch_all(urls, verify):
    if isinstance(verify, str):
        verify = ssl.create_default_context(cafile=verify)
    async with httpx.AsyncClient(verify=verify, limits=LIMITS, timeout=60) as client:
        return await asyncio.gather(*map(client.get, urls), return_exceptions=True)


if __name__ == "__main__":
    url, n, ca_file = sys.argv[1:]
    urls = ["%s/delay/1?page=%d" % (url, page) for page in range(int(n))]
    start = time.time()
    print(fetch(urls, ca_file))
    print("%.2f s" % (time.time() - start))
