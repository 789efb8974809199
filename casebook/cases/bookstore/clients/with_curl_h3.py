"""A visit over HTTP/3 with libcurl, whose QUIC is ngtcp2 and whose TLS is BoringSSL (curl_cffi)."""

import asyncio

from curl_cffi import CurlHttpVersion, CurlOpt
from curl_cffi.requests import AsyncSession
from shelf import path


def visit(spec, shelf):
    """Fetch the list of books, then `at_once` books at a time."""
    options = {"verify": spec["ca_file"], "http_version": CurlHttpVersion.V3ONLY, "timeout": None}
    # Wait for the connection that there is, rather than open another.
    options["curl_options"] = {CurlOpt.PIPEWAIT: 1}

    async def in_one_session():
        async with AsyncSession(max_clients=spec["at_once"], **options) as session:

            async def get(location):
                response = await session.get(spec["url"] + location)
                shelf.speaks("h3" if response.http_version == CurlHttpVersion.V3 else "another")
                announced = response.headers.get("content-length")
                return response.status_code, response.content, announced

            remaining = iter(shelf.list(*await get("/")))

            async def one_after_the_other():
                for book in remaining:
                    with shelf.asking(book):
                        shelf.put(book, *await get(path(book)))

            await asyncio.gather(*(one_after_the_other() for _ in range(spec["at_once"])))

    asyncio.run(in_one_session())
