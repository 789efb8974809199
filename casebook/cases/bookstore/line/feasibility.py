"""What a line can do on this machine: whether there can be one, and how much it carries."""

import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

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

COLUMNS = [
    *("stack", "way", "repeat", "packets_s", "mbit", "line_busy", "line_us", "busiest", "lost"),
    *("source", "instead", "measured_at", *measurements.COLUMNS),
]


@cache
def not_here() -> str:
    """Say why there can be no line on this machine; "" if there can. Raises MissingInterpreter if
    there is none and CASEBOOK_REQUIRE names "line".
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
    """Send as fast as TCP can over a line with no latency and no bandwidth: a row for each of
    TIMES floods, columns COLUMNS.

    repeat: which flood. packets_s: packets a second, of both directions; mbit: the same in millions
    of bits of data a second. line_us: microseconds of processor that the line takes for a packet;
    line_busy: the share of a processor that it took meanwhile, 1 where it did nothing but pass
    packets on. busiest: packets a second in the busiest window (wire.WINDOW_S); lost: packets that
    the kernel had no room for. No rows where there can be no line, and no machine in data/machines/
    was asked the same. Raises MissingInterpreter, RunFailed.
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
def told() -> Mapping[str, float]:
    """Return what a script that uses a line has to know about this machine: "carries", packets a
    second that the line would pass on with a processor to itself. Other work, which may be over
    when a script runs, does not make it less.
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
