"""Fetch n pages inside a stack: one JSON object in (standard input), one out (standard output).

Runs on Python 2.7 to 3.14 with the standard library and the stack's own packages. Whatever is
imported up here is imported before the stack's first step, so it must not bring in `ssl`,
`socket`, `select` or `threading`: what gets imported before gevent patches is the experiment.
"""

import json
import os
import resource
import sys

# The packages of a stack may keep their bytecode; this folder stays as it is.
_writes_no_bytecode = sys.dont_write_bytecode
sys.dont_write_bytecode = True
import calltrace  # noqa: E402
import clients  # noqa: E402
import counting  # noqa: E402
import profiling  # noqa: E402
import provenance  # noqa: E402
import steps  # noqa: E402
import timeline  # noqa: E402

sys.dont_write_bytecode = _writes_no_bytecode

clock = counting.clock


def run(spec):
    """Take the steps, fetch the pages, look at them; the dictionary that is printed."""
    gather = spec.get("gather") or []
    found = provenance.Provenance() if "provenance" in gather else None
    result = {"python": sys.version.split()[0], "failure": None, "responses": []}
    try:
        if "profile" in gather and "trace" in gather:
            raise ValueError("a profile and a trace need a run each")
        if spec.get("bundle"):
            trust_bundle(spec["bundle"])
        early = None
        if spec["client"] in clients.NOT_COUNTABLE:
            early = {}
        elif spec["client"] not in clients.OF_GEVENT and spec["n"]:
            early = counting.install_early()
        new_session = take_steps(spec, found)
        fetch(spec, new_session, gather, found, early, result)
    except Exception as error:
        result["failure"] = failure(None, error, spec)
    result["openssl"], result["openssl_of_pyopenssl"] = provenance.openssl_versions()
    if found:
        result["provenance"] = found.rows
    return result


def trust_bundle(path):
    """Put a file in the place of certifi's bundle; libraries ask for it when they are imported."""
    try:
        import certifi
    except ImportError:
        return  # then nobody asks for it

    certifi.where = certifi.core.where = lambda: path


def take_steps(spec, found):
    """Take each step in turn; what makes the session of each request, or None."""
    new_session = None
    if found:
        found.look("start")
    for name in steps.for_client(spec["steps"], spec["client"]):
        new_session = steps.take(name) or new_session
        if found:
            found.look("after " + name)
    return new_session


def fetch(spec, new_session, gather, found, early, result):
    """Fetch pages 0 to n - 1 and add what was seen and measured to `result`."""
    n = spec["n"]
    if n == 0:
        return
    client = clients.CLIENTS[spec["client"]](new_session)
    url = "%s/delay/%s?page=" % (spec["url"], spec["delay_s"])
    urls = [url + str(page) for page in range(n)]
    verify = spec.get("verify", spec.get("ca_file") or True)
    if verify is False:
        silence_unverified()
    allow_open_files(n)

    counters = counting.install() if early is None else early
    if early:
        counting.begin(counters)
    if found:
        found.watch_connections()
    times = timeline.install() if "timeline" in gather else None
    # A heartbeat would stand between the lines of a profile or a trace.
    quiet = "profile" in gather or "trace" in gather
    heartbeat = counting.Heartbeat(keep_times=times is not None)
    observer = None
    if "profile" in gather:
        observer = profile_of(spec["client"])
    elif "trace" in gather:
        observer = calltrace.Trace(spec.get("trace_limit", calltrace.LIMIT))

    if not quiet:
        heartbeat.start()
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = clock()
    if observer is None:
        replies = client.get(urls, verify)
    else:
        replies = observer.observe(client.get, urls, verify)
    wall_s = clock() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    heartbeat.stop()
    counters["longest_stall_s"] = rounded(heartbeat.longest_stall_s)

    result["wall_s"] = rounded(wall_s)
    result["user_s"] = rounded(after.ru_utime - before.ru_utime)
    result["sys_s"] = rounded(after.ru_stime - before.ru_stime)
    result["process_cpu_s"] = rounded(after.ru_utime + after.ru_stime)
    result["peak_rss_kib"] = peak_rss_kib(after)
    result["counters"] = dict(counters)
    if found:
        found.look("connected", connected=True)
    if times is not None:
        result["timeline"] = timeline.rows(times, start)
        result["heartbeats"] = [rounded(t - start) for t in heartbeat.times]
    if observer:
        result[observer.name] = observer.rows()
    check(replies, spec, result)


def profile_of(client):
    """The profile that is right for a client: one cProfile does not do for threads."""
    if client == "threads":
        import recording

        return recording.Recording()
    return profiling.Profile()


def silence_unverified():
    """No warning for each request that asks not to verify: that is asked for here."""
    import warnings

    warnings.filterwarnings("ignore", message="Unverified HTTPS request")


def allow_open_files(n):
    """Raise the limit of open files where n connections would meet it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * n + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def peak_rss_kib(usage):
    """The most memory that this process has held, in KiB.

    Linux's ru_maxrss starts with the memory of the process that started this one and survives
    exec, so the kernel's own high-water mark of this address space comes first (proc(5), VmHWM).
    """
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1])
    except EnvironmentError:
        pass
    return usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)


def check(replies, spec, result):
    """Look at every reply: status 200 and the page that was asked for. Names the first failure."""
    for page, reply in enumerate(replies):
        row = {"page": page, "status": None, "got_page": None}
        problem = None
        if reply is None or isinstance(reply, Exception):
            problem = reply or RuntimeError("no response and no exception")
        else:
            row["status"] = reply.status_code
            row["got_page"] = page_of(reply)
            if reply.status_code != 200:
                problem = WrongStatus("status %s %s" % (reply.status_code, reply.reason))
            elif row["got_page"] != page:
                problem = WrongPage("asked for page %s, got %s" % (page, row["got_page"]))
        result["responses"].append(row)
        if problem is not None and result["failure"] is None:
            result["failure"] = failure(page, problem, spec)


class WrongStatus(Exception):
    """A response that is not a 200."""


class WrongPage(Exception):
    """A response to another request than the one that was sent."""


def page_of(response):
    """The page number that the server echoed, or None. Servers send "3" or ["3"]."""
    try:
        page = response.json()["args"]["page"]
        return int(page[0] if isinstance(page, list) else page)
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def failure(page, error, spec):
    """An exception as {"page", "type", "message"}: of the innermost cause, without paths."""
    cause = innermost(error)
    message = str(cause)
    ca_folder = os.path.dirname(spec.get("ca_file") or "")
    for folder in (ca_folder, sys.path[0], sys.prefix, getattr(sys, "base_prefix", "")):
        if len(folder) > 1:
            message = message.replace(folder + os.sep, "")
    return {"page": page, "type": type(cause).__name__, "message": message}


def innermost(error):
    """The exception at the bottom: requests and urllib3 wrap the one that says what happened."""
    for _ in range(10):
        inside = [getattr(error, "reason", None), getattr(error, "__cause__", None)]
        inside = [e for e in inside + list(error.args) if isinstance(e, Exception)]
        if not inside:
            break
        error = inside[0]
    return error


def rounded(seconds):
    """Seconds to the microsecond; None stays None."""
    return None if seconds is None else round(seconds, 6)


def main():
    # Libraries that print, print to standard error: standard output is for the one object.
    out = os.dup(1)
    os.dup2(2, 1)
    result = run(json.load(sys.stdin))
    with os.fdopen(out, "w") as stream:
        json.dump(result, stream, sort_keys=True)
        stream.write("\n")


if __name__ == "__main__":
    main()
