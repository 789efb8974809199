"""urllib3: a thread for each page, and one PoolManager with one SSLContext for all."""

import ssl
import sys
import threading
import time

import urllib3


def fetch(urls, verify):
    # Without "close", urllib3 asks again by itself on a connection that was just being closed.
    options = {"maxsize": len(urls), "timeout": 60, "headers": {"Connection": "close"}}
    if urls[0].startswith("https"):
        options["ssl_context"] = context(verify)
        options["cert_reqs"] = "CERT_REQUIRED" if verify else "CERT_NONE"
    pool = urllib3.PoolManager(**options)
    responses = [None] * len(urls)

    def get(page, url):
        try:
            responses[page] = pool.request("GET", url)
        except Exception as error:
            responses[page] = error

    threads = [threading.Thread(target=get, args=each) for each in enumerate(urls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return responses


def context(verify):
    if verify:
        return ssl.create_default_context(cafile=None if verify is True else verify)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


if __name__ == "__main__":
    url, n, ca_file = sys.argv[1:]
    urls = ["%s/delay/1?page=%d" % (url, page) for page in range(int(n))]
    start = time.time()
    print(fetch(urls, ca_file))
    print("%.2f s" % (time.time() - start))
