"""A locustfile. PATIENT=fast: Locust's other client; injected: with pyOpenSSL in urllib3."""

import os

import gevent
from at_once import fetch_all
from locust import FastHttpUser, HttpUser
from locust.env import Environment

if os.environ.get("PATIENT") == "injected":
    from urllib3.contrib import pyopenssl

    pyopenssl.inject_into_urllib3()

waiting, bodies, trusted = [], [], []


def visit(user):
    """Fetch one of the pages, and then wait for the end."""
    if waiting:
        bodies.append(user.fetch(waiting.pop()).content)
    gevent.sleep(1)


class Visitor(HttpUser):
    host, tasks = "https://127.0.0.1", [visit]

    def fetch(self, url):
        return self.client.get(url, verify=trusted[0])


class FastVisitor(FastHttpUser):
    host, tasks = "https://127.0.0.1", [visit]

    def fetch(self, url):
        return self.client.get(url)


def fetch_pages(urls, ca_file):
    trusted.append(ca_file)
    waiting.extend(urls)
    user = FastVisitor if os.environ.get("PATIENT") == "fast" else Visitor
    runner = Environment(user_classes=[user]).create_local_runner()
    runner.start(len(urls), spawn_rate=1000)
    with gevent.Timeout(60):
        while len(bodies) < len(urls):
            gevent.sleep(0.01)
    runner.quit()
    return bodies


if __name__ == "__main__":
    fetch_all(fetch_pages)
