"""grequests: all pages at once, by `grequests.map` without a size."""

import sys
import time

import grequests


def fetch(urls, verify):
    rs = [grequests.get(url, verify=verify) for url in urls]
    return grequests.map(rs, exception_handler=lambda request, error: error)


if __name__ == "__main__":
    url, n, ca_file = sys.argv[1:]
    urls = ["%s/delay/1?page=%d" % (url, page) for page in range(int(n))]
    start = time.time()
    print(fetch(urls, ca_file))
    print("%.2f s" % (time.time() - start))
