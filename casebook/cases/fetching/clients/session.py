"""session: one `requests.Session` for all pages, one after the other."""

import sys
import time

import requests


def fetch(urls, verify):
    with requests.Session() as session:
        return [session.get(url, verify=verify) for url in urls]


if __name__ == "__main__":
    url, n, ca_file = sys.argv[1:]
    urls = ["%s/delay/1?page=%d" % (url, page) for page in range(int(n))]
    start = time.time()
    print(fetch(urls, ca_file))
    print("%.2f s" % (time.time() - start))
