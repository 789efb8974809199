"""How far a finding reaches: what it was measured on, and which sentences speak wider than that.

    on(runs)                       # "client httpx; latency_ms 4, 35; congestion reno"
    implementations("HTTP/2", "h2-today, httpx-today")      # {"h2"}
    wider("Over HTTP/2 all of them wait.", ["h2-today"])    # ["HTTP/2"]

A sentence about a protocol, about Python of today or about everybody rests on two implementations
that share no code, or it names the one.
"""

import re
from collections.abc import Iterable
from functools import cache

import pandas as pd

from casebook import stacks
from casebook.errors import UsageError

#: The columns of runs that say what was measured on, beside their stack, in this order.
COLUMNS = (
    *("client", "engine", "library", "protocol", "chain", "threads"),
    *("latency_ms", "mbit", "lose", "congestion"),
    *("body_bytes", "window_bytes"),
    "openssl",
)
#: Where a column of them has a zero, nothing was set: no limit, or each book's own size.
_UNSET = ("mbit", "body_bytes", "window_bytes")
#: So many values of a column are named; of more, how many there are.
_NAMED = 4

#: Which code a package brings for each layer: what has the same name is the same code, or was.
#: HTTP: who fetches, as programs see it.
LAYERS = ("HTTP", "HTTP/2", "HTTP/3", "TLS")
CODE: dict[str, tuple[str, str, str, str]] = {
    "requests": ("urllib3", "", "", "OpenSSL"),
    "urllib3": ("urllib3", "", "", "OpenSSL"),
    "grequests": ("urllib3", "", "", "OpenSSL"),
    "botocore": ("urllib3", "", "", "OpenSSL"),
    "pip": ("urllib3", "", "", "OpenSSL"),
    "niquests": ("urllib3", "h2", "aioquic", "OpenSSL"),  # forks: urllib3-future, jh2, qh3
    "httpx": ("httpcore", "h2", "", "OpenSSL"),
    "httpx2": ("httpcore", "h2", "", "OpenSSL"),
    "openai": ("httpcore", "h2", "", "OpenSSL"),
    "aiohttp": ("aiohttp", "", "", "OpenSSL"),
    "aiobotocore": ("aiohttp", "", "", "OpenSSL"),
    "geventhttpclient": ("geventhttpclient", "", "", "OpenSSL"),
    "eventlet": ("http.client", "", "", "OpenSSL"),
    "hyper": ("hyper", "h2", "", "OpenSSL"),
    "h2": ("h2", "h2", "", "OpenSSL"),
    "twisted": ("twisted", "h2", "", "OpenSSL"),
    "granian": ("granian", "hyper (Rust)", "", "rustls"),
    "aioquic": ("aioquic", "", "aioquic", "aioquic"),
    "pycurl": ("libcurl", "nghttp2", "ngtcp2", "OpenSSL"),
    "curl-cffi": ("libcurl", "nghttp2", "ngtcp2", "BoringSSL"),
    "truststore": ("", "", "", "OpenSSL"),
    "pyopenssl": ("", "", "", "OpenSSL"),
}

#: Words that speak of more than what was measured -> the layer whose code has to differ.
_WIDE = {
    "HTTP/2": r"HTTP/2(?!’s own window|'s own window)",
    "HTTP/3": r"HTTP/3|QUIC",
    "TLS": r"TLS(?! 1\.2\b.{0,20}probably)",
    "HTTP": r"everybody|everyone|anybody|whoever|always|never|"
    r"today(?!['’]s)|Python(?! \d)(?!['’]s)",
}
_WORDS = {layer: re.compile(rf"(?<![\w/])(?:{words})\b", re.I) for layer, words in _WIDE.items()}

#: What a sentence may name in the place of all: packages, libraries and programs of the book. Who
#: said something is none of them; the server, laptop or program of a person is.
_NAMES = re.compile(
    r"\b(?:requests|grequests|urllib3|httpx2?|aiohttp|niquests|pycurl|curl_cffi|libcurl|hyper|h2|"
    r"gevent|gevent[_-]openssl|geventhttpclient|eventlet|pyOpenSSL|OpenSSL|truststore|pip|openai|"
    r"botocore|aiobotocore|Twisted|Granian|aioquic|Dask|glibc|malloc|select\.poll|poll|recv_into|"
    r"extract|patch_all|set_default_verify_paths|CPython|GIL|Python \d|bare client|this library|"
    r"same library|"
    r"our (?:line|loop|server|client|store)|"
    r"(?:the post|Hirani|Borrego|Miech)['’]s (?:own )?(?:server|laptop|script|loop|client|store)"
    r")\b",
    re.I,
)


def conditions_of(runs: pd.DataFrame) -> str:
    """Say what runs were measured on, by those of COLUMNS that they have."""
    parts = []
    for column in COLUMNS:
        if column not in runs:
            continue
        values = [value for value in runs[column].dropna().unique() if str(value) != ""]
        values = [value for value in values if value or column not in _UNSET]
        if values:
            text = ", ".join(map(str, values)) if len(values) <= _NAMED else f"{len(values)} kinds"
            parts.append(f"{column} {text}")
    return "; ".join(parts)


def implementations(layer: str, names: str) -> set[str]:
    """Return the implementations of one of LAYERS that a finding rests on.

    names: of its stacks, as in its record. Of a stack that fetches its client counts, of any other
    all packages. What is no stack counts by its own name, such as a program in Go.
    """
    codebases = set()
    for name in filter(None, map(str.strip, names.split(","))):
        packages = _packages(name)
        codes = [CODE[package][LAYERS.index(layer)] for package in packages if package in CODE]
        codebases |= set(codes) if packages else {name}
    return codebases - {""}


@cache
def _packages(name: str) -> tuple[str, ...]:
    """Return the packages of a stack that count; none for what is no stack."""
    try:
        stack = stacks.get(name)
    except UsageError:
        return ()
    client = (stack.client or "").partition("-each")[0].replace("_", "-")
    if client in CODE:
        return (client,)
    pinned = stacks.table().get("packages", {}).get(stack.lock, ())
    return tuple(re.split(r"[\[=<>]", requirement, maxsplit=1)[0] for requirement in pinned) or (
        "urllib3",
    )


def wider(sentence: str, names: Iterable[str]) -> list[str]:
    """Return the layers that a sentence says more of than its findings were measured on.

    It neither names an implementation of such a layer, nor rests on two of them.

    names: the stacks of each finding that it rests on, as in its record.
    """
    if _NAMES.search(sentence):
        return []
    spoken = [layer for layer, words in _WORDS.items() if words.search(sentence)]
    names = list(names)
    return [
        layer
        for layer in spoken
        if len(set().union(*(implementations(layer, group) for group in names))) < 2
    ]
