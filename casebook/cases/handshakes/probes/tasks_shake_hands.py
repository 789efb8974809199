"""As threads_shake_hands.py, with tasks of one event loop in the place of threads.

In and out as there; `way` is one of WAYS below, and no thread is looked at. It runs
on Python 3.7 and newer.
"""

import asyncio
import ssl
import time
from urllib.parse import urlsplit

import answering
from threads_shake_hands import kind, new_truststore, version


async def asyncio_streams(context):
    """Fetch with the standard library's own streams, over a connection each."""

    async def get(url):
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
        try:
            request = "GET %s?%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (
                parts.path, parts.query, parts.netloc,
            )  # fmt: skip
            writer.write(request.encode())
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            return int(head.split()[1]), body
        finally:
            writer.close()

    return get


async def httpx_async(context):
    """Fetch with one asynchronous client of httpx."""
    import httpx

    return httpx.AsyncClient(verify=context, timeout=60).get


WAYS = {"asyncio-shared": asyncio_streams, "httpx-async-shared": httpx_async}


async def fetch_all(spec, context):
    """Fetch all pages at once, and return the replies and the seconds."""
    get = await WAYS[spec["way"]](context)
    urls = ["%s/?page=%d" % (spec["url"], page) for page in range(spec["n"])]
    start = time.perf_counter()
    replies = await asyncio.gather(*map(get, urls), return_exceptions=True)
    return replies, time.perf_counter() - start


def run(spec):
    """Fetch over one context, and return rows and what failed."""
    context = new_truststore()
    replies, wall_s = asyncio.run(fetch_all(spec, context))
    rows, failed = answering.pages(enumerate(replies))
    return {
        "openssl": ssl.OPENSSL_VERSION,
        "truststore": version(),
        "context": kind(context),
        "pages": rows,
        "failed": failed and answering.failure(failed[0], failed[1], None),
        "wall_s": wall_s,
        "stacks": [],
    }


if __name__ == "__main__":
    answering.answer(run)
