"""pycurl: one multi handle of libcurl, and a transfer for each page."""

import sys
import time
from io import BytesIO

import certifi
import pycurl


def fetch(urls, verify):
    if len(urls) > 1000:
        raise ValueError("libcurl waits with select(), up to 1,024 files: choose n up to 1000")
    bodies = [BytesIO() for _ in urls]
    transfers = [transfer(url, body, verify) for url, body in zip(urls, bodies)]
    multi = pycurl.CurlMulti()
    for each in transfers:
        multi.add_handle(each)
    running = len(transfers)
    while running:
        _, running = multi.perform()
        if running:
            multi.select(1.0)
    _, _, failed = multi.info_read(len(transfers))
    errors = {id(each): pycurl.error(*why) for each, *why in failed}
    responses = [
        errors.get(id(each)) or (each.getinfo(pycurl.RESPONSE_CODE), body.getvalue())
        for each, body in zip(transfers, bodies)
    ]
    multi.close()
    return responses


def transfer(url, body, verify):
    made = pycurl.Curl()
    made.setopt(pycurl.URL, url)
    made.setopt(pycurl.WRITEDATA, body)
    made.setopt(pycurl.TIMEOUT, 60)
    # Each page over a connection, and a TLS session, of its own.
    made.setopt(pycurl.FORBID_REUSE, 1)
    made.setopt(pycurl.SSL_SESSIONID_CACHE, 0)
    # As it is installed, this libcurl has no default.
    made.setopt(pycurl.CAINFO, verify if isinstance(verify, str) else certifi.where())
    if not verify:
        made.setopt(pycurl.SSL_VERIFYPEER, 0)
        made.setopt(pycurl.SSL_VERIFYHOST, 0)
    return made


if __name__ == "__main__":
    url, n, ca_file = sys.argv[1:]
    urls = ["%s/delay/1?page=%d" % (url, page) for page in range(int(n))]
    start = time.time()
    print(fetch(urls, ca_file))
    print("%.2f s" % (time.time() - start))
