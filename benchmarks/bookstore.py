"""What a book costs, on both sides of the counter.

    python -m benchmarks.bookstore [--repeats 3] [--engine twisted] [--books 3000]
                                   [--grow 300 3000 30000]

CPU (user and system) of the client and of the store for 1,000 books, in ms, and the ratios of
pairs from one run: the clients take turns, so that a slow minute of the machine touches all. Then
the same for few and for many books. Each book is compared with the stock. Without a Python 3.7
the pairs that need it are left out, which is said.
"""

import argparse
from itertools import product

import pandas as pd

from casebook import environments, stacks
from casebook.bookstore import readers, store, visits
from casebook.errors import MissingInterpreter

#: The second against the first: what is asked, and the two clients.
PAIRS = {
    "the article's pair, on Python 3.7": ("requests-py37", "hyper"),
    "requests of today, then hyper": ("requests", "hyper"),
    "one library, HTTP/2 one at a time": ("httpx-h1", "httpx-h2"),
    "one library, HTTP/2 a hundred at once": ("httpx-h1", "httpx-h2:100"),
    "no library, HTTP/2 a hundred at once": ("pipes:1", "bare-h2"),
    "HTTP/1.1 through a hundred connections": ("pipes:1", "aiohttp:100"),
    "a hundred at once: connections, streams": ("aiohttp:100", "bare-h2"),
}

#: Of these the growth is shown.
GROWING = ("requests", "hyper", "httpx-h2", "aiohttp:100", "bare-h2")


def here(clients: list[str]) -> list[str]:
    """Those whose Python is on this machine; one line for each of the others."""
    found = []
    for client in clients:
        try:
            environments.ensure(stacks.get(readers.get(client.partition(":")[0]).stack))
            found.append(client)
        except MissingInterpreter as error:
            print(f"left out: {client} ({error})")
    return found


def costs(target: store.Store, clients: list[str], n: int, repeats: int) -> pd.DataFrame:
    """Medians of client_ms and server_ms for 1,000 books, and of wall_s, by client."""
    rows = []
    for _, client in product(range(repeats), clients):
        [visit] = visits.visit([client], repeats=1, n=n, target=target).itertuples()
        rows.append(
            {
                "client": client,
                "client_ms": 1e6 * (visit.user_s + visit.sys_s) / n,
                "server_ms": 1e6 * visit.server_cpu_s / n,
                "wall_s": visit.wall_s,
            }
        )
    return pd.DataFrame(rows).groupby("client", sort=False).median()


def show_pairs(found: pd.DataFrame) -> None:
    """Each client, then each pair as ratios."""
    print(f"  {'':<16}{'client ms':>11}{'server ms':>11}{'together':>11}{'wall s':>9}")
    for client, row in found.iterrows():
        both = row.client_ms + row.server_ms
        print(
            f"  {client:<16}{row.client_ms:11.0f}{row.server_ms:11.0f}{both:11.0f}{row.wall_s:9.2f}"
        )
    print(f"\nratios, second / first {'':<41}{'client':>8}{'server':>8}{'together':>10}")
    for what, (first, second) in PAIRS.items():
        if {first, second} <= set(found.index):
            a, b = found.loc[first], found.loc[second]
            together = (b.client_ms + b.server_ms) / (a.client_ms + a.server_ms)
            print(
                f"  {what:<40}{f'{second} / {first}':<24}{b.client_ms / a.client_ms:6.2f}"
                f"{b.server_ms / a.server_ms:8.2f}{together:10.2f}"
            )


def show_growth(by_size: dict[int, pd.DataFrame]) -> None:
    """Milliseconds for 1,000 books by how many are bought, and the last size over the first."""
    sizes = list(by_size)
    for side in ("client_ms", "server_ms"):
        heads = "".join(f"{size:>10,}" for size in sizes)
        print(f"  {side.replace('_', ' '):<16}{heads}{'last / first':>15}")
        for client in by_size[sizes[0]].index:
            values = [by_size[size].loc[client, side] for size in sizes]
            shown = "".join(f"{value:10.0f}" for value in values)
            print(f"  {client:<16}{shown}{values[-1] / values[0]:15.2f}")


def main() -> None:
    """Measure, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engine", choices=store.ENGINES, default="twisted")
    parser.add_argument("--books", type=int, default=3_000)
    parser.add_argument("--grow", type=int, nargs="*", default=[300, 3_000, 30_000])
    options = parser.parse_args()
    clients = here(list(dict.fromkeys(client for pair in PAIRS.values() for client in pair)))
    with store.open_store(options.engine) as target:
        print(
            f"\n{options.books:,} books from {target.library} on Python {target.python}; medians "
            f"of {options.repeats}; CPU for 1,000 books"
        )
        show_pairs(costs(target, clients, options.books, options.repeats))
        if options.grow:
            growing = [client for client in GROWING if client in clients]
            # The largest once: it averages by itself.
            repeats = {size: 1 if size > 10_000 else options.repeats for size in options.grow}
            print("\nCPU for 1,000 books, by how many books are asked for")
            show_growth(
                {size: costs(target, growing, size, repeats[size]) for size in options.grow}
            )


if __name__ == "__main__":
    main()
