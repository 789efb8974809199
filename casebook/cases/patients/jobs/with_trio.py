"""Six pages on trio's loop: with requests, which does not await, and in threads."""

import os

import requests
import trio

SITE = os.environ["SITE"].replace("/get", "/delay/0.2")
session = requests.Session()


def fetch():
    session.get(SITE).raise_for_status()


async def fetch_here():
    fetch()


async def fetch_in_a_thread():
    await trio.to_thread.run_sync(fetch)


async def six(fetch_one):
    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(fetch_one)


def on_the_loop():
    trio.run(six, fetch_here)


def in_threads():
    trio.run(six, fetch_in_a_thread)


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
