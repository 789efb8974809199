"""How far serial and concurrent stacks stay apart, on an idle and on a busy machine.

A known-serial and a known-concurrent stack run many times per delay, with and without processes
that keep the cores busy. The quick mode's delay was chosen from these runs; beside busy cores it is
tried more often. notebooks/a_verdicts_under_load.ipynb shows those of the reference machine.
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from casebook.cases.fetching import analysis, run_record, server
from casebook.cases.fetching.modes import QUICK
from casebook.cases.fetching.runs import measure_runs
from casebook.laboratory import machine_files, recorded_rows
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.laboratory.rounds import in_turns

KNOWN = {"stage-2-py37": analysis.SERIAL, "stage-1-py37": analysis.CONCURRENT}
DELAYS_S = (0.05, 0.1, 0.2)
N = 10

#: What is recorded of them.
COLUMNS = ["known", "busy", "delay_s", "n", "effective_concurrency", "wall_s"]
COLUMNS += ["counters_peak_in_flight", "verdict"]
#: What is stored of them. The rest follows.
_STORED = ["stack", "busy", "delay_s", "n", "wall_s", "counters_peak_in_flight"]


@contextlib.contextmanager
def busy_cores(busy: bool):
    """Keep every core busy with one process of its own while the block runs."""
    with contextlib.ExitStack() as hogs:
        for _ in range((os.cpu_count() or 1) if busy else 0):
            hog = hogs.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            hogs.callback(hog.kill)
        yield


def measure(runs_per_cell: int = 20, tried: int = 100) -> pd.DataFrame:
    """Measure runs_per_cell runs of each kind, and `tried` beside busy cores at the quick delay.

    In turns: each delay and stack once, then all again, so that a slow minute touches all alike.
    A row a run, columns known (its verdict), busy, and run_record.FRAME_COLUMNS.
    """
    parts = []
    for busy in (False, True):
        counts = dict.fromkeys(DELAYS_S, runs_per_cell) | ({QUICK.delay_s: tried} if busy else {})
        # A server of its own: what is measured beside busy cores is not for the store.
        with busy_cores(busy), server.start() as lab:
            for repeat, delay_s in in_turns(DELAYS_S, max(counts.values())):
                if repeat <= counts[delay_s]:
                    round_ = range(repeat, repeat + 1)
                    asked = {"n": N, "delay_s": delay_s, "repeats": round_, "client": "grequests"}
                    runs = measure_runs(KNOWN, lab, **asked)
                    parts.append(run_record.frame(runs).assign(busy=busy))
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(known=frame["stack"].map(KNOWN))


def record() -> None:
    """Measure them for the reference run, and store them. Takes minutes."""
    _UNDER_LOAD.first_answer([], {})


def _measure(parameters: Parameters) -> dict[str, Any]:  # noqa: ARG001  as Experiment.ask is called
    return {"rows": measure()[_STORED].round(4).to_dict("records")}


#: What is stored is one answer, which belongs to no stack and was asked nothing further.
_UNDER_LOAD = Experiment(Path(__file__), lambda _, answer: answer, form=lambda *_: (), ask=_measure)


def recorded() -> pd.DataFrame:
    """Return the runs of the reference machine, a row a run: COLUMNS and `source`."""
    return recorded_rows.of_reference(UNDER_LOAD).reindex(columns=[*COLUMNS, "source"])


def _under_load(answer: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for row in recorded_rows.plain_rows(answer, _STORED):
        figures = [row[name] for name in ("n", "delay_s", "wall_s", "counters_peak_in_flight")]
        if row["stack"] in KNOWN and all(map(machine_files.is_number, figures)) and figures[2] > 0:
            derived = {
                "known": KNOWN[row["stack"]],
                "effective_concurrency": analysis.effective_concurrency(*figures[:3]),
                "verdict": analysis.verdict(*figures),
            }
            rows.append(row | derived)
    return rows


#: These runs as machine files have them.
UNDER_LOAD = recorded_rows.Kind(
    "verdicts", _under_load, ("n", "delay_s", "wall_s", "counters_peak_in_flight")
)
