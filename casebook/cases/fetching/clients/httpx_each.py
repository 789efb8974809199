"""httpx-each: `httpx.get` in a thread for each page, which makes a client each time."""

import ssl
import sys
import threading
import time

import httpx


def fetch(urls, verify):
    responses = [None] * len(urls)

    def get(page, url):
        trusted = ssl.create_default_context(cafile=verify) if isinstance(verify, str) else verify
        try:
            responses[page] = httpx.get(url, verify=trusted, timeout=60)
        except Exception as error:
            responses[page] = error

    threads = [threading.Thread(target=get, args=each) for each in enumerate(urls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return responses


if __name__ == "__main__":
    url, n, ca_file = sys.argv[1:]
    urls = ["%s/delay/1?page=%d" % (url, page) for page in range(int(n))]
    start = time.time()
    print(fetch(urls, ca_file))
    print("%.2f s" % (time.time() - start))
