"""What a page costs one process, in CPU, and what of it are loads of certificates and handshakes.

frame = measure(["requests-stock", "requests-cured"], kept=[True, False], n=60)
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd

from casebook import places
from casebook.cases.fetching import near_limit
from casebook.cases.fetching.near_limit import GO
from casebook.cases.many.jobs import STACK
from casebook.errors import MissingInterpreter, RunFailed, UsageError
from casebook.laboratory import rounds
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.laboratory.measurements import Using
from casebook.laboratory.rounds import as_list
from casebook.mistakes import check_range
from casebook.stacks import digests, environments

#: What fetches, as the probe calls it -> as pages do.
WAYS = {
    "requests-stock": "requests",
    "requests-cured": "requests, one context",
    "aiohttp": "aiohttp, one context",
    GO: "Go, one set of certificates",
}
#: Why there may be no costs of Go, for a page.
NO_GO = "there is no Go on the PATH (https://go.dev/dl/), and no machine that had it was asked this"
#: Those of Python, which need nothing but the stack.
OF_PYTHON = tuple(way for way in WAYS if way != GO)
#: What the server shows, as the probe calls it -> as pages do.
CHAINS = {"ecdsa": "one certificate, ECDSA", "rsa": "three certificates, RSA"}
KEPT, NEW = "one connection for all pages", "a new connection for each page"


class PageCost(TypedDict):
    """The columns of `measure`: CPU in milliseconds for a page."""

    way: str
    kept: bool
    #: "way, kept" or "way, new"; and both in words.
    case: str
    how: str
    over: str
    n: int
    repeat: int
    #: Of the client, and its parts.
    cpu_ms: float
    load_ms: float
    handshake_ms: float
    rest_ms: float
    #: Not CPU: from the first request to the last page.
    wall_ms: float
    server_cpu_ms: float
    loads: int
    handshakes: int
    #: By the server's count.
    connections: int
    openssl: str | None


@rounds.takes_until
def measure(
    ways: str | Iterable[str] = OF_PYTHON,
    kept: bool | Iterable[bool] = (True, False),
    n: int = 60,
    repeats: int | range | None = None,
    chain: str = "ecdsa",
    experiment: Experiment | None = None,
) -> pd.DataFrame:
    """Fetch n pages one after the other, in turns.

    The page itself costs the server, whose CPU is counted apart.

    Parameters:
        ways: of WAYS, `go` alone: without a Go on the PATH, a machine that had it stands in; if
            there is none either, the frame is empty, unless CASEBOOK_REQUIRE names go.
        kept: over one connection (True), over one each (False), or both.
        n: how many pages.
        repeats: how many rounds, or which; 1 by default.
        chain: of CHAINS.
        experiment: to run (default: PAGES).
        until, looks: what is to be decided (laboratory/rounds.py).

    Returns a row a way, kept and round: the columns of PageCost, and what Experiment.measure adds.
    Raises UsageError, RunFailed if a page is not the right one, and what Experiment.measure raises.
    """
    # Without the usual chain, so that what was asked before stays asked.
    chain_parameters = {} if chain == "ecdsa" else {"chain": chain}
    parameters = [
        {"way": way, "kept": is_kept, "n": n, **chain_parameters}
        for way in as_list(ways)
        for is_kept in as_list(kept)
    ]
    for row in parameters:
        if row["way"] not in WAYS or chain not in CHAINS:
            raise UsageError(
                f"choose a way of {', '.join(WAYS)} and a chain of {', '.join(CHAINS)}, not {row}"
            )
    check_range("n", n, 1, 100_000)
    of_go = {row["way"] == GO for row in parameters}
    if len(of_go) > 1:
        raise UsageError("ask Go alone: another machine may have to answer")
    try:
        frame = (experiment or (_go() if of_go == {True} else PAGES)).measure(
            STACK, parameters, repeats=repeats
        )
    except MissingInterpreter:
        if of_go != {True} or near_limit.is_here() or GO in environments.required():
            raise
        frame = pd.DataFrame()
    if frame.empty:
        return frame
    frame["how"] = frame["way"].map(WAYS)
    frame["over"] = frame["kept"].map({True: KEPT, False: NEW})
    frame["case"] = frame["way"] + frame["kept"].map({True: ", kept", False: ", new"})
    return frame


def _figures(parameters: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    n, server = parameters["n"], answer["server"]
    expected = 1 if parameters["kept"] else n
    if answer["right"] != n or server["requests"] != n or server["connections"] != expected:
        raise RunFailed(
            f"{parameters['way']}: {answer['right']} of {n} pages were right, in "
            f"{server['requests']} requests over {server['connections']} connections instead of "
            f"{expected}. Nothing was recorded."
        )
    ms = {name: 1000 * answer[f"{name}_s"] / n for name in ("cpu", "load", "handshake", "wall")}
    return {
        "cpu_ms": ms["cpu"], "load_ms": ms["load"], "handshake_ms": ms["handshake"],
        "rest_ms": ms["cpu"] - ms["load"] - ms["handshake"], "wall_ms": ms["wall"],
        "server_cpu_ms": 1000 * server["cpu_s"] / n, "loads": answer["loads"],
        "handshakes": answer["handshakes"], "connections": server["connections"],
        "openssl": answer["openssl"],
    }  # fmt: skip


_PROBES = Path(__file__).parent / "probes"
PAGES = Experiment(
    _PROBES / "page_costs.py",
    figures=_figures,
    within_s=600,
    depends_on=(places.CURE, _PROBES / "pages_server.py"),
)
_GO_SOURCE = Path(__file__).with_name("page_costs.go")


def _go() -> Experiment:
    """Return the same by Go, which is looked for when it is needed."""
    lacks = "" if near_limit.is_here() else "what Go needs for a page needs Go (https://go.dev/dl/)"
    return replace(
        PAGES,
        depends_on=(*PAGES.depends_on, _GO_SOURCE, Using(GO, digests.tool(GO))),
        lacks=lambda: lacks,
        tells=lambda: {"program": near_limit.build(_GO_SOURCE)},
    )
