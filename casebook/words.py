"""How stacks, clients, Pythons and numbers are named on a page, in charts and in tables alike."""

import math
import re
from collections.abc import Iterable
from typing import Any

from casebook.errors import UsageError

LIVE, REFERENCE, PUBLISHED = "live", "reference", "published"

#: Before the name of another machine than the reference machine, in the column `instead` of rows.
ON = "on "

SOURCES = {LIVE: "measured here", REFERENCE: "reference machine", PUBLISHED: "published"}

#: Whose measurements are LIVE: those of this machine, or of the one that a book is written for.
_machine = "this machine"


def of_machine(label: str) -> None:
    """From now on in this process, what is LIVE is of another machine's file, and says so."""
    global _machine
    _machine = label
    SOURCES[LIVE] = "measured there"


def machine() -> str:
    """The machine whose measurements are LIVE, in words: "this machine", or a label."""
    return _machine


def is_of_file() -> bool:
    """Whether what is LIVE comes from a machine file."""
    return _machine != "this machine"


#: The sources' words for verdicts, in the words of this book.
VERDICTS = {"slow": "serial", "fast": "concurrent"}

PYTHONS = {"py27": "2.7", "py37": "3.7", "today": "today"}

#: Stacks that are known without their Python.
STACKS = {
    *("cured", "preloaded", "half-cured", "truststore-let-go", "truststore-in-clients"),
    *("truststore-0.10.4-in-clients", "requests-2.32.4-truststore"),
    *("pip-26.2-system-certs", "pip-26.3-system-certs"),
}

#: Stacks whose names, without their Python, say too little. What the sources call stages has the
#: name of what it adds to the one before; their numbers are in the glossary.
CALLED = {
    "stage-0": "whatever is there",
    "stage-1": "grequests alone",
    "stage-2": "+ pyOpenSSL",
    "stage-2-injected": "+ pyOpenSSL injected",
    "stage-3": "+ gevent_openssl",
    "stage-4": "+ recv_into",
    "toolbelt-x509": "requests-toolbelt's X509Adapter",
    "extract": "extracted",
    "patch-select": "select patched",
    "truststore-let-go": "truststore 0.10.5, patched",
    "truststore-in-clients": "truststore 0.10.5",
    "truststore-0.10.4-in-clients": "truststore 0.10.4",
    "requests-2.32.4-truststore": "requests 2.32.4",
    "pip-26.2-system-certs": "pip 26.2",
    "pip-26.3-system-certs": "pip 26.3",
    "patch-all-first": "everything patched first",
}

#: What stacks are called beside the one whose requests wait for each other, which they cure.
CURES = {
    "stage-2-injected-today": "uncured",
    "stage-3-today": "gevent_openssl alone",
    "stage-1-today": "uninstalled",
    "extract-today": "extracted",
    "stage-4-today": "gevent_openssl with recv_into",
    "patch-all-first-today": "everything patched first",
    "patch-select-today": "select patched",
}

#: How a stack's requests are sent, where the stack is what a run is about.
OF_A_STACK = {"grequests": "", "eventlet": "", "threads": "threads", "requests": "a loop"}

#: Clients whose names are not yet words.
CLIENTS = {
    "httpx-each": "httpx, a client each",
    "go": "Go",
    "requests-py37": "requests, Python 3.7",
    "requests-2.10-py37": "requests 2.10, Python 3.7",
    "requests-2.31-py37": "requests 2.31, Python 3.7",
    "httpx-h1": "httpx, HTTP/1.1",
    "httpx-h2": "httpx, HTTP/2",
    "bare-h2": "bare h2",
    "bare-h3": "bare h3",
    "curl-h3": "curl, HTTP/3",
    "niquests-h3": "niquests, HTTP/3",
    "pipes": "http.client",
}

#: What stands in further columns of runs.
VALUES: dict[str, dict] = {
    "client": CLIENTS,
    "trust": {
        "authority": "verify=one certificate",
        "bundle": "verify=True",
        "path": "verify=path",
        "off": "verify=False",
        "off-hidden": "verify=False, no default bundle",
    },
    "scheme": {"http": "plain HTTP", "https": "HTTPS"},
    "protocol": {"h3": "HTTP/3", "h2": "HTTP/2", "http/1.1": "HTTP/1.1"},
    "engine": {"twisted": "Twisted", "twisted-16.3": "Twisted 16.3", "granian": "Granian"},
    "order": {"completed": "as completed", "asked": "in the order asked", "chunks": "in chunks"},
    "connections": {1: "1 connection"},
    "at_once": {1: "one at a time"},
}

#: How a number in a column is said, where it stands alone.
_SAID = {
    "n": "n = {:,}",
    "connections": "{:,} connections",
    "at_once": "{:,} at once",
    "threads": "{:,} threads",
}


#: Names that are written small, at the beginning of a sentence too.
LIBRARIES = (
    *("grequests", "requests", "httpx", "http.client", "aiohttp", "niquests", "urllib3"),
    *("pycurl", "curl_cffi", "hyper", "pyOpenSSL", "h2load", "gevent"),
)


def split_stack(stack: str) -> tuple[str, str]:
    """A stack's name as (what it is, which Python): `stage-2-py27` -> ("stage-2", "2.7").

    The second is "2.7", "3.7" or "today"; "today" too for a name without a suffix, which is
    whatever runs the book.
    """
    what, _, suffix = stack.rpartition("-")
    if what and suffix in PYTHONS:
        return what, PYTHONS[suffix]
    return stack, "today"


def stack_label(stack: str, client: str = "grequests") -> str:
    """A stack as a reader's words: `stage-2-py27` -> "+ pyOpenSSL, Python 2.7".

    A client that is the point of its run is named instead: "aiohttp", and "requests" for the
    bare loop of the first part. What fetches through requests, threads or a loop, is added to
    the stack where it is not grequests: "requests 2.32.4, threads".
    """
    if client not in OF_A_STACK or is_bare_loop(stack, client):
        return client_label(client)
    via = OF_A_STACK[client]
    return f"{_bare_label(stack)}, {via}" if via else _bare_label(stack)


def is_bare_loop(stack: str, client: str) -> bool:
    """Whether a run is the first part's loop of `requests`, in which the stack plays no part."""
    return client == "requests" and stack.startswith("stage-")


def _bare_label(stack: str) -> str:
    what, python = split_stack(stack)
    label = re.sub("^openssl", "OpenSSL", CALLED.get(what) or what.replace("-", " "))
    label = label.replace("google auth", "google-auth")
    is_release = re.fullmatch(r"(requests|truststore)-\d+\.\d+\.\d+|openssl-[\d.]+", what)
    if what in STACKS or is_release or stack == what:
        return label
    return f"{label}, {python_label(python)}"


def added(stack: str) -> str:
    """What a stack has that the one before has not: `stage-2-py27` -> "+ pyOpenSSL"."""
    return stack_label(split_stack(stack)[0])


def python_of(stack: str) -> str:
    """Which Python a stack has: `stage-2-py27` -> "Python 2.7"."""
    return python_label(split_stack(stack)[1])


def python_label(python: str) -> str:
    """A Python as it is headed: "Python 2.7", "today"."""
    return python if python == "today" else f"Python {python}"


def client_label(client: str) -> str:
    """A client as a reader's words: `httpx-h2` -> "httpx, HTTP/2"."""
    return CLIENTS.get(client, client)


def value_label(column: str, value) -> str:
    """What stands in a column of a frame of runs, in words: trust `off` -> "verify=False"."""
    if value in VALUES.get(column, {}):
        return VALUES[column][value]
    return _SAID[column].format(value) if column in _SAID else str(value)


def number(value: float, digits: int = 3) -> str:
    """A number with that many significant digits and no exponent: 10.0481 -> "10.0".

    From a thousand on with commas: 2231.4 -> "2,231".
    """
    value = float(value)
    if not math.isfinite(value):
        raise UsageError(f"{value} is not a number that a page can show")
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def amount(value: float, unit: str = "") -> str:
    """A number with its unit: "2,231 MB", "0.523 s", "0.052 s"; a count stays exact: "30"."""
    if not unit and float(value).is_integer():
        return f"{value:,.0f}"
    said = number(value, 2 if unit == "s" and abs(value) < 0.1 else 3)
    return f"{said} {unit}".rstrip()


def of_number(value: Any, unit: str) -> str:
    """A unit behind that number: "requests", but "request" behind a one."""
    one = value == 1 and unit.endswith("s") and unit not in ("s", "ms")
    return unit[:-1] if one else unit


def tick(value: float) -> str:
    """A number at an axis, as short as it is round: "0.1", "10", "3,000"."""
    return f"{value:,.10g}"


def seconds(value: float) -> str:
    """A time as a reader says it: "10.0 s", "250 ms"."""
    return f"{number(value * 1000, 2)} ms" if abs(value) < 0.1 else f"{number(value)} s"


def delay(value: float) -> str:
    """A chosen time, with no digit more than was chosen: "0.1 s", "1 s"."""
    return f"{value:g} s"


def join(words: Iterable[str]) -> str:
    """Words in a list: "a", "a and b", "a, b and c"."""
    words = list(words)
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Second words by their first ones, in order of appearance: verdicts and the stacks of each."""
    found: dict[str, list[str]] = {}
    for first, second in pairs:
        found.setdefault(first, []).append(second)
    return found


def capital(text: str) -> str:
    """A sentence's beginning: only the first letter is changed, and no library's name."""
    if re.match(rf"({'|'.join(map(re.escape, LIBRARIES))})\b", text):
        return text
    return text[:1].upper() + text[1:]


def times(factor: float) -> str:
    """A factor as a reader says it: "9.6 times", "96 times"."""
    return f"{number(factor, 2) if factor < 100 else f'{factor:.0f}'} times"
