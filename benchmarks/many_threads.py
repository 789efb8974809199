"""What benchmarks/shared_context.py runs inside stacks' environments, Python 3.7 to today.

    python many_threads.py FOLDER BUNDLE KIND JOB N URL ...

KIND: stock, cured (FOLDER holds shared_context.py) or preloaded (cured, loaded before the clock
starts). JOB: `threads` (N threads, each with one requests.get) or `sessions` (one after another, N
sessions that stay open). Prints one line of JSON: `loads` (certificate bundles, since the clock
started), `loads_before`, `ok`, `wall_s`, `cpu_s`; `process_cpu_s` and `process_wall_s`, with the
import of requests and whatever it loads; for `sessions` also `kib_each`, the memory that each
session but the first one added.
"""

import json
import resource
import ssl
import sys
import threading
import time

import certifi

folder, bundle, kind, job, n, *urls = sys.argv[1:]
began = time.perf_counter()
certifi.where = certifi.core.where = lambda: bundle
loads, load = [], ssl.SSLContext.load_verify_locations
ssl.SSLContext.load_verify_locations = lambda *args, **named: (
    loads.append(1) or load(*args, **named)
)

import requests  # noqa: E402

if kind != "stock":
    sys.path.insert(0, folder)
    import shared_context

    shared_context.install()
    if kind == "preloaded":
        shared_context.preload()


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_kib():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() // 1024


def fetch(number):
    page = str(number)
    response = requests.get(urls[number % len(urls)] + "/get?page=" + page, timeout=60)
    if response.status_code == 200 and response.json()["args"] == {"page": [page]}:
        ok.append(number)


def threads():
    every = [threading.Thread(target=fetch, args=(number,)) for number in range(int(n))]
    for each in every:
        each.start()
    for each in every:
        each.join()
    return {}


def sessions():
    opened, after_first = [], None
    for number in range(int(n)):
        opened.append(requests.Session())
        if opened[-1].get(urls[0] + "/get", timeout=60).status_code == 200:
            ok.append(number)
        after_first = after_first or resident_kib()
    return {"kib_each": (resident_kib() - after_first) / (int(n) - 1)}


ok = []
before, start, already = cpu_s(), time.perf_counter(), len(loads)
found = {"threads": threads, "sessions": sessions}[job]()
now = time.perf_counter()
found.update(
    wall_s=now - start,
    process_wall_s=now - began,
    cpu_s=cpu_s() - before,
    process_cpu_s=cpu_s(),
    loads_before=already,
    loads=len(loads) - already,
    ok=len(ok),
)
print(json.dumps(found))
