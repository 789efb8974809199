"""curl_cffi: one AsyncSession (libcurl, with BoringSSL), and a task for each page."""

import asyncio
import sys
import time

import curl_cffi

# Each page over a connection, and a TLS session, of its own.
NEW = {curl_cffi.CurlOpt.FORBID_REUSE: 1, curl_cffi.CurlOpt.SSL_SESSIONID_CACHE: 0}


def fetch(urls, verify):
    return asyncio.run(fetch_all(urls, verify))


async def fetch_all(urls, verify):
    options = {"max_clients": len(urls), "verify": verify, "timeout": 60, "curl_options": NEW}
    async with curl_cffi.AsyncSession(**options) as session:
        return await asyncio.gather(*map(session.get, urls), return_exceptions=True)


if __name__ == "__main__":
    url, n, ca_file = sys.argv[1:]
    urls = ["%s/delay/1?page=%d" % (url, page) for page in range(int(n))]
    start = time.time()
    print(fetch(urls, ca_file))
    print("%.2f s" % (time.time() - start))
