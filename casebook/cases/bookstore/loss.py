"""A visit of which one connection is held up for a moment, as by a packet that was lost.

TCP hands bytes over in their order. When one packet is lost, all that came after it waits until
it was sent again, on Linux at least 200 ms later where nothing tells the sender sooner
(TCP_RTO_MIN, https://www.man7.org/linux/man-pages/man7/tcp.7.html). Nothing is lost here: a relay
holds back the bytes instead, those of the first connection alone.
"""

import dataclasses
import json
from collections.abc import Iterable

import pandas as pd

from casebook.cases.bookstore import stock, store, visits
from casebook.errors import UsageError
from casebook.runs.rounds import several
from casebook.server import relay

#: So many bytes after those of the list, the handshake's included, the first connection is held up.
_AFTER_LIST = 6_000


def arrivals(clients: str | Iterable[str], n: int = 100, hold_s: float = 0.2) -> pd.DataFrame:
    """When each book arrived while the first connection of each client was held up once.

    Held up is all that the server sends on it, once the list of books and some kilobytes more are
    through, for hold_s seconds. Columns, further parameters and errors as visits.arrivals.
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
