"""Six pages with aiohttp."""

import asyncio
import os
import ssl

import aiohttp

SITE = os.environ["SITE"]


def with_a_session_each():
    async def all_of_them():
        for _ in range(6):
            connector = aiohttp.TCPConnector(ssl=ssl.create_default_context())
            async with aiohttp.ClientSession(connector=connector) as session:
                await (await session.get(SITE)).read()

    asyncio.run(all_of_them())


def with_one_session():
    async def all_of_them():
        async with aiohttp.ClientSession() as session:
            for _ in range(6):
                await (await session.get(SITE)).read()

    asyncio.run(all_of_them())


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_session_each,
    "kept": with_one_session,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
