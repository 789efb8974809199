"""What a connection costs when its context is shared: the standard library's, and truststore's.

Both verify against the system's default certificates, which here are certifi's and the lab's own
authority. The standard library loads them once, into the context; truststore at each handshake.
"""

import platform
import tempfile
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.cases.fetching import server, trust
from casebook.cases.fetching.bench import lab_server
from casebook.errors import RunFailed
from casebook.laboratory import measurements, scripts
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.laboratory.rounds import as_list
from casebook.mistakes import check_range, for_readers
from casebook.stacks.environments import Environment

STACK = "truststore-today"
CONTEXTS = ("ssl", "truststore")

COLUMNS = [
    *("stack", "context", "repeat", "n", "handshakes", "loads_before", "loads"),
    *("making_ms", "wall_ms", "cpu_ms", "openssl", "source", "measured_at", "instead"),
    *measurements.COLUMNS,
]


@for_readers
def measure(n: int | Iterable[int] = 20, repeats: int = 1) -> pd.DataFrame:
    """Make n connections, one after the other, to a lab server here, with one context.

    n: one size or several, which are measured in turns, with each of CONTEXTS.
    Returns one row per context, size and repeat, columns COLUMNS: loads_before (of certificates,
    when the context was made) and loads (by all connections), handshakes (as the server counted),
    making_ms (the context), wall_ms and cpu_ms (per connection; the client's processor time).
    Elsewhere than on Linux, where truststore asks the system and its answer is no load, the rows
    are those of a machine that was asked the same.

    Raises UsageError, RunFailed when a response is wrong, and what Experiment.measure raises.
    """
    sizes = as_list(n)
    for size in sizes:
        check_range("n", size, 1, 1000)
    parameters = [{"context": context, "n": size} for context, size in product(CONTEXTS, sizes)]
    return _SHARED.measure(STACK, parameters, repeats).reindex(columns=COLUMNS)


def _lacks() -> str:
    on_linux = platform.system() == "Linux"
    return "" if on_linux else "truststore's loads can be counted on Linux alone"


def _run_probe(environment: Environment, parameters: Parameters) -> dict[str, Any]:
    """Return what the probe says of the right pages, and how many handshakes there were."""
    lab = lab_server()
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        variables = trust.of_name(trust.BUNDLE, lab.ca_file, Path(folder)).variables
        lab.reset()
        spec = {**parameters, "url": lab.url}
        folders = [places.PROBES]
        answer = scripts.answer_of(
            environment, _SHARED.script, spec, variables=variables, beside=folders
        )
        counters = lab.counters() or {}
    for page, (status, got_page) in enumerate(answer.pop("pages")):
        if (status, got_page) != (200, page):
            raise RunFailed(
                f"{STACK}: page {page} came back as status {status}, page {got_page}. Nothing "
                "was recorded."
            )
    return answer | {"handshakes": counters["handshakes"]}


def _figures(parameters: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    making, connecting, n = answer["making"], answer["connecting"], parameters["n"]
    return {
        "handshakes": answer["handshakes"],
        "loads_before": making["loads"],
        "loads": connecting["loads"],
        "making_ms": making["wall_s"] * 1000,
        "wall_ms": connecting["wall_s"] * 1000 / n,
        "cpu_ms": connecting["cpu_s"] * 1000 / n,
        "openssl": answer["openssl"],
    }


_SHARED = Experiment(
    Path(__file__).parent / "probes" / "handshakes.py",
    _figures,
    depends_on=(Path(__file__), *server.DEPENDENCIES, trust.dependency()),
    lacks=_lacks,
    beside=(places.PROBES,),
    ask=_run_probe,
)
