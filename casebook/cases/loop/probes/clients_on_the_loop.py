"""Tasks of an event loop that make clients, beside a heartbeat: one JSON object in, one out.

It runs on Python 3.7 and newer; one way needs 3.9.

In: {"way": how (WAYS below), "url", "n", "delay_s"}. The system's default bundle is what
SSL_CERT_FILE names. Each of n tasks fetches a page, or makes a client and fetches nothing.
Clients of a cloud fetch it as an object of a bucket.

Out: {"openssl", "at_import": loads of certificates while the libraries were imported, "loads":
[{"start_s", "end_s", "on_loop": whether in the thread of the event loop}] since then, "beats_s":
when the heartbeat had its turn, "wall_s", "pages" (rows of answering.pages; none where nothing is
fetched), "failed"}. Times count from the moment in which the tasks begin.
"""

import asyncio
import concurrent.futures
import contextlib
import importlib
import os
import ssl
import threading
import time

import answering

#: What to import where the package itself imports nothing.
MODULES = {"aiobotocore": "aiobotocore.session"}
#: Seconds from one beat to the next, when nothing blocks.
INTERVAL_S = 0.01

loads, loop_thread = [], threading.get_ident()


def count_loads():
    """Note each call of a context that loads certificates: once, whatever it calls itself."""
    inside = threading.local()

    def noted(load):
        def loading(*args, **kwargs):
            if getattr(inside, "load", False):
                return load(*args, **kwargs)
            inside.load, start = True, time.perf_counter()
            try:
                return load(*args, **kwargs)
            finally:
                inside.load = False
                loads.append((start, time.perf_counter(), threading.get_ident() == loop_thread))

        return loading

    for name in ("load_verify_locations", "set_default_verify_paths", "load_default_certs"):
        setattr(ssl.SSLContext, name, noted(getattr(ssl.SSLContext, name)))


async def httpx_each(urls):
    """Make a client for each page."""
    import httpx

    async def get(url):
        async with httpx.AsyncClient(timeout=60) as client:
            return await client.get(url)

    return await gather_pages(get, urls)


async def httpx_unverified(urls):
    """Make a client for each page, with verify=False."""
    import httpx

    async def get(url):
        async with httpx.AsyncClient(timeout=60, verify=False) as client:
            return await client.get(url)

    return await gather_pages(get, urls)


async def httpx_one(urls):
    """Make one client for all pages."""
    import httpx

    async with httpx.AsyncClient(timeout=60) as client:
        return await gather_pages(client.get, urls)


async def httpx_context(urls):
    """Make a client for each page, all with one context."""
    return await with_context(ssl.create_default_context(), urls)


async def httpx_thread(urls):
    """Make a client for each page, with a context that a thread makes while the loop goes on."""
    return await with_context(await asyncio.to_thread(ssl.create_default_context), urls)


async def with_context(context, urls):
    """Make a client of httpx for each page, all with one context."""
    import httpx

    async def get(url):
        async with httpx.AsyncClient(timeout=60, verify=context) as client:
            return await client.get(url)

    return await gather_pages(get, urls)


async def aiohttp_each(urls):
    """Make a session for each page, which takes the context that aiohttp made when imported."""
    return await aiohttp_with(lambda: None, urls)


async def aiohttp_context_each(urls):
    """Make a session for each page, and a connector with a context of its own."""
    import aiohttp

    return await aiohttp_with(lambda: aiohttp.TCPConnector(ssl=ssl.create_default_context()), urls)


async def aiohttp_with(connector, urls):
    """Make a session of aiohttp for each page, with a connector of its own."""
    import aiohttp

    async def get(url):
        async with aiohttp.ClientSession(connector=connector()) as session:
            async with session.get(url) as response:
                return response.status, await response.read()

    return await gather_pages(get, urls)


async def openai_each(urls):
    """Make a client of a language model for each page."""
    import httpx
    import openai

    async def get(url):
        async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
            return await client.get(url, cast_to=httpx.Response)

    return await gather_pages(get, urls)


async def openai_pair_each(urls):
    """Make two clients of a language model for each page.

    One awaits, which asks, and one does not.
    """
    import httpx
    import openai

    async def get(url):
        options = {"api_key": "none", "base_url": url, "max_retries": 0}
        with openai.OpenAI(**options):
            async with openai.AsyncOpenAI(**options) as client:
                return await client.get(url, cast_to=httpx.Response)

    return await gather_pages(get, urls)


async def botocore_each(urls):
    """Make a client of a cloud for each page, and ask it for nothing."""
    import botocore.session

    session = botocore.session.Session()

    async def create_client(_):
        session.create_client(
            "sts", "eu-central-1", aws_access_key_id="none", aws_secret_access_key="none"
        )

    return await gather_pages(create_client, urls)


async def botocore_asked_each(urls):
    """Make a client of a cloud for each page, on the loop, and ask it in a thread."""
    return await botocore_with(botocore_client, urls)


async def botocore_asked_one(urls):
    """Make one client of a cloud, and ask it in a thread for each page."""
    client = botocore_client(urls[0])
    return await botocore_with(lambda _: client, urls)


async def botocore_with(client_for, urls):
    """Fetch each page with botocore, in a thread of its own."""
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor(len(urls)) as threads:

        async def get(url):
            client = client_for(url)
            return await loop.run_in_executor(threads, get_object, client, url)

        return await gather_pages(get, urls)


def botocore_client(url):
    """Make a client of botocore."""
    import botocore.session

    return storage_of(botocore.session.Session(), url)


def get_object(client, url):
    """Fetch an object, and return its status and body."""
    reply = client.get_object(**object_of(url))
    return reply["ResponseMetadata"]["HTTPStatusCode"], reply["Body"].read()


async def aiobotocore_each(urls):
    """Make a client of a cloud that awaits, for each page."""
    return await aiobotocore_with(aiobotocore_client, urls)


async def aiobotocore_one(urls):
    """Make one client of a cloud that awaits, for all pages."""
    async with aiobotocore_client(urls[0]) as client:
        return await aiobotocore_with(lambda _: contextlib.nullcontext(client), urls)


async def aiobotocore_with(client_for, urls):
    """Fetch each page with aiobotocore, on the loop."""

    async def get(url):
        async with client_for(url) as client:
            reply = await client.get_object(**object_of(url))
            return reply["ResponseMetadata"]["HTTPStatusCode"], await reply["Body"].read()

    return await gather_pages(get, urls)


def aiobotocore_client(url):
    """Make a client of aiobotocore."""
    import aiobotocore.session

    return storage_of(aiobotocore.session.get_session(), url)


def storage_of(session, url):
    """Make a client of a cloud's storage, which our server is."""
    session.register("before-sign.s3.GetObject", number_page)
    return session.create_client(
        "s3", "eu-central-1", endpoint_url="/".join(url.split("/")[:3]),
        verify=os.environ["SSL_CERT_FILE"],  # by itself it trusts a list of its own
        aws_access_key_id="none", aws_secret_access_key="none",
    )  # fmt: skip


def object_of(url):
    """Return a page as an object: its path is bucket and key, its number a version."""
    bucket, key = url.partition("?")[0].split("/")[-2:]
    return {"Bucket": bucket, "Key": key, "VersionId": url.rpartition("=")[2]}


def number_page(request, **_):
    """Turn the version into a page: our server knows pages, and no versions."""
    request.url = request.url.replace("versionId=", "page=")


async def gather_pages(get, urls):
    """Get all pages at once; return what came of each, exceptions too."""
    return await asyncio.gather(*map(get, urls), return_exceptions=True)


WAYS = {
    function.__name__.replace("_", "-"): function
    for function in (
        httpx_each, httpx_unverified, httpx_one, httpx_context, httpx_thread, aiohttp_each,
        aiohttp_context_each, openai_each, openai_pair_each, botocore_each, botocore_asked_each,
        botocore_asked_one, aiobotocore_each, aiobotocore_one,
    )
}  # fmt: skip


async def heartbeat(beats):
    """Note the time at a fixed rate."""
    while True:
        beats.append(time.perf_counter())
        await asyncio.sleep(INTERVAL_S)


async def fetch_with_heartbeat(fetch_all, urls):
    """Fetch all pages while the heart beats beside."""
    beats = []
    beating = asyncio.create_task(heartbeat(beats))
    await asyncio.sleep(5 * INTERVAL_S)
    start = time.perf_counter()
    replies = await fetch_all(urls)
    end = time.perf_counter()
    await asyncio.sleep(2 * INTERVAL_S)
    beating.cancel()
    return replies, beats, start, end


def run(spec):
    """Fetch all pages on one loop, and return what came and when the heart beat."""
    fetch_all, n = WAYS[spec["way"]], spec["n"]
    count_loads()
    library = spec["way"].partition("-")[0]
    importlib.import_module(MODULES.get(library, library))
    at_import = len(loads)
    urls = ["%s/delay/%s?page=%d" % (spec["url"], spec["delay_s"], page) for page in range(n)]
    replies, beats, start, end = asyncio.run(fetch_with_heartbeat(fetch_all, urls))
    rows, failed = ([], None) if fetch_all is botocore_each else answering.pages(enumerate(replies))
    return {
        "openssl": ssl.OPENSSL_VERSION,
        "at_import": at_import,
        "loads": [
            {"start_s": load_start - start, "end_s": load_end - start, "on_loop": on_loop}
            for load_start, load_end, on_loop in loads[at_import:]
        ],
        "beats_s": [beat - start for beat in beats],
        "wall_s": end - start,
        "pages": rows,
        "failed": failed and answering.failure(*failed, os.environ.get("SSL_CERT_FILE")),
    }


if __name__ == "__main__":
    answering.answer(run)
