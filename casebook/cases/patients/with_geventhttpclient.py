"""geventhttpclient in greenlets; PATIENT=patched: after gevent has patched everything."""

import os

if os.environ.get("PATIENT") == "patched":
    from gevent import monkey

    monkey.patch_all()

import gevent.pool
from at_once import fetch_all
from geventhttpclient import HTTPClient


def fetch_pages(urls, ca_file):
    def fetch(url):
        client = HTTPClient.from_url(url, ssl_options={"ca_certs": ca_file})
        response = client.get("/" + url.split("/", 3)[3])
        assert response.status_code == 200
        return response.read()

    return gevent.pool.Pool(len(urls)).map(fetch, urls)


if __name__ == "__main__":
    fetch_all(fetch_pages)
