"""What a line can do on this machine: whether there can be one, and how much it carries."""

import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd

from casebook.cases.bookstore.line import ends, wire
from casebook.errors import MissingInterpreter, RunFailed
from casebook.laboratory import measurements
from casebook.laboratory.experiment import Experiment
from casebook.stacks import environments

#: Both ends run in it: it has Twisted, and h2 for the client.
STACK = "twisted-today"

#: What CASEBOOK_REQUIRE calls a line.
LINE = "line"

#: Floods, and the bytes of each, which take 0.1 s.
TIMES, BYTES = 8, 10_000_000


class Flood(TypedDict):
    """The columns of `flood`; behind them come those that say where a row comes from."""

    stack: str
    #: How the packets were had (ends.DEVICES).
    way: str
    #: Which flood.
    repeat: int
    #: Packets a second, of both directions; and the same in millions of bits of data.
    packets_s: float
    mbit: float
    #: The share of a processor that the line took: 1 if it did nothing but pass packets on.
    line_busy: float
    #: Microseconds of processor that the line takes for a packet.
    line_us: float
    #: Packets a second in the busiest window (wire.WINDOW_S).
    busiest: float
    #: Packets that the kernel had no room for.
    lost: int


COLUMNS = [*Flood.__annotations__, "source", "instead", "measured_at", *measurements.COLUMNS]


@cache
def not_here() -> str:
    """Say why there can be no line on this machine; "" if there can.

    Raises MissingInterpreter if there can be none and CASEBOOK_REQUIRE names "line".
    """
    tried = subprocess.run(
        [sys.executable, ends.__file__], capture_output=True, text=True, timeout=60
    )
    if tried.returncode == 0:
        return ""
    message = (tried.stderr.strip().splitlines() or ["no further word"])[-1]
    reason = f"there can be no line between two network namespaces here: {message}"
    if LINE in environments.required():
        raise MissingInterpreter(f"CASEBOOK_REQUIRE asks for a line, and {reason}.")
    return reason


def flood() -> pd.DataFrame:
    """Send as fast as TCP can over a line with no latency and no bandwidth, TIMES times.

    Returns a row a flood, the columns of Flood; no rows if there can be no line here and no machine
    in data/machines/ was asked the same. Raises MissingInterpreter, RunFailed.
    """
    parameter_sets = [{"way": "", "bytes": BYTES, "times": TIMES}]
    try:
        [row] = _FLOOD.measure(STACK, parameter_sets).to_dict("records")
    except MissingInterpreter:
        if not not_here():
            raise
        return pd.DataFrame(columns=COLUMNS)
    shared = {name: value for name, value in row.items() if name in COLUMNS}
    shared["way"] = row["took"]
    rows = []
    for repeat, transfer in enumerate(row["floods"], 1):
        figures = {"repeat": repeat, "packets_s": transfer["packets"] / transfer["took_s"]}
        figures |= {"mbit": 8e-6 * transfer["bytes"] / transfer["took_s"]}
        figures |= {"line_us": 1e6 * transfer["line_cpu_s"] / transfer["packets"]}
        figures |= {"line_busy": transfer["line_cpu_s"] / transfer["took_s"]}
        rows.append(shared | figures | {name: transfer[name] for name in ("busiest", "lost")})
    return pd.DataFrame(rows, columns=COLUMNS)


@cache
def line_capacity() -> Mapping[str, float]:
    """Return what a script that uses a line has to know about this machine.

    carries: packets a second that the line would pass on with a processor to itself. Other work,
    which may be over when a script runs, does not make it less.
    """
    return {"carries": round(1e6 / flood()["line_us"].median())}


def _figures(parameters: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    if "failed" in answer:
        raise RunFailed(f"flooding a line: {answer['failed']}. Nothing was recorded.")
    floods = answer["floods"]
    if [transfer["bytes"] for transfer in floods] != [parameters["bytes"]] * parameters["times"]:
        raise RunFailed("flooding a line: not all bytes came. Nothing was recorded.")
    return {"took": answer["way"], "floods": floods}


_FLOOD = Experiment(Path(wire.__file__).with_name("flood.py"), _figures, lacks=not_here)
