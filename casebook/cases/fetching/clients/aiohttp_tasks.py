"""aiohttp: one ClientSession without limits, and a task for each page."""

import asyncio
import ssl
import sys
import time

import aiohttp


def fetch(urls, verify):
    return asyncio.run(fetch_all(urls, verify))


async def fetch_all(urls, verify):
    if isinstance(verify, str):
        verify = ssl.create_default_context(cafile=verify)
    connector = aiohttp.TCPConnector(limit=0, force_close=True, ssl=verify)
    timeout = aiohttp.ClientTimeout(60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        pages = [get(session, url) for url in urls]
        return await asyncio.gather(*pages, return_exceptions=True)


async def get(session, url):
    async with session.get(url) as response:
        return response.status, await response.read()


if __name__ == "__main__":
    url, n, ca_file = sys.argv[1:]
    urls = ["%s/delay/1?page=%d" % (url, page) for page in range(int(n))]
    start = time.time()
    print(fetch(urls, ca_file))
    print("%.2f s" % (time.time() - start))
