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
    """Take the steps, fetch the pages, and return the dictionary that is printed.

    Whether the responses are those that were asked for is for the reader to say: `failure` is
    about exceptions.

    spec: client (its file), steps, url, n, delay_s, ca_file, and if they differ from the usual
    verify, bundle (stands in certifi's place), gather (names of instruments) and trace_limit.
    """
    answer = {"python": sys.version.split()[0], "failure": None, "responses": []}
    gather = spec.get("gather") or []
    owners = provenance.Provenance()
    try:
        if "profile" in gather and "trace" in gather:
            raise ValueError("a profile and a trace need a run each")
        answer.update(take_steps_and_fetch(spec, gather, owners))
    except Exception as error:
        answer["failure"] = answering.failure(None, error, spec.get("ca_file"))
    answer["openssl"], answer["openssl_of_pyopenssl"] = provenance.openssl_versions()
    if "provenance" in gather:
        answer["provenance"] = owners.rows()
    return answer


def take_steps_and_fetch(spec, gather, owners):
    """Take the steps and fetch; return what is added to the answer.

    That is nothing if no page is asked for.
    """
    code = client.Client(spec["client"])
    if spec.get("bundle"):
        steps.trust_bundle(spec["bundle"])
    counters = None
    if spec["n"] and code.is_countable and not code.is_of_gevent:
        counters = counting.count_imports()
    owners.note_names("start")
    steps.take_all(
        spec["steps"], code.is_of_gevent, lambda name: owners.note_names("after " + name)
    )
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
        ("provenance", lambda: owners),
    )
    instruments = [(name, new_instrument()) for name, new_instrument in makers if name in gather]
    for _, instrument in instruments:
        fetch = functools.partial(instrument.observe, fetch)
    figures = measure(spec, fetch, gather)
    figures["counters"].update(counters)
    figures.update((name, instrument.rows()) for name, instrument in instruments)
    return figures


def profile_of(code):
    """Return the profile that is right for a client: one cProfile does not do for threads."""
    if code.is_threaded:
        import thread_profile

        return thread_profile.ThreadProfile()
    return profiling.Profile()


def measure(spec, fetch, gather):
    """Fetch pages 0 to n - 1; return what that took, and how each response came out."""
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
    usage_before = resource.getrusage(resource.RUSAGE_SELF)
    start = clock()
    try:
        first = 0
        replies = fetch(urls, verify)
    except Exception as error:
        if not urls.position:  # no page has anything to do with it
            raise
        first, replies = urls.position - 1, [error]
    wall_s = clock() - start  # and nothing before that sets off the garbage collector
    usage = resource.getrusage(resource.RUSAGE_SELF)
    longest_stall_s = heartbeat.stop()
    figures = {
        "wall_s": rounded(wall_s),
        "user_s": rounded(usage.ru_utime - usage_before.ru_utime),
        "sys_s": rounded(usage.ru_stime - usage_before.ru_stime),
        "process_cpu_s": rounded(usage.ru_utime + usage.ru_stime),
        "peak_rss_kib": peak_rss_kib(usage),
        "counters": {"longest_stall_s": rounded(longest_stall_s)},
    }
    if "timeline" in gather:
        figures["heartbeats"] = [rounded(max(t - start, 0.0)) for t in heartbeat.times]
    figures["responses"], failed = answering.pages(enumerate(replies, first))
    if failed:
        figures["failure"] = answering.failure(*failed, ca_file=spec.get("ca_file"))
    return figures


def silence_unverified():
    """Silence the warning of each request that asks not to verify: that is asked for here."""
    import warnings

    warnings.filterwarnings("ignore", message="Unverified HTTPS request")


def allow_open_files(n):
    """Raise the limit of open files if n connections would meet it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 4 * n + 256
    if soft != resource.RLIM_INFINITY and soft < limit:
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def peak_rss_kib(usage):
    """Return the most memory that this process has held, in KiB.

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
    """Round seconds to the microsecond; None stays None."""
    return None if seconds is None else round(seconds, 6)


if __name__ == "__main__":
    answering.answer(run)
