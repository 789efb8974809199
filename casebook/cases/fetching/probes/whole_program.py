"""A client of fetching/clients as a program of its own: imports, cure, fetch, and the end.

Reads {"client" (its file), "url", "n", "bundle" (which stands in certifi's place), "cure" (the
folder of shared_context.py, or ""), "one_core", "sample"}. Prints {"ok" (right answers), "loads"
(of bundles), "loads_before" (at import, also among the loads), "fetch_cpu_s", "cpu_s" (of the
process up to here), "parts"}: the processor time of the fetch in seconds by what it was spent on,
or null.

`sample` looks every half of a millisecond at what is running, and charges it with the processor
time since the last look. A profiler charges each function call with its own work as
well, and is confused by greenlets. Only for clients that patch with gevent, which have one thread.
"""

import os
import signal
import sys
import time

sys.dont_write_bytecode = True
import answering  # noqa: E402
import client  # noqa: E402
import counting  # noqa: E402

EVERY_S = 0.0005

#: What a look is charged to: the first of these on the stack, from inside. So the standard library
#: counts for the package that called it, but for HTTP itself.
PACKAGES = ("requests", "urllib3", "gevent", "http", "shared_context", "grequests")

loads, spent, last, charging = dict.fromkeys(counting.NAMES, 0), {}, 0.0, False


def run(spec):
    if spec["one_core"]:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import certifi

    certifi.where = certifi.core.where = lambda: spec["bundle"]
    code = client.Client(spec["client"])
    if not code.is_of_gevent:
        count_loads()  # of imports too
    fetch = code.load()
    if code.is_of_gevent:
        count_loads()  # not before gevent has patched
    if spec["cure"]:
        sys.path.append(spec["cure"])
        import shared_context

        shared_context.install()

    urls = ["%s/get?page=%d" % (spec["url"], page) for page in range(spec["n"])]
    loads_before, before_s = loads["load_verify_locations"], time.process_time()
    if spec["sample"]:
        start_looking()
    responses = fetch(urls, True)
    if spec["sample"]:
        stop_looking()
    after_s = time.process_time()
    pages, _ = answering.pages(enumerate(responses))
    return {
        "ok": sum(row["status"] == 200 and row["page"] == row["got_page"] for row in pages),
        "loads": loads["load_verify_locations"],
        "loads_before": loads_before,
        "fetch_cpu_s": round(after_s - before_s, 6),
        "cpu_s": round(after_s, 6),
        "parts": {part: round(cpu_s, 6) for part, cpu_s in spent.items()} or None,
    }


def count_loads():
    """Count loads of bundles, with a frame of `counting` around each."""
    import ssl

    counting.count_loads(ssl.SSLContext, loads)


def start_looking():
    global last
    signal.signal(signal.SIGALRM, charge)
    last = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)


def stop_looking():
    signal.setitimer(signal.ITIMER_REAL, 0)
    charge(None, None)


def charge(_, frame):
    """Charge the running code with the processor time since the last look."""
    global last, charging
    # On a slow machine the next alarm rings within a look. It would move `last` ahead of this
    # look's `now`; so it does nothing, and its time is the next look's.
    if charging:
        return
    charging = True
    now_s, part = time.process_time(), part_of(frame)
    spent[part] = spent.get(part, 0) + now_s - last
    last, charging = now_s, False


def part_of(frame):
    """Return what a stack is working for: "handshake", "load", one of PACKAGES, or "others"."""
    if frame is not None and frame.f_code.co_name == "do_handshake":
        return "handshake"
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package == "counting":
            return "load"
        if package in PACKAGES:
            return package
        frame = frame.f_back
    return "others"


if __name__ == "__main__":
    answering.answer(run)
