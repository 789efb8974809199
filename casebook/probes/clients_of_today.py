"""The clients that people would take today instead of grequests, for Python 3 alone.

As in clients.py: n URLs at once, each over a connection of its own, and the replies in their
order. Whatever could use a connection, or a TLS session, for a second time is told not to. Imports
are where they are used, so that each process holds only what its own library needs.

`verify`: with a path each trusts that file. With True each has its own default: certifi's bundle,
or what OpenSSL and SSL_CERT_FILE call it; all of these are the same file in the probe.
"""

import json
import os
import threading
from io import BytesIO

#: Seconds after which a request is given up, where that can be said.
LIMIT_S = 60


class Reply:
    """What the probe looks at, of libraries that say it in other words than requests."""

    def __init__(self, status_code, reason, body):
        self.status_code = status_code
        self.reason = reason
        self.body = body

    def json(self):
        return json.loads(self.body)


class InThreads:
    """A thread for each URL; `one(url)` gives its reply."""

    def all(self, urls, one):
        replies = [None] * len(urls)

        def fetch(page, url):
            try:
                replies[page] = one(url)
            except Exception as error:
                replies[page] = error

        threads = [threading.Thread(target=fetch, args=each) for each in enumerate(urls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return replies


class HttpxEach(InThreads):
    """`httpx.get` in each thread, which makes a client each time."""

    def __init__(self):
        import httpx

        self.httpx = httpx

    def get(self, urls, verify):
        def one(url):
            got = self.httpx.get(url, verify=trusted(verify), timeout=LIMIT_S)
            return Reply(got.status_code, got.reason_phrase, got.content)

        return self.all(urls, one)


class Urllib3(InThreads):
    """One pool manager, with one SSLContext for all connections."""

    def __init__(self):
        import urllib3

        self.urllib3 = urllib3

    def get(self, urls, verify):
        # urllib3 tries again by itself where it took a connection that was being closed.
        own = {"maxsize": len(urls), "timeout": LIMIT_S}
        own["headers"] = {"Connection": "close"}
        if urls[0].startswith("https"):
            own["ssl_context"] = context(verify)
            own["cert_reqs"] = "CERT_REQUIRED" if verify else "CERT_NONE"
        pool = self.urllib3.PoolManager(**own)

        def one(url):
            got = pool.request("GET", url)
            return Reply(got.status, got.reason, got.data)

        return self.all(urls, one)


class Pycurl:
    """One multi handle of libcurl, and a transfer for each URL."""

    #: libcurl's wait is select(), which takes 1,024 open files.
    MOST = 1000

    def __init__(self):
        import certifi
        import pycurl

        self.pycurl = pycurl
        # As it is installed, this libcurl has no default.
        self.bundle = certifi.where

    def get(self, urls, verify):
        if len(urls) > self.MOST:
            raise ValueError(f"pycurl waits with select(): choose n up to {self.MOST}")
        bodies = [BytesIO() for _ in urls]
        transfers = [self.transfer(*each, verify) for each in zip(urls, bodies)]
        multi = self.pycurl.CurlMulti()
        for transfer in transfers:
            multi.add_handle(transfer)
        running = len(transfers)
        while running:
            _, running = multi.perform()
            if running:
                multi.select(1.0)
        _, _, failed = multi.info_read(len(transfers))
        errors = {id(transfer): self.pycurl.error(*why) for transfer, *why in failed}
        replies = [
            errors.get(id(transfer))
            or Reply(transfer.getinfo(self.pycurl.RESPONSE_CODE), "", body.getvalue())
            for transfer, body in zip(transfers, bodies)
        ]
        multi.close()
        return replies

    def transfer(self, url, body, verify):
        pycurl = self.pycurl
        transfer = pycurl.Curl()
        transfer.setopt(pycurl.URL, url)
        transfer.setopt(pycurl.WRITEDATA, body)
        transfer.setopt(pycurl.TIMEOUT, LIMIT_S)
        transfer.setopt(pycurl.FORBID_REUSE, 1)
        transfer.setopt(pycurl.SSL_SESSIONID_CACHE, 0)
        transfer.setopt(pycurl.CAINFO, self.bundle() if isinstance(verify, bool) else verify)
        if verify is False:
            transfer.setopt(pycurl.SSL_VERIFYPEER, 0)
            transfer.setopt(pycurl.SSL_VERIFYHOST, 0)
        return transfer


class InTasks:
    """One client or session under asyncio, and a task for each URL."""

    def __init__(self):
        import asyncio

        self.asyncio = asyncio

    def get(self, urls, verify):
        return self.asyncio.run(self.all(urls, verify))

    async def together(self, urls, one):
        return await self.asyncio.gather(*map(one, urls), return_exceptions=True)


class Httpx(InTasks):
    """One AsyncClient, without limits."""

    def __init__(self):
        super().__init__()
        import httpx

        self.httpx = httpx

    async def all(self, urls, verify):
        # A connection that is idle is one too many, and closed.
        limits = self.httpx.Limits(max_connections=None, max_keepalive_connections=0)
        own = {"verify": trusted(verify), "limits": limits, "timeout": LIMIT_S}
        async with self.httpx.AsyncClient(**own) as client:

            async def one(url):
                got = await client.get(url)
                return Reply(got.status_code, got.reason_phrase, got.content)

            return await self.together(urls, one)


class Aiohttp(InTasks):
    """One ClientSession, without limits. The contexts are made when aiohttp is imported."""

    def __init__(self):
        super().__init__()
        import aiohttp

        self.aiohttp = aiohttp

    async def all(self, urls, verify):
        connector = self.aiohttp.TCPConnector(limit=0, force_close=True, ssl=trusted(verify))
        limit = self.aiohttp.ClientTimeout(total=LIMIT_S)
        async with self.aiohttp.ClientSession(connector=connector, timeout=limit) as session:

            async def one(url):
                async with session.get(url) as got:
                    return Reply(got.status, got.reason, await got.read())

            return await self.together(urls, one)


class Niquests(InTasks):
    """One AsyncSession, with room for all connections."""

    def __init__(self):
        super().__init__()
        import niquests

        self.niquests = niquests

    async def all(self, urls, verify):
        # With True it would read the system's folders of certificates, whatever is declared.
        if verify is True:
            verify = os.environ.get("SSL_CERT_FILE", True)
        own = {"pool_maxsize": len(urls), "headers": {"Connection": "close"}}
        async with self.niquests.AsyncSession(**own) as session:

            async def one(url):
                got = await session.get(url, verify=verify, timeout=LIMIT_S)
                return Reply(got.status_code, got.reason, got.content)

            return await self.together(urls, one)


class CurlCffi(InTasks):
    """One AsyncSession: libcurl again, with BoringSSL."""

    def __init__(self):
        super().__init__()
        import curl_cffi

        self.curl_cffi = curl_cffi

    async def all(self, urls, verify):
        options = self.curl_cffi.CurlOpt
        own = {"max_clients": len(urls), "verify": verify, "timeout": LIMIT_S}
        own["curl_options"] = {options.FORBID_REUSE: 1, options.SSL_SESSIONID_CACHE: 0}
        async with self.curl_cffi.AsyncSession(**own) as session:

            async def one(url):
                got = await session.get(url)
                return Reply(got.status_code, got.reason, got.content)

            return await self.together(urls, one)


def trusted(verify):
    """For libraries that take True, False or a context: a file becomes a context of its own."""
    return verify if isinstance(verify, bool) else context(verify)


def context(verify):
    """A context of the standard library. True: OpenSSL's default bundle."""
    import ssl

    if verify is False:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
        return made
    return ssl.create_default_context(cafile=None if verify is True else verify)


CLIENTS = {
    "httpx": Httpx,
    "httpx-each": HttpxEach,
    "aiohttp": Aiohttp,
    "niquests": Niquests,
    "urllib3": Urllib3,
    "pycurl": Pycurl,
    "curl_cffi": CurlCffi,
}
