"""Twelve clients, a page with each. The last line says how many contexts live at most."""

import asyncio
import gc
import json
import os
import ssl

import httpx

SITE = os.environ["SITE"]


def alive():
    """Count the contexts with certificates that somebody can still reach."""
    gc.collect()
    contexts = [
        candidate for candidate in gc.get_objects() if isinstance(candidate, ssl.SSLContext)
    ]
    return sum(context.cert_store_stats()["x509"] > 1 for context in contexts)


async def fetch_with(clients):
    for client in clients:
        (await client.get(SITE)).raise_for_status()
    print(json.dumps({"alive": alive()}))
    for client in clients:
        await client.aclose()


def a_context_each():
    asyncio.run(fetch_with([httpx.AsyncClient() for _ in range(12)]))


def one_context():
    context = ssl.create_default_context()
    asyncio.run(fetch_with([httpx.AsyncClient(verify=context) for _ in range(12)]))


def one_after_another(keep, measure=lambda: 0):
    """Fetch with twelve clients, each of which is closed before the next one is made."""
    for _ in range(12):
        with httpx.Client() as client:
            client.get(SITE).raise_for_status()
        keep(client)
        yield measure()


def closed_and_kept():
    old = []
    print(json.dumps({"alive": max(one_after_another(old.append, alive))}))


def closed_and_dropped():
    """Leave the first twelve unmeasured, so that they are there until Python frees them."""
    list(one_after_another(lambda client: None))
    print(json.dumps({"alive": max(one_after_another(lambda client: None, alive))}))


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
