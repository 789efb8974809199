"""The text of the claims ledger and of the page "published against measured"."""

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from casebook import words
from casebook.findings import side_by_side
from casebook.findings.finding import Finding, Rounds, Value
from casebook.findings.published import Comparison, described
from casebook.laboratory import error_rates
from casebook.laboratory.decisions import ERROR, independent, outcome_in_words
from casebook.laboratory.machine_files import Machine

#: The file of all findings, beside the pages that include it and in the built book.
FINDINGS_FILE = "claims.json"
#: The fields of a finding that are for the next build alone, and not in that file.
_NOT_LISTED = ("live", "keys")

#: How outcomes (casebook/findings) are counted, for one and for several.
_COUNTED = {
    "holds": ("holds", "hold"),
    "undecided": ("is undecided", "are undecided"),
    "otherwise": ("came out otherwise",) * 2,
    "not here": ("cannot be measured here",) * 2,
    "reproduced": ("is reproduced", "are reproduced"),
    "differs": (
        "has the same finding, in other figures",
        "have the same finding, in other figures",
    ),
    "not reproduced": ("is not reproduced", "are not reproduced"),
    "not measured": ("is not measured", "are not measured"),
}


def came_out(outcomes: Iterable[str]) -> str:
    """Return how many came out in which way: "8 hold, 1 is undecided"."""
    counts = Counter(map(outcome_in_words, outcomes))
    return ", ".join(
        f"{counts[outcome_name]} {forms[counts[outcome_name] > 1]}"
        for outcome_name, forms in _COUNTED.items()
        if counts[outcome_name]
    )


def claims_json(findings: Iterable[Finding]) -> str:
    """Return a JSON array, one object per finding."""
    listed = [
        {name: value for name, value in finding.as_json().items() if name not in _NOT_LISTED}
        for finding in findings
    ]
    return json.dumps(listed, indent=1)


def read(folder: Path) -> list[Finding]:
    """Read the findings of a build from the FINDINGS_FILE in a folder."""
    records = json.loads((folder / FINDINGS_FILE).read_text(encoding="utf-8"))
    return [Finding.from_json(record) for record in records]


def claims_page(findings: list[Finding]) -> str:
    """Return a MyST table of the findings, for book/claims.md to include."""
    if not findings:
        return "No chapter has made a claim yet."
    heads = ("Claim", "Value", "n", "Interval or spread", "Outcome", "Source", "Measured on",
             "Chapter")  # fmt: skip
    rows = [
        (
            f"{_named('claim', finding.id)}<br>{in_cell(finding.statement)}",
            _quantity(finding.value, finding.unit),
            in_cell(finding.n),
            _range(finding),
            _outcome(finding),
            in_cell(finding.source),
            "<br>".join(filter(None, map(in_cell, (finding.stack, finding.on)))),
            _chapter(finding, "claim"),
        )
        for finding in findings
    ]
    summary = came_out(finding.outcome for finding in findings)
    summary = f"{len(findings)} claims in this build: {summary}.{_of_clocks(findings)}"
    return f"{summary}\n\n{_table('claims', heads, rows)}"


def _of_clocks(findings: list[Finding]) -> str:
    """Return what the findings on a clock are worth together.

    That is how many of them may be wrong, and how far their rounds resemble each other.
    """
    on_clocks = [finding for finding in findings if finding.window]
    if not on_clocks:
        return ""
    count, assumed_correlation = len(on_clocks), 0.4
    simulated, if_correlated = (
        count * sum(error_rates.wrong_sides(correlation).values())
        for correlation in (0, assumed_correlation)
    )
    sentences = (
        f" Decided on a clock: {count} of them. Each promises to err in {ERROR:.0%} of all builds "
        f"at most, so {ERROR * count:.2g} of these might be on the wrong side in an average build. "
        "That is a bound. Were the truth of each on the very end of its window, where one errs "
        "most, and its rounds independent, a simulation of the same looks and the second attempt "
        f"has {simulated:.2g} of them there; {if_correlated:.2g} if each round were correlated "
        f"with the next by {assumed_correlation}."
    )
    correlated = [(f.correlation, independent(f.n)) for f in on_clocks if f.correlation is not None]
    if correlated:
        excesses = [correlation - by_chance for correlation, by_chance in correlated]
        sentences += (
            f" Each round's value is correlated with the next (known of {len(correlated)}): in the "
            "median finding by "
            f"{_correlation(median(correlation for correlation, _ in correlated))}, "
            "where independent rounds would show "
            f"{_correlation(median(by_chance for _, by_chance in correlated))}; in "
            f"{sum(excess > 0.5 for excess in excesses)} by more than 0.5 beyond that. Where it is "
            "beyond, the interval is widened."
        )
    return sentences


def published_page(published: dict[str, dict[str, str]], comparisons: list[Comparison]) -> str:
    """Return a MyST table of comparisons, for book/published.md to include.

    `published`: Book.published, whose order the table follows. A comparison whose id is not in
    it comes last and is shown by its id alone.
    """
    if not comparisons:
        return "No chapter has compared itself with a published number yet."
    order = [*published, *(comparison.id for comparison in comparisons)]
    heads = ("Published", "Theirs", "Ours", "Outcome", "Why", "Source", "Chapter")
    rows = []
    for row in sorted(comparisons, key=lambda row: order.index(row.id)):
        about = _named("published", row.id)
        if row.id in published:
            about += f"<br>{in_cell(described(published[row.id]))}"
        texts = (row.published, row.measured_text, row.outcome, row.why, row.source)
        rows.append((about, *map(in_cell, texts), _chapter(row, "published")))
    return _table("published", heads, rows)


def _named(kind: str, name: str) -> str:
    """Return an id with the anchor that the marks in the chapters lead to."""
    return f'<span id="{kind}-{html.escape(name)}"></span>**{in_cell(name)}**'


def _outcome(finding: Finding) -> str:
    """Return how a finding came out, and how its attempts did if it was measured twice."""
    text = f"**{in_cell(finding.outcome)}**"
    if finding.because:
        text += f": {in_cell(finding.because)}"
    for number, attempt in enumerate(finding.attempts, 1):
        parts = filter(None, (in_cell(attempt.outcome), _quantity(attempt.value)))
        text += f"<br>attempt {number}: {', '.join(parts)}"
    return text


def machines_page(
    machines: Sequence[Machine],
    because: Mapping[str, str] | None = None,
    charts: Iterable[str] = (),
) -> str:
    """Write the findings of machines side by side, for book/your_machine.md to include.

    Parameters:
        machines: this one first. All their text is escaped: a file may be a stranger's.
        because: what the chapters say if a finding is otherwise, by its id.
        charts: charts of these machines, as HTML.
    """
    rows = side_by_side.findings(machines)
    if not rows:
        return "No chapter has made a claim yet."
    heads = [in_cell(machine.name) for machine in machines]
    sentences = (side_by_side.in_words(row, machines, because) for row in rows if row.differs)
    lines = ["## What came out differently", "", side_by_side.how_many(rows), ""]
    lines += [f"- {in_cell(sentence)}" for sentence in sentences]
    lines += ["", "## How the machines differ", ""]
    if differ := side_by_side.differences(machines).items():
        properties = [(fact_name, *map(in_cell, values)) for fact_name, values in differ]
        facts = _lined([("", *heads), ["---"] * (1 + len(heads)), *properties])
        lines += [f":::{{container}} facts\n\n{facts}\n\n:::", ""]
    lines += [f"- {in_cell(sentence)}" for sentence in side_by_side.unsteady(machines)]
    for machine in machines:
        if "note" in machine.about:
            lines.append(f"- {in_cell(machine.name)}: {in_cell(machine.about['note'])}")
    if charts := [f"```{{raw}} html\n{chart}\n```\n" for chart in charts]:
        lines += ["", "## The same work on each machine", "", *charts]
    cells = [(_finding(row), _on_each(row, heads)) for row in rows]
    lines += ["", "## Finding by finding", ""]
    return "\n".join([*lines, _table("machines", ("Finding", "Came out"), cells)])


def _on_each(row: side_by_side.Row, names: Sequence[str]) -> str:
    """Return how a finding came out on each of these machines; once, if all say the same."""
    outcomes = [in_cell(side_by_side.outcome(finding, row.window)) for finding in row.by_machine]
    if len(outcomes) > 1 and len(set(outcomes)) == 1:
        return f"on all: {outcomes[0]}"
    return "<br>".join(f"{name}: {outcome}" for name, outcome in zip(names, outcomes, strict=True))


def _finding(row: side_by_side.Row) -> str:
    """Return a finding for the table of machines, with a link to the ledger if it is there."""
    window = f"<br>asked: {in_cell(row.window)}" if row.window else ""
    statement = in_cell(row.statement)
    if row.by_machine[0]:
        statement += f' (<a href="claims.html#claim-{html.escape(row.id)}">claim</a>)'
    return statement + window


def _range(finding: Finding) -> str:
    """Return the interval of a finding on a clock and what was asked, else the spread of the runs.

    If another interval decided, it is named as well.
    """
    if not finding.window and not finding.decided:
        return _range_text(finding.spread)
    decisive: list[Finding | Rounds] = [finding] if finding.window else []
    if finding.decided and finding.decided.interval != finding.interval:
        decisive.append(finding.decided)
    text = "<br>and<br>".join(
        f"{_range_text(rounds.interval) or 'none'}<br>asked: {in_cell(rounds.window)}"
        for rounds in decisive
    )
    if finding.correlation is not None:
        by_chance = _correlation(independent(finding.n))
        text += (
            f"<br>a round with the next: {_correlation(finding.correlation)} "
            f"(independent: {by_chance})"
        )
    return text


def _correlation(value: float) -> str:
    return f"{round(value, 2) + 0:.2f}"  # no -0.00


def _range_text(bounds: Sequence[Value] | None) -> str:
    """Return two bounds in words; once if they read the same."""
    return " to ".join(dict.fromkeys(_quantity(end) for end in bounds or ()))


def _chapter(entry: Finding | Comparison, kind: str) -> str:
    """Return a link to the place where the chapter shows a finding or a comparison."""
    address = f"../notebooks/{entry.chapter}.html#{kind}-{html.escape(entry.id)}"
    return f'<a href="{address}">{in_cell(entry.chapter.replace("_", " "))}</a>'


def _quantity(value: Any, unit: Any = None) -> str:
    number = f"{value:.4g}" if isinstance(value, float) else value
    if isinstance(value, bool):
        number = "yes" if value else "no"
    elif unit:
        unit = words.of_number(value, unit)
    return " ".join(part for part in (in_cell(number), in_cell(unit)) if part)


def in_cell(value: Any) -> str:
    """Return text that stays in its table cell and means nothing to Markdown."""
    text = "" if value is None else " ".join(str(value).split())
    parts = re.split(r"`([^`|]+)`", text)
    return "".join(
        f"`{part}`" if number % 2 else re.sub(r"[\\|`*_\[\]<>{}$]", r"\\\g<0>", part)
        for number, part in enumerate(parts)
    )


def _table(kind: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    # On a phone each row is a card, and its cells say what they are (casebook.css).
    named = [(row[0], *map(_titled, heads[1:], row[1:])) for row in rows]
    lines = [heads, tuple("---" for _ in heads), *named]
    return f":::{{container}} ledger {kind}\n\n{_lined(lines)}\n\n:::"


def _lined(lines: Iterable[Sequence[str]]) -> str:
    """Return the lines of a Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _titled(head: str, cell: str) -> str:
    return cell and f'<span class="title">{head}</span> {cell}'
