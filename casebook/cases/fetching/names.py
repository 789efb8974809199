"""What the first case's clients and columns are called, and their colours."""

from casebook import colours, words
from casebook.words import PYTHONS, RUN

words.call("client", {"httpx-each": "httpx, a client each", "go": "Go"})
words.call("scheme", {"http": "plain HTTP", "https": "HTTPS"})
words.call(
    "trust",
    {
        "authority": "verify=one certificate",
        "bundle": "verify=True",
        "path": "verify=path",
        "off": "verify=False",
        "off-hidden": "verify=False, no default bundle",
    },
)
colours.choose(
    "trust",
    {
        "authority": "olive",
        "bundle": "stage-2",
        "path": "requests",
        "off": "stage-1",
        "off-hidden": "stage-3",
    },
)
colours.choose(
    "verdict",
    {
        "serial": colours.ROLES["slow"],
        "concurrent": colours.ROLES["fast"],
        "between": colours.ROLES["other"],
    },
)

# Runs of grequests and eventlet are about their stacks, and so are those in which threads or a loop
# take the place of greenlets.
words.call(
    RUN,
    {
        ("", "grequests"): "{}",
        ("", "eventlet"): "{}",
        ("", "threads"): "{}, threads",
        ("", "requests"): "{}, a loop",
    },
)
# In the first case's loop of `requests`, the stack plays no part.
_STAGES = (
    *("stage-0", "stage-2-injected-today"),
    *(f"stage-{i}-{python}" for i in range(5) for python in PYTHONS),
)
words.call(RUN, {(stack, "requests"): "requests" for stack in _STAGES})
# The four ways of chapter 15, which are lines in one chart.
colours.choose(
    "way",
    {
        "grequests": colours.ROLES["slow"],
        "grequests, cured": colours.ROLES["fast"],
        "threads": "urllib3",
        "threads, cured": "pycurl",
    },
)
# Real threads and greenlets stand side by side in one chart.
colours.choose(
    RUN,
    {
        ("stage-1-today", "threads"): "threads",
        ("requests-2.34.2-today", "threads"): "threads",
        ("cured-today", "threads"): "cured-threads",
    },
)

words.LIBRARIES.update(
    ("grequests", "requests", "httpx", "aiohttp", "niquests", "urllib3"),
    ("pycurl", "curl_cffi", "pyOpenSSL", "gevent"),
)

words.head(
    {
        "counters_connections": "connections",
        "counters_handshakes": "TLS handshakes",
        "counters_requests": "requests served",
        "counters_peak_in_flight": "most in flight at once",
        "counters_contexts": "SSL contexts made",
        "counters_load_verify_locations": "load_verify_locations calls",
        "counters_default_loads": "default certificate loads",
        "counters_loads_before": "certificate loads at import",
        "counters_longest_stall_s": "event loop stood still, s",
    }
)

#: What stacks are called beside the one whose requests wait for each other, which they cure. They
#: are in the order of chapter 7: by the place where they cut.
CURES = {
    "stage-2-injected-today": "uncured",
    "stage-1-today": "uninstalled",
    "extract-today": "extracted",
    "stage-3-today": "gevent_openssl alone",
    "stage-4-today": "gevent_openssl with recv_into",
    "patch-all-first-today": "everything patched first",
    "patch-select-today": "select patched",
}
