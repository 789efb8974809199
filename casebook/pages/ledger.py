"""The text of the claims ledger and of the page "published against measured"."""

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from casebook import words
from casebook.findings import side_by_side
from casebook.findings.published import described
from casebook.laboratory import error_rates
from casebook.laboratory.decisions import ERROR, independent
from casebook.laboratory.machines import Machine

#: The fields of claims.json, in this order.
CLAIM_FIELDS = (
    "id", "statement", "value", "unit", "n", "spread", "interval", "window", "decided",
    "correlation",
    "outcome", "holds", "because", "attempts", "source", "stack", "on", "chapter",
)  # fmt: skip

#: How outcomes (casebook/findings) are counted, for one and for several.
_COUNTED = {
    "holds": ("holds", "hold"),
    "undecided": ("is undecided", "are undecided"),
    "otherwise": ("came out otherwise",) * 2,
    "not here": ("cannot be measured here",) * 2,
    "reproduced": ("is reproduced", "are reproduced"),
    "differs": ("differs", "differ"),
    "not reproduced": ("is not reproduced", "are not reproduced"),
    "not measured": ("is not measured", "are not measured"),
}

Record = dict[str, Any]


def came_out(outcomes: Iterable[str]) -> str:
    """How many came out how: "8 hold, 1 is undecided"."""
    counts = Counter(outcome.replace("-", " ") for outcome in outcomes)
    return ", ".join(
        f"{counts[each]} {said[counts[each] > 1]}"
        for each, said in _COUNTED.items()
        if counts[each]
    )


def claims_json(claims: list[Record]) -> str:
    """A JSON array, one object per claim with the fields of CLAIM_FIELDS (null where not given)."""
    fields = [{name: claim.get(name) for name in CLAIM_FIELDS} for claim in claims]
    return json.dumps(fields, indent=1)


def claims_page(claims: list[Record]) -> str:
    """A MyST table of the claims, for book/claims.md to include."""
    if not claims:
        return "No chapter has made a claim yet."
    heads = ("Claim", "Value", "n", "Interval or spread", "Outcome", "Source", "Measured on",
             "Chapter")  # fmt: skip
    rows = [
        (
            f"{_named('claim', claim['id'])}<br>{in_cell(claim['statement'])}",
            _quantity(claim.get("value"), claim.get("unit")),
            in_cell(claim.get("n")),
            _range(claim),
            _outcome(claim),
            in_cell(claim.get("source")),
            "<br>".join(filter(None, map(in_cell, (claim.get("stack"), claim.get("on"))))),
            _chapter(claim, "claim"),
        )
        for claim in claims
    ]
    said = came_out(claim["outcome"] for claim in claims)
    said = f"{len(claims)} claims in this build: {said}.{_of_clocks(claims)}"
    return f"{said}\n\n{_table('claims', heads, rows)}"


def _of_clocks(claims: list[Record]) -> str:
    """What the findings on a clock are worth together: how many may be wrong, and how far their
    rounds resemble each other."""
    on_clocks = [claim for claim in claims if claim.get("window")]
    if not on_clocks:
        return ""
    some, alike_by = len(on_clocks), 0.4
    simulated, if_alike = (
        some * sum(error_rates.wrong_sides(correlation).values()) for correlation in (0, alike_by)
    )
    said = (
        f" Decided on a clock: {some} of them. Each promises to err in {ERROR:.0%} of all builds "
        f"at most, so {ERROR * some:.2g} of these might be on the wrong side in an average build. "
        "That is a bound. Were the truth of each on the very end of its window, where one errs "
        "most, and its rounds independent, a simulation of the same looks and the second attempt "
        f"has {simulated:.2g} of them there; {if_alike:.2g} if each round were correlated with the "
        f"next by {alike_by}."
    )
    alike = [claim for claim in on_clocks if claim.get("correlation") is not None]
    if alike:
        beyond = [each["correlation"] - independent(each["n"]) for each in alike]
        said += (
            f" Each round's value is correlated with the next (known of {len(alike)}): in the "
            f"median finding by {_correlation(median(each['correlation'] for each in alike))}, "
            "where independent rounds would show "
            f"{_correlation(median(independent(each['n']) for each in alike))}; in "
            f"{sum(each > 0.5 for each in beyond)} by more than 0.5 beyond that. Where it is "
            "beyond, the interval is widened."
        )
    return said


def published_page(published: dict[str, dict[str, str]], comparisons: list[Record]) -> str:
    """A MyST table of comparisons, for book/published.md to include.

    `published`: Book.published, whose order is that of the table. A comparison whose id is not in
    it comes last and is shown by its id alone.
    """
    if not comparisons:
        return "No chapter has compared itself with a published number yet."
    order = [*published, *(record["id"] for record in comparisons)]
    heads = ("Published", "Theirs", "Ours", "Outcome", "Why", "Source", "Chapter")
    rows = []
    for record in sorted(comparisons, key=lambda record: order.index(record["id"])):
        about = _named("published", record["id"])
        if record["id"] in published:
            about += f"<br>{in_cell(described(published[record['id']]))}"
        names = ("published", "measured_text", "outcome", "why", "source")
        shown = (in_cell(record.get(name)) for name in names)
        rows.append((about, *shown, _chapter(record, "published")))
    return _table("published", heads, rows)


def _named(kind: str, name: str) -> str:
    """An id, with the anchor to which the marks in the chapters lead."""
    return f'<span id="{kind}-{html.escape(name)}"></span>**{in_cell(name)}**'


def _outcome(claim: Record) -> str:
    """How a claim came out, and how its attempts did where it was measured twice."""
    said = f"**{in_cell(claim['outcome'])}**"
    if claim.get("because"):
        said += f": {in_cell(claim['because'])}"
    for number, attempt in enumerate(claim.get("attempts") or (), 1):
        value = _quantity(attempt.get("value"))
        said += f"<br>attempt {number}: {in_cell(attempt['outcome'])}, {value}"
    return said


def machines_page(
    machines: Sequence[Machine],
    because: Mapping[str, str] | None = None,
    drawn: Iterable[str] = (),
) -> str:
    """Write the findings of machines side by side, for book/your_machine.md to include.

    Parameters:
        machines: this one first. All their text is escaped: a file may be a stranger's.
        because: what the chapters say where a finding is otherwise, by its id.
        drawn: charts of these machines, as HTML.
    """
    rows = side_by_side.findings(machines)
    if not rows:
        return "No chapter has made a claim yet."
    heads = [in_cell(machine.name) for machine in machines]
    said = (side_by_side.in_words(row, machines, because) for row in rows if row.differs)
    lines = ["## What came out differently", "", side_by_side.how_many(rows), ""]
    lines += [f"- {in_cell(each)}" for each in said]
    lines += ["", "## How the machines differ", ""]
    if differ := side_by_side.differences(machines).items():
        those = [(what, *map(in_cell, its)) for what, its in differ]
        facts = _lined([("", *heads), ["---"] * (1 + len(heads)), *those])
        lines += [f":::{{container}} facts\n\n{facts}\n\n:::", ""]
    lines += [f"- {in_cell(each)}" for each in side_by_side.unsteady(machines)]
    for machine in machines:
        if "note" in machine.about:
            lines.append(f"- {in_cell(machine.name)}: {in_cell(machine.about['note'])}")
    if drawn := [f"```{{raw}} html\n{chart}\n```\n" for chart in drawn]:
        lines += ["", "## The same work on each machine", "", *drawn]
    cells = [(_finding(row), _on_each(row, heads)) for row in rows]
    lines += ["", "## Finding by finding", ""]
    return "\n".join([*lines, _table("machines", ("Finding", "Came out"), cells)])


def _on_each(row: side_by_side.Row, names: Sequence[str]) -> str:
    """How a finding came out on each of these machines: once, where all of them say the same."""
    each = [in_cell(side_by_side.outcome(found, row.window)) for found in row.each]
    if len(each) > 1 and len(set(each)) == 1:
        return f"on all: {each[0]}"
    return "<br>".join(f"{name}: {said}" for name, said in zip(names, each, strict=True))


def _finding(row: side_by_side.Row) -> str:
    """A finding in the table of machines, with a link to the ledger where this book states it."""
    asked = f"<br>asked: {in_cell(row.window)}" if row.window else ""
    said = in_cell(row.said)
    if row.each[0]:
        said += f' (<a href="claims.html#claim-{html.escape(row.id)}">claim</a>)'
    return said + asked


def _range(claim: Record) -> str:
    """The interval of a finding on a clock and what was asked, with that which decided where it is
    another; else the spread of its runs."""
    if not claim.get("window") and not claim.get("decided"):
        return _ends(claim.get("spread"))
    by = [claim] if claim.get("window") else []
    if claim.get("decided") and claim["decided"]["interval"] != claim.get("interval"):
        by.append(claim["decided"])
    said = "<br>and<br>".join(
        f"{_ends(each['interval']) or 'none'}<br>asked: {in_cell(each['window'])}" for each in by
    )
    if claim.get("correlation") is not None:
        by_chance = _correlation(independent(claim["n"]))
        said += (
            f"<br>a round with the next: {_correlation(claim['correlation'])} "
            f"(independent: {by_chance})"
        )
    return said


def _correlation(value: float) -> str:
    return f"{round(value, 2) + 0:.2f}"  # no -0.00


def _ends(ends: Sequence[float] | None) -> str:
    """Two ends in words; once where they read the same."""
    return " to ".join(dict.fromkeys(_quantity(end) for end in ends or ()))


def _chapter(record: Record, kind: str) -> str:
    """A link to where the chapter shows it."""
    chapter = record["chapter"]
    address = f"../notebooks/{chapter}.html#{kind}-{html.escape(record['id'])}"
    return f'<a href="{address}">{in_cell(chapter.replace("_", " "))}</a>'


def _quantity(value: Any, unit: Any = None) -> str:
    number = f"{value:.4g}" if isinstance(value, float) else value
    if isinstance(value, bool):
        number = "yes" if value else "no"
    elif unit:
        unit = words.of_number(value, unit)
    return " ".join(part for part in (in_cell(number), in_cell(unit)) if part)


def in_cell(value: Any) -> str:
    """Text that stays in its table cell and means nothing to Markdown."""
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
    """The lines of a Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _titled(head: str, cell: str) -> str:
    return cell and f'<span class="title">{head}</span> {cell}'
