"""requests' way of writing over HTTP/3: niquests, whose QUIC is qh3.

A server says with Alt-Svc that it speaks HTTP/3; here niquests is told so, and tries nothing else.
https://niquests.readthedocs.io/en/latest/user/advanced.html
"""

from urllib.parse import urlsplit

import niquests
from with_niquests import fetch


def visit(spec, shelf):
    """Fetch the list of books, then the books in chunks."""
    address = urlsplit(spec["url"])
    cache = niquests.structures.QuicSharedCache(max_size=1)
    cache[(address.hostname, address.port)] = (address.hostname, address.port)
    fetch(spec, shelf, quic_cache_layer=cache)
