"""Machines side by side: what each of the first three cases costs on each of them, a chart a case.

A row is a machine and a mark a way of doing the same work, so that a reader sees first whether the
ways differ alike everywhere, and then how fast each machine is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from casebook import words
from casebook.cases.bookstore.timed_visits import VISITS
from casebook.cases.certificates.loading import LOADS
from casebook.cases.fetching.run_record import RUNS
from casebook.charts import figure as page
from casebook.charts.captions import Caption
from casebook.charts.dots import MARKERS, drawing
from casebook.charts.figure import Chart, key_mark
from casebook.charts.series import Part
from casebook.colours import ROLES
from casebook.laboratory.machine_files import Machine
from casebook.laboratory.recorded_rows import Kind, rows_of_machine
from casebook.words import LIVE, REFERENCE

#: The most rounds of each way that are drawn.
_ROUNDS = 8


@dataclass(frozen=True)
class _Case:
    """What is drawn of a case: a column of one kind of rows, for two or three ways.

    common: what all rows have in common. marks: what a mark is called -> what its rows have.
    """

    name: str
    title: str
    kind: Kind
    column: str
    quantity: str
    unit: str
    common: dict[str, Any]
    marks: dict[str, dict[str, Any]]


_ASKED_ONCE = {"engine": "twisted", "latency_ms": 0, "n": 200, "delay_s": 0, "slow": ""}
CASES = (
    _Case(
        "machines-fetching",
        "Ten requests at once, 0.1 s each, Python 3.7",
        RUNS,
        "wall_s",
        "wall time",
        "s",
        {"n": 10, "delay_s": 0.1, "scheme": "https", "trust": "authority", "client": "grequests"},
        {"grequests": {"stack": "stage-1-py37"}, "+ pyOpenSSL": {"stack": "stage-2-py37"}},
    ),
    _Case(
        "machines-loads",
        "One load of all certificates",
        LOADS,
        "cpu_ms",
        "processor time",
        "ms",
        {"way": "file", "copies": 1, "threads": 1, "processes": 1, "preload": "", "watched": False}
        | {"asked": None},
        {
            f"OpenSSL {version}": {"stack": f"openssl-{version}-today"}
            for version in ("1.1.1", "3.0", "4.0")
        },
    ),
    _Case(
        "machines-bookstore",
        "Two hundred books from a server nearby",
        VISITS,
        "wall_s",
        "wall time",
        "s",
        _ASKED_ONCE,
        {
            "requests, one after the other": {"client": "requests"},
            "six connections": {"client": "pipes", "connections": 6},
            "HTTP/2, all at once": {"client": "bare-h2", "at_once": 100},
        },
    ),
)


class _MachinePart(Part):
    """The rows of a machine, labelled with its name, wherever it was measured."""

    @property
    def label(self) -> str:
        return self.name


def of_machines(machines: Sequence[Machine], live_machine: str = "") -> list[Chart]:
    """Draw a chart for each case in which at least two machines measured the same.

    Parameters:
        machines: with names that differ.
        live_machine: the name of the one that this build measured; its dots are filled.
    """
    charts = []
    for case in CASES:
        parts = []
        for machine in machines:
            rows = _rounds(rows_of_machine(machine, case.kind), case)
            if len(rows):
                source = LIVE if machine.name == live_machine else REFERENCE
                parts.append(_MachinePart(machine.name, ROLES["other"], rows.assign(source=source)))
        if len(parts) > 1:
            charts.append(_chart(case, parts))
    return charts


def _rounds(rows: pd.DataFrame, case: _Case) -> pd.DataFrame:
    """Return the rounds that all ways of a case have, a column per way; empty if one has none."""
    if rows.empty:
        return rows
    columns = {}
    for mark, conditions in case.marks.items():
        chosen = rows
        for name, value in (case.common | conditions).items():
            column = chosen.get(name, pd.Series(index=chosen.index, dtype=object))
            chosen = chosen[column.isna() if value is None else column == value]
        columns[mark] = chosen.groupby("repeat")[case.column].median()
    return pd.DataFrame(columns).dropna().head(_ROUNDS)


def _chart(case: _Case, parts: Sequence[Part]) -> Chart:
    marks = list(case.marks)
    labels = [{mark: words.amount(part.rows[mark].median(), case.unit) for mark in marks}
            for part in parts]  # fmt: skip
    numbers = [number for part in parts for mark in marks for number in part.rows[mark]]
    log = max(numbers) >= 10 * min(numbers)
    finding = _finding(case, parts)
    frames = [part.rows.assign(machine=part.name) for part in parts]
    key = [
        (key_mark(MARKERS[mark], "ink"), mark_name)
        for mark, mark_name in zip(MARKERS, marks, strict=False)
    ]
    reading = "Each mark is one round, the upright stroke their median"
    return page.chart(
        case.name,
        drawing(parts, labels, {}, f"{case.quantity}, {case.unit}", log, marks),
        Caption(
            case.title,
            finding=finding,
            clause="The scale is logarithmic." * log,
            reading=f"{reading}.",
            source="Filled: measured where this book was made. "
            "Half-filled: from the machine's file.",
        ),
        data=pd.concat(frames, ignore_index=True),
        key=key,
    )


def _finding(case: _Case, parts: Sequence[Part]) -> str:
    """Compare the ways on each machine: "+ pyOpenSSL takes 8.2 times as long as …"."""
    medians = {part.label: part.rows[list(case.marks)].median() for part in parts}
    slowest = {medians[label].idxmax() for label in medians}
    fastest = {medians[label].idxmin() for label in medians}
    times = {label: median.max() / median.min() for label, median in medians.items()}
    factors = words.join(f"{words.number(factor)} on {label}" for label, factor in times.items())
    if len(slowest) == len(fastest) == 1:
        count = "both" if len(parts) == 2 else f"all {len(parts)}"
        return (
            f"On {count} that were asked, {slowest.pop()} takes the most {case.quantity} and "
            f"{fastest.pop()} the least; times as much: {factors}."
        )
    order = "; ".join(f"on {label} {median.idxmin()}" for label, median in medians.items())
    return f"The machines differ in which way takes the least {case.quantity}: {order}."
