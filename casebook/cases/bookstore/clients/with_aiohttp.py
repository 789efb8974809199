"""HTTP/1.1 over several connections at once: aiohttp.

https://docs.aiohttp.org/en/stable/client_advanced.html#limiting-connection-pool-size
"""

import asyncio
import ssl

import aiohttp
from sharing import share


def visit(spec, shelf):
    """Fetch the list of books, then each book."""
    asyncio.run(read_all(spec, shelf))


async def read_all(spec, shelf):
    """Let as many readers as connections share the list of books."""
    context = ssl.create_default_context(cafile=spec["ca_file"])
    connector = aiohttp.TCPConnector(limit=spec["connections"], ssl=context)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(spec["url"], connector=connector, timeout=timeout) as session:

        async def get(location):
            async with session.get(location) as response:
                shelf.speaks("http/{}.{}".format(*response.version))
                announced = response.headers.get("Content-Length")
                return response.status, await response.read(), announced

        await share(shelf, shelf.list(*await get("/")), spec["connections"], get)
