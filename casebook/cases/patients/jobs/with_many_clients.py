"""Twelve clients, a page with each. The last line says how many contexts live at most."""

import asyncio
import gc
import json
import os
import ssl

import httpx

SITE = os.environ["SITE"]


def alive():
    """How many contexts with certificates there are that somebody can still reach."""
    gc.collect()
    contexts = [each for each in gc.get_objects() if isinstance(each, ssl.SSLContext)]
    return sum(each.cert_store_stats()["x509"] > 1 for each in contexts)


async def fetch_with(clients):
    for each in clients:
        (await each.get(SITE)).raise_for_status()
    print(json.dumps({"alive": alive()}))
    for each in clients:
        await each.aclose()


def a_context_each():
    asyncio.run(fetch_with([httpx.AsyncClient() for _ in range(12)]))


def one_context():
    context = ssl.create_default_context()
    asyncio.run(fetch_with([httpx.AsyncClient(verify=context) for _ in range(12)]))


def one_after_another(keep, look=lambda: 0):
    """Twelve clients, of which each is closed before the next one is made."""
    for _ in range(12):
        with httpx.Client() as client:
            client.get(SITE).raise_for_status()
        keep(client)
        yield look()


def closed_and_kept():
    old = []
    print(json.dumps({"alive": max(one_after_another(old.append, alive))}))


def closed_and_dropped():
    """Nobody looks at the first twelve, so that they are there until Python frees them."""
    list(one_after_another(lambda client: None))
    print(json.dumps({"alive": max(one_after_another(lambda client: None, alive))}))


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
