"""requests in greenlets, and nobody has patched anything."""

import gevent.pool
import requests
from at_once import fetch_all


def fetch_pages(urls, ca_file):
    def fetch(url):
        return requests.get(url, verify=ca_file).content

    return gevent.pool.Pool(len(urls)).map(fetch, urls)


if __name__ == "__main__":
    fetch_all(fetch_pages)
