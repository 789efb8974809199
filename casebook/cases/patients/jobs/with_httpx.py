"""Six pages with httpx."""

import asyncio
import os

import httpx

SITE = os.environ["SITE"]


def with_a_client_each():
    for _ in range(6):
        httpx.get(SITE).raise_for_status()


def each_async():
    async def fetch():
        async with httpx.AsyncClient() as client:
            (await client.get(SITE)).raise_for_status()

    async def all_of_them():
        await asyncio.gather(*[fetch() for _ in range(6)])

    asyncio.run(all_of_them())


def with_one_client():
    with httpx.Client() as client:
        for _ in range(6):
            client.get(SITE).raise_for_status()


def kept_async():
    async def all_of_them():
        async with httpx.AsyncClient() as client:
            await asyncio.gather(*[client.get(SITE) for _ in range(6)])

    asyncio.run(all_of_them())


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_client_each,
    "kept": with_one_client,
    "each_async": each_async,
    "kept_async": kept_async,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
