"""Six pages with the standard library."""

import http.client
import os
import ssl
import urllib.request
from urllib.parse import urlsplit

SITE = os.environ["SITE"]


def fetch(**options):
    url = urlsplit(SITE)
    connection = http.client.HTTPSConnection(url.netloc, **options)
    connection.request("GET", url.path)
    connection.getresponse().read()
    connection.close()


def each():
    for _ in range(6):
        fetch()


def own_context():
    context = ssl.create_default_context()
    for _ in range(6):
        fetch(context=context)


def urlopen_own_context():
    context = ssl.create_default_context()
    for _ in range(6):
        urllib.request.urlopen(SITE, context=context).read()


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
