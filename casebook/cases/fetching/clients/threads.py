"""threads: a thread for each page, and one `requests.get` in each."""

import sys
import threading
import time

import requests


def fetch(urls, verify):
    responses = [None] * len(urls)

    def get(page, url):
        try:
            responses[page] = requests.get(url, verify=verify)
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
