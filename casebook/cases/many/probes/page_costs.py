"""What fetching a page costs one process, and where the time goes: one JSON object in, one out.

It runs on Python 3.10 and newer.

In: {"way": of WAYS, or "go", "n": pages, "kept": whether over one connection; "chain" of the
server's certificates, where it is not the usual one; with "go" its "program" too, page_costs.go
built}. The trust is certifi's bundle with the server's authority, as a
file.

Out: CPU seconds of the client's process for all n pages, {"cpu_s", of these "load_s" in loads of
certificates and "handshake_s" in handshakes}, {"loads", "handshakes"} how many, "right": pages that
were exactly the right ones, "server": its counters, "openssl"}. A page before them, which is not
counted, imports what there is to import.
"""

import asyncio
import hashlib
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time

import pages_server

spent, calls = {"load": 0.0, "handshake": 0.0}, {"load": 0, "handshake": 0}


def timed(owner, name, kind):
    """Note the CPU time of each call, and that it was."""
    function = getattr(owner, name)

    def noted(*args, **options):
        start = time.thread_time()
        try:
            result = function(*args, **options)
            calls[kind] += 1  # asyncio asks again and again until the handshake is complete
            return result
        finally:
            spent[kind] += time.thread_time() - start

    setattr(owner, name, noted)


def with_requests(urls, bundle, keep_alive, adapter):
    """Fetch with a session of requests that has this adapter."""
    import requests

    with requests.Session() as session:
        session.verify = bundle
        session.mount("https://", adapter())
        if not keep_alive:
            session.headers["Connection"] = "close"
        return [session.get(url, timeout=60).content for url in urls]


def requests_stock(urls, bundle, keep_alive):
    """Fetch with requests as it is: a load for each connection."""
    import requests

    return with_requests(urls, bundle, keep_alive, requests.adapters.HTTPAdapter)


def requests_cured(urls, bundle, keep_alive):
    """Fetch with requests and shared_context.py: a load for the process."""
    root = os.path.abspath(__file__)
    for _ in ("page_costs.py", "probes", "many", "cases", "casebook"):
        root = os.path.dirname(root)
    sys.path.append(root)
    try:
        import shared_context
    finally:
        sys.path.remove(root)
    return with_requests(urls, bundle, keep_alive, shared_context.SharedContextAdapter)


def aiohttp_one(urls, bundle, keep_alive):
    """Fetch with aiohttp, one session with one context, a page after the other."""
    import aiohttp

    async def all_of_them():
        context = ssl.create_default_context(cafile=bundle)
        connector = aiohttp.TCPConnector(ssl=context, force_close=not keep_alive)
        async with aiohttp.ClientSession(connector=connector) as session:
            bodies = []
            for url in urls:
                async with session.get(url) as reply:
                    bodies.append(await reply.read())
            return bodies

    return asyncio.run(all_of_them())


WAYS = {
    "requests-stock": requests_stock,
    "requests-cured": requests_cured,
    "aiohttp": aiohttp_one,
}


def run(spec):
    """Fetch the pages from a server of our own, and return what they cost both."""
    import certifi

    timed(ssl.SSLContext, "load_verify_locations", "load")
    timed(ssl.SSLSocket, "do_handshake", "handshake")
    timed(ssl.SSLObject, "do_handshake", "handshake")
    served = pages_server.Pages(chain=spec.get("chain", "ecdsa"))
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder, served as server:
        bundle = os.path.join(folder, "bundle.pem")
        with open(bundle, "w") as file:
            for part in (certifi.where(), server.ca_file):
                with open(part) as certificates:
                    file.write(certificates.read())
        urls = ["https://%s/page/%d" % (server.hosts[0], number) for number in range(spec["n"])]
        if spec["way"] == "go":
            answer = by_go(spec["program"], urls, bundle, spec["kept"], server.reset)
        else:
            answer = by_python(WAYS[spec["way"]], urls, bundle, spec["kept"], server.reset)
        return answer | {"server": server.counters()}


def by_python(fetch, urls, bundle, keep_alive, reset):
    """Measure what the pages cost this process, after one that is not counted."""
    fetch(urls[:1], bundle, keep_alive)
    reset()
    for counter in (spent, calls):
        counter.update(dict.fromkeys(counter, 0))
    start, wall = time.process_time(), time.perf_counter()
    bodies = fetch(urls, bundle, keep_alive)
    cpu_s, wall_s = time.process_time() - start, time.perf_counter() - wall
    right = sum(body == pages_server.page(number) for number, body in enumerate(bodies))
    return {
        "cpu_s": cpu_s, "wall_s": wall_s, "load_s": spent["load"], "loads": calls["load"],
        "handshake_s": spent["handshake"], "handshakes": calls["handshake"], "right": right,
        "openssl": ssl.OPENSSL_VERSION,
    }  # fmt: skip


def by_go(program, urls, bundle, keep_alive, reset):
    """Measure the same of page_costs.go, in a process of its own: its CPU, not this one's."""
    spec = {"urls": urls, "kept": keep_alive, "trusted": bundle}
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with subprocess.Popen([program], env={}, **pipes) as process:
        process.stdin.write(json.dumps(spec) + "\n")
        process.stdin.flush()
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("page_costs.go got no page")
        reset()
        answer = json.loads(process.communicate("now\n")[0])
    digests = answer.pop("digests")
    pages = (pages_server.page(number) for number in range(len(urls)))
    right = sum(
        digest == hashlib.sha256(page).hexdigest()
        for digest, page in zip(digests, pages, strict=True)
    )
    return answer | {"right": right, "openssl": None}


if __name__ == "__main__":
    print(json.dumps(run(json.load(sys.stdin))))
