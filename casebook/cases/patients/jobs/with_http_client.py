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


def with_a_connection_each():
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


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_connection_each,
    "own_context": own_context,
    "urlopen_own_context": urlopen_own_context,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
