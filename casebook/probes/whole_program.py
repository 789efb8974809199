"""A client of casebook/clients as a program of its own: imports, cure, fetch, and the end.

Reads {"client" (its file), "url", "n", "bundle" (which stands in certifi's place), "cure" (the
folder of shared_context.py, or ""), "one_core", "sample"}. Prints {"ok" (right answers), "loads"
(of bundles), "loads_before" (at import, also among the loads), "fetch_cpu_s", "cpu_s" (of the
process up to here), "parts"}: the processor time of the fetch in seconds by what it was spent on,
or null.

`sample` looks every half of a millisecond at what is running, and charges it with the processor
time since the last look. A profiler charges each function call with its own work as
well, and is confused by greenlets. Only for clients that patch with gevent, which have one thread.
"""

import importlib
import json
import os
import resource
import signal
import sys
import time

sys.dont_write_bytecode = True
EVERY_S = 0.0005

#: What a look is charged to: the first of these on the stack, from inside. So the standard library
#: counts for the package that called it, but for HTTP itself.
PACKAGES = ("requests", "urllib3", "gevent", "http", "shared_context", "grequests")

loads, spent, last = [], {}, 0.0


def main(spec):
    if spec["one_core"]:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import certifi

    certifi.where = certifi.core.where = lambda: spec["bundle"]
    if not spec["sample"]:
        count_loads()  # of imports too
    folder, file = os.path.split(spec["client"])
    sys.path.insert(0, folder)
    client = importlib.import_module(os.path.splitext(file)[0])
    sys.path.remove(folder)
    if spec["sample"]:
        count_loads()  # not before gevent has patched
    if spec["cure"]:
        sys.path.append(spec["cure"])
        import shared_context

        shared_context.install()

    urls = ["%s/get?page=%d" % (spec["url"], page) for page in range(spec["n"])]
    loads_before, before_s = len(loads), cpu_s()
    if spec["sample"]:
        start_looking()
    responses = client.fetch(urls, True)
    if spec["sample"]:
        stop_looking()
    after_s = cpu_s()
    return {
        "ok": sum(is_page(*each) for each in enumerate(responses)),
        "loads": len(loads),
        "loads_before": loads_before,
        "fetch_cpu_s": round(after_s - before_s, 6),
        "cpu_s": round(after_s, 6),
        "parts": {part: round(cpu_s, 6) for part, cpu_s in spent.items()} or None,
    }


def cpu_s():
    """Processor time of this process, user's and system's, in seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def count_loads():
    """Count loads of bundles, with a frame of ours around each."""
    import ssl

    load = ssl.SSLContext.load_verify_locations

    def counted_load(*args, **kwargs):
        loads.append(1)
        return load(*args, **kwargs)

    ssl.SSLContext.load_verify_locations = counted_load


def is_page(page, response):
    """Whether a response is the page that was asked for."""
    try:
        return response.status_code == 200 and response.json()["args"] == {"page": [str(page)]}
    except (AttributeError, KeyError, ValueError):
        return False


def start_looking():
    global last
    signal.signal(signal.SIGALRM, look)
    last = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)


def stop_looking():
    signal.setitimer(signal.ITIMER_REAL, 0)
    look(None, None)


def look(_, frame):
    """Charge what is running with the processor time since the last look."""
    global last
    now, part = time.process_time(), part_of(frame)
    if now > last:  # else another look came in between, and has charged it
        spent[part] = spent.get(part, 0) + now - last
        last = now


def part_of(frame):
    """What a stack is working for: "handshake", "load", one of PACKAGES, or "others"."""
    if frame is not None and frame.f_code.co_name == "do_handshake":
        return "handshake"
    while frame is not None:
        if frame.f_code.co_name == "counted_load":
            return "load"
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in PACKAGES:
            return package
        frame = frame.f_back
    return "others"


if __name__ == "__main__":
    out = os.dup(1)
    os.dup2(2, 1)  # what libraries print is not the answer
    answer = main(json.load(sys.stdin))
    with os.fdopen(out, "w") as stream:
        json.dump(answer, stream)
