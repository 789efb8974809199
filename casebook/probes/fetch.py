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
import client  # noqa: E402
import counting  # noqa: E402
import profiling  # noqa: E402
import provenance  # noqa: E402
import steps  # noqa: E402
import timeline  # noqa: E402

sys.dont_write_bytecode = _writes_no_bytecode

clock = counting.clock


def run(spec):
    """Take the steps, fetch the pages; the dictionary that is printed.

    Whether the responses are those that were asked for is for the reader to say: `failure` is
    about exceptions.

    spec: client (its file), steps, url, n, delay_s, ca_file, and where they differ from the usual
    verify, bundle (stands in certifi's place), gather (names of instruments) and trace_limit.
    """
    answer = {"python": sys.version.split()[0], "failure": None, "responses": []}
    gather = spec.get("gather") or []
    found = provenance.Provenance() if "provenance" in gather else None
    try:
        if "profile" in gather and "trace" in gather:
            raise ValueError("a profile and a trace need a run each")
        answer.update(take_steps_and_fetch(spec, gather, found))
    except Exception as error:
        answer["failure"] = failure(None, error, spec)
    answer["openssl"], answer["openssl_of_pyopenssl"] = provenance.openssl_versions()
    if found:
        answer["provenance"] = found.rows
    return answer


def take_steps_and_fetch(spec, gather, found):
    """What is added to the answer; nothing where no page is asked for."""
    code = client.Client(spec["client"])
    if spec.get("bundle"):
        trust_bundle(spec["bundle"])
    counters = None
    if spec["n"] and code.is_countable and not code.is_of_gevent:
        counters = counting.count_imports()
    look = found.look if found else lambda step: None
    look("start")
    steps.take_all(spec["steps"], code.is_of_gevent, lambda name: look("after " + name))
    if not spec["n"]:
        return {}
    fetch = code.load()
    counters = counting.install(counters) if code.is_countable else {}
    if found:
        found.watch_connections()
    times = timeline.Timeline() if "timeline" in gather else None
    observer = None
    if "profile" in gather:
        observer = profile_of(code)
    elif "trace" in gather:
        observer = calltrace.Trace(spec.get("trace_limit", calltrace.LIMIT))
    seen = measure(spec, fetch, observer, times)
    seen["counters"].update(counters)
    if found:
        found.look("connected")
    if observer:
        seen[observer.name] = observer.rows()
    return seen


def measure(spec, fetch, observer, times):
    """Fetch pages 0 to n - 1: what that took, and how each response came out."""
    urls = client.Urls(
        "%s/delay/%s?page=%d" % (spec["url"], spec["delay_s"], page) for page in range(spec["n"])
    )
    verify = spec.get("verify", spec.get("ca_file") or True)
    if verify is False:
        silence_unverified()
    allow_open_files(spec["n"])
    heartbeat = counting.Heartbeat()
    if not observer:  # a heartbeat would stand between the lines of a profile or a trace
        heartbeat.start()
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = clock()
    try:
        first = 0
        replies = observer.observe(fetch, urls, verify) if observer else fetch(urls, verify)
    except Exception as error:
        if not urls.taken:  # no page has anything to do with it
            raise
        first, replies = urls.taken - 1, [error]
    wall_s = clock() - start  # and nothing before that sets off the garbage collector
    after = resource.getrusage(resource.RUSAGE_SELF)
    longest_stall_s = heartbeat.stop()
    seen = {
        "wall_s": rounded(wall_s),
        "user_s": rounded(after.ru_utime - before.ru_utime),
        "sys_s": rounded(after.ru_stime - before.ru_stime),
        "process_cpu_s": rounded(after.ru_utime + after.ru_stime),
        "peak_rss_kib": peak_rss_kib(after),
        "counters": {"longest_stall_s": rounded(longest_stall_s)},
    }
    if times is not None:
        seen["timeline"] = times.rows(start)
        seen["heartbeats"] = [rounded(max(t - start, 0.0)) for t in heartbeat.times]
    seen["responses"], failed = read(enumerate(replies, first))
    if failed:
        seen["failure"] = failure(*failed, spec=spec)
    return seen


def profile_of(code):
    """The profile that is right for a client: one cProfile does not do for threads."""
    if code.is_threaded:
        import thread_profile

        return thread_profile.ThreadProfile()
    return profiling.Profile()


def trust_bundle(path):
    """Put a file in the place of certifi's bundle; libraries ask for it when they are imported."""
    try:
        import certifi
    except ImportError:
        return  # then nobody asks for it

    certifi.where = certifi.core.where = lambda: path


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


def read(replies):
    """What came for each page: rows {"page", "status", "got_page"}, and of the first that has an
    exception in its place (page, exception), or None."""
    rows, failed = [], None
    for page, reply in replies:
        status = got_page = None
        if reply is None or isinstance(reply, Exception):
            failed = failed or (page, reply or RuntimeError("no response and no exception"))
        else:
            status, body = status_and_body(reply)
            got_page = page_of(body)
        rows.append({"page": page, "status": status, "got_page": got_page})
    return rows, failed


def status_and_body(reply):
    """Of what one of the libraries calls a response, or of such a pair."""
    if isinstance(reply, tuple):
        return reply
    status = reply.status_code if hasattr(reply, "status_code") else reply.status
    return status, reply.content if hasattr(reply, "content") else reply.data


def page_of(body):
    """The page number that the server echoed, or None. Servers send "3" or ["3"]."""
    try:
        page = json.loads(body.decode("utf-8"))["args"]["page"]
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
