"""Threads that begin together and fetch a page each: one JSON object in, one out.

In: {"way": how (WAYS below), "url", "n", "look_after_s": seconds after which the stack of every
thread is looked at, or null}. The system's default bundle is what SSL_CERT_FILE names.

Out: {"openssl", "truststore" (its version and who brought it, or null), "context" (the module that
the class of the shared one is from, or null), "pages" (rows of answering.pages), "failed",
"wall_s", "stacks": for each thread its calls [module, function, line, text], outermost first}.
"""

import os
import ssl
import sys
import threading
import time
from http.client import HTTPSConnection
from urllib.parse import urlsplit

import answering


def standard():
    """Share one context among all threads: the standard library's own."""
    return one_for_all(ssl.create_default_context())


def shared():
    """Share one context among all threads: truststore's."""
    return one_for_all(new_truststore())


def context_each():
    """Make a truststore context for each thread."""
    return lambda url: fetch(url, new_truststore())


def one_for_all(context):
    """Use one context for all pages, and a connection for each."""
    return with_context(lambda url: fetch(url, context), context)


def new_truststore():
    """Make a context that trusts the server even if truststore asks the system (macOS)."""
    import truststore

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(os.environ["SSL_CERT_FILE"])
    return context


def fetch(url, context):
    """Return (status, body), over a connection of its own."""
    parts = urlsplit(url)
    connection = HTTPSConnection(parts.hostname, parts.port, context=context, timeout=60)
    try:
        connection.request("GET", "%s?%s" % (parts.path, parts.query))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def urllib3_pool():
    """Hand urllib3's pool a truststore context."""
    import urllib3

    context = new_truststore()
    pool = urllib3.PoolManager(ssl_context=context, retries=False)
    return with_context(lambda url: pool.request("GET", url), context)


def httpx2_client():
    """Hand httpx2's one client a truststore context."""
    import httpx2

    context = new_truststore()
    return with_context(httpx2.Client(verify=context, timeout=60).get, context)


def httpx2_default():
    """Let httpx2's one client choose its context itself."""
    import httpx2

    client = httpx2.Client(timeout=60)
    return with_context(client.get, client._transport._pool._ssl_context)


def httpx_default():
    """Let httpx's one client make its context itself, of whatever ssl.SSLContext now is."""
    import httpx

    client = httpx.Client(timeout=60)
    return with_context(client.get, client._transport._pool._ssl_context)


def httpx_injected():
    """Use httpx's one client, after truststore.inject_into_ssl()."""
    inject()
    return httpx_default()


def requests_injected():
    """Use requests.get in each thread, after truststore.inject_into_ssl()."""
    import requests

    inject()
    return lambda url: requests.get(url, verify=os.environ["SSL_CERT_FILE"], timeout=60)


def requests_shared():
    """Inject, and use one session of a requests that made one context for all at its import."""
    import requests

    inject()
    context = requests.adapters._preloaded_ssl_context
    context.load_verify_locations(os.environ["SSL_CERT_FILE"])
    session = requests.Session()
    return with_context(lambda url: session.get(url, timeout=60), context)


def inject():
    """Have truststore take the place of ssl's contexts."""
    import truststore

    truststore.inject_into_ssl()


def with_context(get, context):
    """Return the function with a note of the context that its threads share."""

    def get_page(url):
        return get(url)

    get_page.context = context
    return get_page


WAYS = {
    function.__name__.replace("_", "-"): function
    for function in (
        standard, shared, urllib3_pool, httpx2_client, httpx2_default, httpx_default,
        httpx_injected, requests_injected, requests_shared,
    )
}  # fmt: skip
WAYS["each"] = context_each


def run(spec):
    """Fetch all pages in threads that start together, and return what each waited for."""
    n, replies, calls = spec["n"], {}, []
    get = WAYS[spec["way"]]()
    start_line = threading.Barrier(n + 1)

    def work(page):
        start_line.wait()
        try:
            replies[page] = get("%s/?page=%d" % (spec["url"], page))
        except Exception as error:
            replies[page] = error

    threads = [threading.Thread(target=work, args=(page,)) for page in range(n)]
    for thread in threads:
        thread.start()
    start_line.wait()
    start = time.perf_counter()
    if spec["look_after_s"] is not None:
        time.sleep(spec["look_after_s"])
        calls = stacks(threads)
    for thread in threads:
        thread.join()
    wall_s = time.perf_counter() - start
    rows, failed = answering.pages(sorted(replies.items()))
    return {
        "openssl": ssl.OPENSSL_VERSION,
        "truststore": version(),
        "context": kind(getattr(get, "context", None)),
        "pages": rows,
        "failed": failed and answering.failure(failed[0], failed[1], None),
        "wall_s": wall_s,
        "stacks": calls,
    }


def kind(context):
    """Return the module that a context's class comes from: truststore says it is ssl's."""
    return None if context is None else type(context).__module__


def version():
    """Return the version of the truststore that was used: "0.10.5", "0.10.4 of pip"."""
    for name, suffix in (("truststore", ""), ("pip._vendor.truststore", " of pip")):
        if name in sys.modules:
            return sys.modules[name].__version__ + suffix
    return None


def stacks(threads):
    """Return the calls of each thread that is still at work."""
    import linecache

    stacks_of_threads, frames = [], sys._current_frames()
    for thread in threads:
        frame, calls = frames.get(thread.ident), []
        while frame is not None:
            code, line = frame.f_code, frame.f_lineno
            text = linecache.getline(code.co_filename, line).strip()
            calls.append([frame.f_globals.get("__name__"), code.co_name, line, text])
            frame = frame.f_back
        if calls:
            stacks_of_threads.append(calls[::-1])
    return stacks_of_threads


if __name__ == "__main__":
    answering.answer(run)
