"""Three services, four pages of each, with httpx: a visit for each page, and a client for each."""

import os

import httpx

SITE = os.environ["SITE"]
NAMES = ("users", "books", "mail")


def with_a_client_for_each_page():
    for _ in range(4):
        for name in NAMES:
            httpx.get(SITE, headers={"x-service": name}).raise_for_status()


def with_a_client_for_each_service():
    clients = [httpx.Client(headers={"x-service": name}) for name in NAMES]
    for _ in range(4):
        for client in clients:
            client.get(SITE).raise_for_status()


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_client_for_each_page,
    "kept": with_a_client_for_each_service,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
