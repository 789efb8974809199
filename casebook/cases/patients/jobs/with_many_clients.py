"""Twelve clients that are kept, a page with each. The last line says how many contexts live."""

import asyncio
import gc
import json
import os
import ssl

import httpx

SITE = os.environ["SITE"]


async def fetch_with(clients):
    for each in clients:
        (await each.get(SITE)).raise_for_status()
    contexts = [each for each in gc.get_objects() if isinstance(each, ssl.SSLContext)]
    alive = sum(each.cert_store_stats()["x509"] > 1 for each in contexts)
    for each in clients:
        await each.aclose()
    print(json.dumps({"alive": alive}))


def a_context_each():
    asyncio.run(fetch_with([httpx.AsyncClient() for _ in range(12)]))


def one_context():
    context = ssl.create_default_context()
    asyncio.run(fetch_with([httpx.AsyncClient(verify=context) for _ in range(12)]))


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
