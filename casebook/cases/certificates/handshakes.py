"""What a connection costs when its context is shared: the standard library's, and truststore's.

Both verify against the system's default certificates, which here are certifi's and the lab's own
authority. The standard library loads them once, into the context; truststore at each handshake.
"""

import platform
import tempfile
from collections.abc import Iterable
from functools import partial
from itertools import product
from pathlib import Path

import pandas as pd

from casebook import places, stacks
from casebook.cases.fetching import server, trust
from casebook.cases.fetching.bench import lab_server
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import elsewhere, measurements, reference, scripts
from casebook.laboratory.rounds import as_list, in_turns
from casebook.stacks import digests, environments
from casebook.stacks.environments import Environment

STACK = "truststore-today"
CONTEXTS = ("ssl", "truststore")
_PROBE = Path(__file__).parent / "probes" / "handshakes.py"

COLUMNS = [
    *("stack", "context", "repeat", "n", "handshakes", "loads_before", "loads"),
    *("making_ms", "wall_ms", "cpu_ms", "openssl", "source", "measured_at", "instead"),
    *measurements.COLUMNS,
]


def measure(n: int | Iterable[int] = 20, repeats: int = 1) -> pd.DataFrame:
    """n connections, one after the other, to a lab server on this machine, with one context.

    n: one size or several, which are measured in turns, with each of CONTEXTS.
    Returns one row per context, size and repeat, columns COLUMNS: loads_before (of certificates,
    when the context was made) and loads (by all connections), handshakes (as the server counted),
    making_ms (the context), wall_ms and cpu_ms (per connection; the client's processor time).
    Elsewhere than on Linux, where truststore asks the system and its answer is no load, the rows
    are the reference machine's.

    Raises UsageError, RunFailed when a response is wrong, and EnvironmentFailed.
    """
    sizes = as_list(n)
    if not all(1 <= size <= 1000 for size in sizes) or not 1 <= repeats <= 1000:
        raise UsageError(f"n is {n} and repeats {repeats}; choose 1 to 1000 of each")
    if platform.system() != "Linux":
        rows = reference.select_recorded(elsewhere.of_reference(HANDSHAKES), {}, {"n": sizes})
        return rows.reindex(columns=COLUMNS)
    environment = environments.ensure(stacks.get(STACK))
    code = [Path(__file__), *digests.executed(_PROBE, beside=[places.PROBES]), *server.MADE_OF]
    key = measurements.key_of(code, environment.stack, sizes, repeats)
    rows = measurements.rows(lambda: _measured(environment, sizes, repeats), key)
    return pd.DataFrame(rows, columns=COLUMNS)


def _measured(environment: Environment, sizes: list[int], repeats: int) -> list[dict]:
    lab, rows = lab_server(), []
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        shown = trust.of_name(trust.BUNDLE, lab.ca_file, Path(folder)).variables
        for repeat, (context, n) in in_turns(product(CONTEXTS, sizes), repeats):
            lab.reset()
            spec = {"context": context, "url": lab.url, "n": n}
            answer = scripts.ask(environment, _PROBE, spec, variables=shown, beside=[places.PROBES])
            counted = lab.counters() or {}
            asked = {"stack": STACK, "context": context, "repeat": repeat, "n": n}
            rows.append(asked | _figures(answer, counted))
    return rows


def _figures(answer: dict, counted: dict) -> dict:
    """What a row says of one answer, whose pages are the right ones, or RunFailed."""
    for page, (status, got_page) in enumerate(answer["pages"]):
        if (status, got_page) != (200, page):
            raise RunFailed(
                f"{STACK}: page {page} came back as status {status}, page {got_page}. Nothing "
                "was recorded."
            )
    making, connecting, n = answer["making"], answer["connecting"], len(answer["pages"])
    return {
        "handshakes": counted["handshakes"],
        "loads_before": making["loads"],
        "loads": connecting["loads"],
        "making_ms": making["wall_s"] * 1000,
        "wall_ms": connecting["wall_s"] * 1000 / n,
        "cpu_ms": connecting["cpu_s"] * 1000 / n,
        "openssl": answer["openssl"],
    }


#: Handshakes as machine files have them.
HANDSHAKES = elsewhere.Kind(
    "handshakes",
    partial(elsewhere.plain_rows, having=("context", "making_ms")),
    ("repeat", "n", "handshakes", "loads_before", "loads", "making_ms", "wall_ms", "cpu_ms"),
)
