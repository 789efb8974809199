"""Fetch n pages inside a stack: one JSON object in (standard input), one out (standard output).

Runs on Python 2.7 to 3.14 with the standard library and the stack's own packages. Whatever is
imported up here is imported before the stack's first step, so it must not bring in `ssl`,
`socket`, `select` or `threading`: what gets imported before gevent patches is the experiment.
"""

import functools
import resource
import sys

# The packages of a stack may keep their bytecode; this folder stays as it is.
_writes_no_bytecode = sys.dont_write_bytecode
sys.dont_write_bytecode = True
import answering  # noqa: E402
import calltrace  # noqa: E402
import client  # noqa: E402
import counting  # noqa: E402
import profiling  # noqa: E402
import provenance  # noqa: E402
import steps  # noqa: E402
import timeline  # noqa: E402
import turns  # noqa: E402

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
    found = provenance.Provenance()
    try:
        if "profile" in gather and "trace" in gather:
            raise ValueError("a profile and a trace need a run each")
        answer.update(take_steps_and_fetch(spec, gather, found))
    except Exception as error:
        answer["failure"] = answering.failure(None, error, spec.get("ca_file"))
    answer["openssl"], answer["openssl_of_pyopenssl"] = provenance.openssl_versions()
    if "provenance" in gather:
        answer["provenance"] = found.rows()
    return answer


def take_steps_and_fetch(spec, gather, found):
    """What is added to the answer; nothing where no page is asked for."""
    code = client.Client(spec["client"])
    if spec.get("bundle"):
        steps.trust_bundle(spec["bundle"])
    counters = None
    if spec["n"] and code.is_countable and not code.is_of_gevent:
        counters = counting.count_imports()
    found.look("start")
    steps.take_all(spec["steps"], code.is_of_gevent, lambda name: found.look("after " + name))
    if not spec["n"]:
        return {}
    fetch = code.load()
    counters = counting.install(counters) if code.is_countable else {}
    # Each observes a call, and has rows then. The first is the closest to the fetch.
    makers = (
        ("profile", lambda: profile_of(code)),
        ("trace", lambda: calltrace.Trace(spec.get("trace_limit", calltrace.LIMIT))),
        ("turns", lambda: turns.Turns(code.is_threaded)),
        ("timeline", timeline.Timeline),
        ("provenance", lambda: found),
    )
    instruments = [(name, make()) for name, make in makers if name in gather]
    for _, instrument in instruments:
        fetch = functools.partial(instrument.observe, fetch)
    seen = measure(spec, fetch, gather)
    seen["counters"].update(counters)
    seen.update((name, instrument.rows()) for name, instrument in instruments)
    return seen


def profile_of(code):
    """The profile that is right for a client: one cProfile does not do for threads."""
    if code.is_threaded:
        import thread_profile

        return thread_profile.ThreadProfile()
    return profiling.Profile()


def measure(spec, fetch, gather):
    """Fetch pages 0 to n - 1: what that took, and how each response came out."""
    urls = client.Urls(
        "%s/delay/%s?page=%d" % (spec["url"], spec["delay_s"], page) for page in range(spec["n"])
    )
    verify = spec.get("verify", spec.get("ca_file") or True)
    if verify is False:
        silence_unverified()
    allow_open_files(spec["n"])
    heartbeat = counting.Heartbeat()
    # A heartbeat would stand between the lines of a profile or a trace, and take turns of its own.
    if not {"profile", "trace", "turns"} & set(gather):
        heartbeat.start()
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = clock()
    try:
        first = 0
        replies = fetch(urls, verify)
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
    if "timeline" in gather:
        seen["heartbeats"] = [rounded(max(t - start, 0.0)) for t in heartbeat.times]
    seen["responses"], failed = answering.pages(enumerate(replies, first))
    if failed:
        seen["failure"] = answering.failure(*failed, ca_file=spec.get("ca_file"))
    return seen


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


def rounded(seconds):
    """Seconds to the microsecond; None stays None."""
    return None if seconds is None else round(seconds, 6)


if __name__ == "__main__":
    answering.answer(run)
