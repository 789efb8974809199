"""Three services, four pages of each, with httpx: a visit for each page, and a client for each."""

import os

import httpx

SITE = os.environ["SITE"]
NAMES = ("users", "books", "mail")


def each():
    for _ in range(4):
        for name in NAMES:
            httpx.get(SITE, headers={"x-service": name}).raise_for_status()


def kept():
    clients = [httpx.Client(headers={"x-service": name}) for name in NAMES]
    for _ in range(4):
        for client in clients:
            client.get(SITE).raise_for_status()


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
