"""Machines side by side: how each finding came out on each, the differences first and in words.

A finding comes from the book that was built on its machine: its outcome rests on counts and
conditions that only a chapter knows. Where that book asked for another window than today's, today's
decides (`judged_today`). A verdict, serial or concurrent, follows from the raw answers, and the
code of today says it for all machines alike. `make book MACHINE=FILE` derives all from the answers.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, words
from casebook.cases.fetching import analysis, run_record
from casebook.errors import UsageError
from casebook.findings.finding import Finding
from casebook.laboratory import recorded_rows
from casebook.laboratory.decisions import (
    HOLDS,
    NOT_HERE,
    OTHERWISE,
    UNDECIDED,
    Window,
    outcome_in_words,
)
from casebook.laboratory.machine_files import Machine

#: What is said of a machine at the head of a comparison, in words.
_OF_A_MACHINE = {
    "processor": "processor",
    "architecture": "architecture",
    "cores": "cores",
    "system": "system",
    "kernel": "kernel",
    "python": "Python",
    "openssl": "OpenSSL",
    "commit": "commit of the book",
    "mode": "mode",
    "measured_from": "measured from",
    "measured_to": "measured to",
}

#: What a minute is enough for: 2026-11-25T21:07:00Z.
_TO_THE_SECOND = re.compile(r"T(\d\d:\d\d):\d\dZ$")

#: From this ratio between the slowest and the fastest tenth of the units of work on, a machine's
#: speed varied so much that small differences mean nothing (laboratory/conditions.py measures it).
UNSTEADY_FROM = 1.5

#: How a difference ranks: the higher, the further up.
OPPOSED, DECIDED_ON_ONE, NOT_ON_ALL, ALIKE = 3, 2, 1, 0


#: A link to a finding whose title is the sentence for the case that it does not hold.
_LINK = re.compile(r'#claim-([a-z0-9-]+)\s+"([^"]+)"\)')


@dataclass(frozen=True)
class Row:
    """One finding on several machines.

    statement: its sentence, or its id if no machine has one. by_machine: what came out, None where
    a machine has none. rank: how they differ.
    """

    id: str
    statement: str
    window: str
    by_machine: list[dict[str, Any] | None]
    rank: int

    @property
    def differs(self) -> bool:
        """Say whether the outcomes are not all the same."""
        return self.rank > ALIKE


def windows(findings: Iterable[Finding]) -> dict[tuple[str, str], str]:
    """Return what findings on a clock ask for, as text, by id and sentence without its numbers."""
    return {
        (finding.id, _without_numbers(finding.statement)): finding.window
        for finding in findings
        if finding.window
    }


def _without_numbers(statement: str) -> str:
    return re.sub(r" \(# to #\)", "", re.sub(r"[-+]?\d[\d.,]*", "#", statement))


def judged_today(machine: Machine, windows_today: Mapping[tuple[str, str], str]) -> Machine:
    """Judge the findings of a machine by the windows that are asked for today.

    Parameters:
        machine: with the outcomes of the book that was built there.
        windows_today: the windows of today (`windows`).

    Returns the machine with these outcomes. An outcome stays as it is if the sentence says
    something else today, since its number may be another one; if there is no interval; and if it
    was not the interval that had decided, but a count beside it.
    """
    return replace(
        machine,
        findings={
            id: _judged(
                finding, windows_today.get((id, _without_numbers(finding.get("statement", ""))), "")
            )
            for id, finding in machine.findings.items()
        },
    )


def _judged(finding: dict[str, Any], window: str) -> dict[str, Any]:
    window_there, interval = finding.get("window", ""), finding.get("interval") or []
    if not window or not window_there or window == window_there or len(interval) != 2:
        return finding
    try:
        outcome_there, outcome_today = (
            Window.read(text).outcome(*interval) for text in (window_there, window)
        )
    except UsageError:  # a stranger's file may say anything
        return finding
    if finding.get("outcome") != outcome_there:
        return finding
    return finding | {
        "outcome": outcome_today,
        "window": window,
        "there": f"asked there: {window_there}: {outcome_there}",
    }


def findings(machines: Sequence[Machine]) -> list[Row]:
    """Return the findings of some machines, those that differ most first."""
    ids = dict.fromkeys(id for machine in machines for id in machine.findings)
    rows = []
    for id in ids:
        by_machine = [machine.findings.get(id) for machine in machines]
        present = [finding for finding in by_machine if finding]
        # If it was not measured, its sentence has gaps in the place of numbers.
        measured_first = sorted(present, key=lambda finding: finding.get("outcome") == NOT_HERE)
        statement = next(
            (finding["statement"] for finding in measured_first if finding.get("statement")), id
        )
        window = next((finding["window"] for finding in present if finding.get("window")), "")
        rows.append(
            Row(id, statement, window, by_machine, _rank([f.get("outcome", "") for f in present]))
        )
    return sorted(rows, key=lambda row: -row.rank)


def how_many(rows: Sequence[Row]) -> str:
    """Say in a sentence how many of the findings that several machines have differ."""
    shared = [row for row in rows if sum(finding is not None for finding in row.by_machine) > 1]
    differing = sum(row.differs for row in shared)
    if not shared:
        return "No finding is in the files of two machines."
    return (
        f"Of {len(shared)} findings that several machines have, {differing} came out differently."
    )


def _rank(outcomes: list[str]) -> int:
    distinct = set(outcomes)
    if {HOLDS, OTHERWISE} <= distinct:
        return OPPOSED
    if UNDECIDED in distinct and len(distinct - {NOT_HERE}) > 1:
        return DECIDED_ON_ONE
    return NOT_ON_ALL if len(distinct) > 1 else ALIKE


def outcome(finding: dict[str, Any] | None, window: str = "") -> str:
    """Say in a few words what came out on one machine: "otherwise, 1.10 (1.04 to 1.15)".

    window: what is asked today. If that machine's book asked something else, the text says so.
    """
    if not finding:
        return "not among its findings"
    result = outcome_words = outcome_in_words(finding.get("outcome", "?"))
    value, interval = finding.get("value"), finding.get("interval") or []
    if isinstance(value, bool | str):
        result += f", {value}"
    elif value is not None:
        unit = words.of_number(value, finding.get("unit") or "")
        result += f", {words.amount(value)} {unit}".rstrip()
    if len(interval) == 2:
        result += " ({} to {})".format(*(words.number(end) for end in interval))
    if finding.get("there"):
        result += f", {finding['there']}"
    elif window and finding.get("window", window) not in ("", window):
        result += f", asked: {finding['window']}"
    if finding.get("outcome") == NOT_HERE and finding.get("because"):
        result += f" ({finding['because']})"
    if outcomes := [*map(outcome_in_words, finding.get("others", []))]:
        if set(outcomes) != {outcome_words}:
            result += f"; in further builds {words.join(outcomes)}"
    return result


def in_words(
    row: Row, machines: Sequence[Machine], because: Mapping[str, str] | None = None
) -> str:
    """Put a difference in words: which machine has which outcome, and why, if a chapter says it.

    Parameters:
        row: a finding on these machines.
        machines: in the order of `row.by_machine`.
        because: of `reasons_given`.
    """
    outcomes = (
        f"{machine.name}: {outcome(finding, row.window)}"
        for machine, finding in zip(machines, row.by_machine, strict=True)
        if finding
    )
    statement = f"{row.statement.rstrip('.')}{f' (asked: {row.window})' if row.window else ''}."
    reason = (because or {}).get(row.id) if row.rank in (OPPOSED, DECIDED_ON_ONE) else None
    explanation = f" Where it is otherwise: {reason}" if reason else ""
    # A file's name stays as it is written.
    comparison = re.sub("^this machine", "This machine", "; ".join(outcomes))
    return f"{statement} {comparison}.{explanation}"


def reasons_given(root: Path) -> dict[str, str]:
    """Collect what the chapters say if a finding comes out otherwise, or cannot be decided.

    Parameters:
        root: of the book. A link to a finding has such a sentence as its title: see
            notebooks/README.md.

    Returns the sentences by the finding's id.
    """
    reasons: dict[str, str] = {}
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for id, title in _LINK.findall("".join(cell["source"])):
                reason = re.search(rf"{OTHERWISE}: *(.*?)(?= *{UNDECIDED}:|$)", title)
                if reason and cell["cell_type"] == "markdown":
                    reasons.setdefault(id, reason[1])
    return reasons


def differences(machines: Sequence[Machine]) -> dict[str, list[str]]:
    """Return in what the machines differ, as far as their files say: a value for each of them."""
    differing = {}
    for name, in_full in _OF_A_MACHINE.items():
        values = [machine.about.get(name) for machine in machines]
        if len({str(value) for value in values}) > 1:
            texts = ("not said" if value is None else str(value) for value in values)
            differing[words.capital(in_full)] = [
                _TO_THE_SECOND.sub(r" \1 UTC", value_text) for value_text in texts
            ]
    return differing


def unsteady(machines: Sequence[Machine]) -> list[str]:
    """Return a sentence for each machine whose speed varied much."""
    sentences = []
    for machine in machines:
        unit = machine.about.get("unit_ms", [])
        if len(unit) == 3 and 0 < unit[0] and unit[2] / unit[0] >= UNSTEADY_FROM:
            sentences.append(
                f"{machine.name} was unsteady: the same piece of work mostly took "
                f"{unit[0]:.2g} to {unit[2]:.2g} ms, so small differences mean nothing."
            )
    return sentences


def verdicts(machines: Sequence[Machine]) -> pd.DataFrame:
    """Return the verdict of each way to fetch, by the code of today; those that differ first.

    Index (stack, client, scheme), a column for each machine's name, None if it has no such run.
    """
    columns = {
        machine.name: _verdicts(recorded_rows.rows_of_machine(machine, run_record.RUNS))
        for machine in machines
    }
    frame = pd.DataFrame(columns, columns=[machine.name for machine in machines], dtype=object)
    if frame.empty:
        return frame
    differs = frame.nunique(axis=1) > 1
    return frame.loc[differs.sort_values(ascending=False, kind="stable").index]


def _verdicts(runs: pd.DataFrame) -> pd.Series:
    if runs.empty:
        return pd.Series(dtype=object)
    # Without a delay, or with a single request, there is nothing to tell.
    runs = runs[(runs["delay_s"] >= analysis.SHORTEST_TELLING_DELAY_S) & (runs["n"] > 1)]
    by_way = runs.groupby(["stack", "client", "scheme"], sort=False)
    return pd.Series({client: analysis.verdict_of(rows) for client, rows in by_way}, dtype=object)


def text(machines: Sequence[Machine]) -> str:
    """Compare machines for a terminal: what they are, what differs, and how much is alike."""
    lines = [f"{machine.name}: {machine.label}" for machine in machines]
    if notes := [
        f"{machine.name}: {machine.about['note']}"
        for machine in machines
        if "note" in machine.about
    ]:
        lines += notes
    rows, because = findings(machines), reasons_given(places.ROOT)
    lines += ["", how_many(rows)]
    for row in rows:
        if row.differs:
            lines += [f"  {row.id}", f"    {in_words(row, machines, because)}"]
    lines += ["", "How the machines differ:"]
    lines += [
        f"  {fact_name}: {' / '.join(values)}."
        for fact_name, values in differences(machines).items()
    ]
    lines += [f"  {sentence}" for sentence in unsteady(machines)]
    frame = verdicts(machines)
    if len(frame):
        differ = frame[frame.nunique(axis=1) > 1]
        common = int(frame.notna().all(axis=1).sum())
        lines += ["", f"Serial or concurrent: {common} ways to fetch were measured on all of them, "
                  f"and {len(differ)} came out differently."]  # fmt: skip
        for client, machine_verdicts in differ.iterrows():
            by_machine = ", ".join(
                f"{name} {verdict}" for name, verdict in machine_verdicts.dropna().items()
            )
            lines.append(f"  {' '.join(map(str, client))}: {by_machine}")
    return "\n".join(lines)
