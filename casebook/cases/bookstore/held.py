"""A visit of which one connection is held back once, for a moment.

A relay keeps what the server sends on the first connection, and passes it on later, in its order.
Nothing is lost, and this is not what TCP does about a packet that is: how long that takes depends
on the distance and on what comes behind it (RFC 5681, RFC 8985).
"""

import dataclasses
import json
from collections.abc import Iterable

import pandas as pd

from casebook.cases.bookstore import stock, store, visits
from casebook.cases.fetching.server import relay
from casebook.errors import UsageError
from casebook.laboratory.rounds import several

#: So many bytes after those of the list, the handshake's included, the first connection is held.
_AFTER_LIST = 6_000


def arrivals(clients: str | Iterable[str], n: int = 100, hold_s: float = 0.2) -> pd.DataFrame:
    """When each book arrived while the first connection of each client was held back once.

    Held back is all that the server sends on it, once the list of books and some kilobytes more
    are through, for hold_s seconds. Columns, further parameters and errors as visits.arrivals.
    """
    if not 20 <= n <= stock.SIZE:
        raise UsageError(f"n is {n}; choose 20 to {stock.SIZE}")
    held = relay.Held(len(json.dumps(stock.ids())) + _AFTER_LIST, hold_s)
    found = []
    with store.open_store() as place:
        for client in several(clients):
            with relay.relay(place.url, 0, held) as url:
                target = dataclasses.replace(place, url=url)
                found.append(visits.arrivals(client, n=n, target=target))
    return pd.concat(found, ignore_index=True)
