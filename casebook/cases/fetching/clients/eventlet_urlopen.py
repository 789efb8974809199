"""eventlet: eventlet's own `urlopen`, and a green thread for each page."""

import os
import sys
import time

import eventlet
from eventlet.green.urllib.request import urlopen


def fetch(urls, verify):
    if isinstance(verify, str):
        os.environ["SSL_CERT_FILE"] = verify  # what urlopen trusts
    return list(eventlet.GreenPool(len(urls)).imap(get, urls))


def get(url):
    try:
        with urlopen(url) as response:
            return response.status, response.read()
    except Exception as error:
        return error


if __name__ == "__main__":
    url, n, ca_file = sys.argv[1:]
    urls = ["%s/delay/1?page=%d" % (url, page) for page in range(int(n))]
    start = time.time()
    print(fetch(urls, ca_file))
    print("%.2f s" % (time.time() - start))
