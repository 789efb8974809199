"""Six pages with aiohttp."""

import asyncio
import os
import ssl

import aiohttp

SITE = os.environ["SITE"]


def each():
    async def all_of_them():
        for _ in range(6):
            connector = aiohttp.TCPConnector(ssl=ssl.create_default_context())
            async with aiohttp.ClientSession(connector=connector) as session:
                await (await session.get(SITE)).read()

    asyncio.run(all_of_them())


def kept():
    async def all_of_them():
        async with aiohttp.ClientSession() as session:
            for _ in range(6):
                await (await session.get(SITE)).read()

    asyncio.run(all_of_them())


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
