"""Six pages with httpx."""

import asyncio
import os

import httpx

SITE = os.environ["SITE"]


def each():
    for _ in range(6):
        httpx.get(SITE).raise_for_status()


def each_async():
    async def fetch():
        async with httpx.AsyncClient() as client:
            (await client.get(SITE)).raise_for_status()

    async def all_of_them():
        await asyncio.gather(*[fetch() for _ in range(6)])

    asyncio.run(all_of_them())


def kept():
    with httpx.Client() as client:
        for _ in range(6):
            client.get(SITE).raise_for_status()


def kept_async():
    async def all_of_them():
        async with httpx.AsyncClient() as client:
            await asyncio.gather(*[client.get(SITE) for _ in range(6)])

    asyncio.run(all_of_them())


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
