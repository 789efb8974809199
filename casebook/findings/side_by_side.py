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
from casebook.laboratory import elsewhere
from casebook.laboratory.decisions import HOLDS, NOT_HERE, OTHERWISE, UNDECIDED, Window
from casebook.laboratory.machines import Machine

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
#: speed varied so much that small differences mean nothing (laboratory/machine.py measures it).
UNSTEADY_FROM = 1.5

#: How a difference ranks: the higher, the further up.
OPPOSED, DECIDED_ON_ONE, NOT_ON_ALL, ALIKE = 3, 2, 1, 0


#: A link to a finding whose title is the sentence for the case that it does not hold.
_LINK = re.compile(r'#claim-([a-z0-9-]+)\s+"([^"]+)"\)')


@dataclass(frozen=True)
class Row:
    """One finding on several machines. said: the statement, or the id where no machine has it.
    each: what came out, by machine, None where it has none. rank: how they differ."""

    id: str
    said: str
    window: str
    each: list[dict[str, Any] | None]
    rank: int

    @property
    def differs(self) -> bool:
        """Whether the outcomes are not all the same."""
        return self.rank > ALIKE


def windows(claims: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """What the findings on a clock ask for, as text, by id and sentence without its numbers.

    Parameters:
        claims: records as in claims.json.
    """
    return {
        (claim["id"], _without_numbers(claim["statement"])): claim["window"]
        for claim in claims
        if claim.get("window")
    }


def _without_numbers(statement: str) -> str:
    return re.sub(r" \(# to #\)", "", re.sub(r"[-+]?\d[\d.,]*", "#", statement))


def judged_today(machine: Machine, asked: Mapping[tuple[str, str], str]) -> Machine:
    """Judge the findings of a machine by the windows that are asked for today.

    Parameters:
        machine: with the outcomes of the book that was built there.
        asked: the windows of today (`windows`).

    Returns the machine with these outcomes. The outcome stays where a sentence says something else
    today, since its number may be another one; where there is no interval; and where it was not
    the interval that had decided, but a count beside it.
    """
    return replace(
        machine,
        findings={
            id: _judged(found, asked.get((id, _without_numbers(found.get("statement", ""))), ""))
            for id, found in machine.findings.items()
        },
    )


def _judged(found: dict[str, Any], asked: str) -> dict[str, Any]:
    there, interval = found.get("window", ""), found.get("interval") or []
    if not asked or not there or asked == there or len(interval) != 2:
        return found
    try:
        before, now = (Window.read(each).outcome(*interval) for each in (there, asked))
    except UsageError:  # a stranger's file may say anything
        return found
    if found.get("outcome") != before:
        return found
    return found | {"outcome": now, "window": asked, "there": f"asked there: {there}: {before}"}


def findings(machines: Sequence[Machine]) -> list[Row]:
    """The findings of some machines, those that differ most first."""
    ids = dict.fromkeys(id for machine in machines for id in machine.findings)
    rows = []
    for id in ids:
        each = [machine.findings.get(id) for machine in machines]
        there = [found for found in each if found]
        # Where it was not measured, its sentence has gaps in the place of numbers.
        measured = sorted(there, key=lambda found: found.get("outcome") == NOT_HERE)
        said = next((found["statement"] for found in measured if found.get("statement")), id)
        window = next((found["window"] for found in there if found.get("window")), "")
        rows.append(Row(id, said, window, each, _rank([f.get("outcome", "") for f in there])))
    return sorted(rows, key=lambda row: -row.rank)


def how_many(rows: Sequence[Row]) -> str:
    """How many findings differ, of those that several machines have: a sentence."""
    shared = [row for row in rows if sum(found is not None for found in row.each) > 1]
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


def outcome(found: dict[str, Any] | None, window: str = "") -> str:
    """What came out on one machine, in a few words: "otherwise, 1.10 (1.04 to 1.15)".

    window: what is asked today; where that machine's book asked something else, it says so.
    """
    if not found:
        return "not among its findings"
    said = found.get("outcome", "?").replace("-", " ")
    value, interval = found.get("value"), found.get("interval") or []
    if isinstance(value, bool | str):
        said += f", {value}"
    elif value is not None:
        unit = words.of_number(value, found.get("unit") or "")
        said += f", {words.amount(value)} {unit}".rstrip()
    if len(interval) == 2:
        said += " ({} to {})".format(*(words.number(end) for end in interval))
    if found.get("there"):
        said += f", {found['there']}"
    elif window and found.get("window", window) not in ("", window):
        said += f", asked: {found['window']}"
    if found.get("outcome") == NOT_HERE and found.get("because"):
        said += f" ({found['because']})"
    if others := [each.replace("-", " ") for each in found.get("others", [])]:
        if set(others) != {found.get("outcome", "?").replace("-", " ")}:
            said += f"; in further builds {words.join(others)}"
    return said


def in_words(
    row: Row, machines: Sequence[Machine], because: Mapping[str, str] | None = None
) -> str:
    """Put a difference in words: which machine has which outcome, and why, if a chapter says it.

    Parameters:
        row: a finding on these machines.
        machines: in the order of `row.each`.
        because: of `reasons_given`.
    """
    said = (
        f"{machine.name}: {outcome(found, row.window)}"
        for machine, found in zip(machines, row.each, strict=True)
        if found
    )
    said_all = f"{row.said.rstrip('.')}{f' (asked: {row.window})' if row.window else ''}."
    reason = (because or {}).get(row.id) if row.rank in (OPPOSED, DECIDED_ON_ONE) else None
    why = f" Where it is otherwise: {reason}" if reason else ""
    # A file's name stays as it is written.
    each = re.sub("^this machine", "This machine", "; ".join(said))
    return f"{said_all} {each}.{why}"


def reasons_given(root: Path) -> dict[str, str]:
    """Collect what the chapters say where a finding comes out otherwise, or cannot be decided.

    Parameters:
        root: of the book. A link to a finding has such a sentence as its title (CONTRIBUTING.md).

    Returns the sentences by the finding's id.
    """
    found: dict[str, str] = {}
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for id, title in _LINK.findall("".join(cell["source"])):
                said = re.search(rf"{OTHERWISE}: *(.*?)(?= *{UNDECIDED}:|$)", title)
                if said and cell["cell_type"] == "markdown":
                    found.setdefault(id, said[1])
    return found


def differences(machines: Sequence[Machine]) -> dict[str, list[str]]:
    """In what the machines differ, as far as their files say: a value for each of them."""
    found = {}
    for name, in_full in _OF_A_MACHINE.items():
        values = [machine.about.get(name) for machine in machines]
        if len({str(value) for value in values}) > 1:
            its = ("not said" if value is None else str(value) for value in values)
            found[words.capital(in_full)] = [_TO_THE_SECOND.sub(r" \1 UTC", each) for each in its]
    return found


def unsteady(machines: Sequence[Machine]) -> list[str]:
    """A sentence for each machine whose speed varied much."""
    said = []
    for machine in machines:
        unit = machine.about.get("unit_ms", [])
        if len(unit) == 3 and 0 < unit[0] and unit[2] / unit[0] >= UNSTEADY_FROM:
            said.append(
                f"{machine.name} was unsteady: the same piece of work mostly took "
                f"{unit[0]:.2g} to {unit[2]:.2g} ms, so small differences mean nothing."
            )
    return said


def verdicts(machines: Sequence[Machine]) -> pd.DataFrame:
    """The verdict of each way to fetch, by the code of today: index (stack, client, scheme), a
    column for each machine's name, None where it has no such run; those that differ first."""
    columns = {
        machine.name: _verdicts(elsewhere.of_machine(machine, run_record.RUNS))
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
    return pd.Series({way: analysis.verdict_of(rows) for way, rows in by_way}, dtype=object)


def text(machines: Sequence[Machine]) -> str:
    """A comparison for a terminal: what the machines are, what differs, and how much is alike."""
    lines = [f"{machine.name}: {machine.label}" for machine in machines]
    if notes := [f"{each.name}: {each.about['note']}" for each in machines if "note" in each.about]:
        lines += notes
    rows, because = findings(machines), reasons_given(places.ROOT)
    lines += ["", how_many(rows)]
    for row in rows:
        if row.differs:
            lines += [f"  {row.id}", f"    {in_words(row, machines, because)}"]
    lines += ["", "How the machines differ:"]
    lines += [f"  {what}: {' / '.join(its)}." for what, its in differences(machines).items()]
    lines += [f"  {each}" for each in unsteady(machines)]
    frame = verdicts(machines)
    if len(frame):
        differ = frame[frame.nunique(axis=1) > 1]
        common = int(frame.notna().all(axis=1).sum())
        lines += ["", f"Serial or concurrent: {common} ways to fetch were measured on all of them, "
                  f"and {len(differ)} came out differently."]  # fmt: skip
        for way, each in differ.iterrows():
            its = ", ".join(f"{name} {said}" for name, said in each.dropna().items())
            lines.append(f"  {' '.join(map(str, way))}: {its}")
    return "\n".join(lines)
