"""Six pages with asyncio's streams."""

import asyncio
import os
import ssl
from urllib.parse import urlsplit

URL = urlsplit(os.environ["SITE"])


async def fetch(context):
    reader, writer = await asyncio.open_connection(URL.hostname, URL.port, ssl=context)
    request = f"GET {URL.path} HTTP/1.1\r\nHost: {URL.netloc}\r\nConnection: close\r\n\r\n"
    writer.write(request.encode())
    assert b" 200 " in await reader.readline()
    await reader.read()
    writer.close()


async def six(context):
    for _ in range(6):
        await fetch(context)


def with_a_context_each():
    asyncio.run(six(True))


def own_context():
    asyncio.run(six(ssl.create_default_context()))


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_context_each,
    "own_context": own_context,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
