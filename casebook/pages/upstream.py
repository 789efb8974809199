"""What changed upstream: a page of the book, and what a chapter says whose verdict has turned."""

import json
from pathlib import Path
from typing import Any

from casebook import places

#: What `python -m casebook.upstream --keep` writes: `asked` (the day) and `verdicts`, each with
#: package, claim, chapter, says, before, true_from, true_to, turned and `answers`: version, still,
#: counts, turned (casebook/upstream.py). One that is over has no answers.
KEPT = places.UPSTREAM

Checks = dict[str, Any]


def load(root: Path) -> Checks:
    """Load what was asked upstream last; nothing if nobody has asked yet."""
    path = root / KEPT
    if not path.exists():
        return {"asked": "", "verdicts": []}
    return json.loads(path.read_text(encoding="utf-8"))


def page(checks: Checks, chapters: str = "") -> str:
    """Return a table in Markdown, a row for each release that was asked.

    chapters: the folder that links lead to; without one there are no links.
    """
    if not checks["verdicts"]:
        return "Nobody has asked yet: `python -m casebook.upstream --keep` does.\n"
    lines = [
        f"Asked on {checks['asked']}.",
        "",
        "| The book says | True | Asked |",
        "|---|---|---|",
    ]
    for verdict in checks["verdicts"]:
        statement = verdict["says"]
        if chapters:
            statement = (
                f"[{statement}]({chapters}{verdict['chapter']}.ipynb#claim-{verdict['claim']})"
            )
        cells = f"| **{verdict['package']}**: {statement} | {of_releases(verdict)} |"
        lines += [
            f"{cells} {answer['version']}, {_result_text(answer)} |"
            for answer in verdict["answers"]
        ]
        if not verdict["answers"]:
            lines.append(f"{cells} over; its chapter asks, at each build |")
    return "\n".join(lines) + "\n"


def of_releases(verdict: dict[str, Any]) -> str:
    """Return the releases of its package that a verdict is true of: the oldest and the newest that
    we know, and the neighbours that it is not true of."""
    false_before, false_since = verdict["before"], verdict["turned"]
    true_of = [answer["version"] for answer in verdict["answers"] if answer["still"]]
    false_since = false_since or next(
        (answer["turned"] for answer in verdict["answers"] if answer["still"] is False), ""
    )
    from_ = verdict["true_from"]
    to = (true_of or [verdict["true_to"]])[-1]
    text = f"from {from_} to {to}" if from_ != to else f"in {to}"
    text += "" if false_before else ", and perhaps before"
    exceptions = " or ".join(version for version in (false_before, false_since) if version)
    return text + (f" (not in {exceptions})" if exceptions else "")


def releases(checks: Checks, chapter: str) -> str:
    """Return what a chapter says below everything else: which releases its verdicts are true of.
    Empty if it has none."""
    lines = [
        f"- **{verdict['package']}**: [{verdict['says']}](#claim-{verdict['claim']}). True "
        f"{of_releases(verdict)}."
        for verdict in checks["verdicts"]
        if verdict["chapter"] == chapter
    ]
    if not lines:
        return ""
    return "\n".join([
        "## Of which releases", "",
        "What this chapter says of these packages is true from one release to another. The newest "
        "release is [asked each night](../book/upstream.md).", "", *lines,
    ])  # fmt: skip


def _result_text(answer: dict[str, Any]) -> str:
    counts = answer["counts"].replace("|", "/")
    if answer["still"] is None:
        return f"could not be asked: {counts}"
    if answer["still"]:
        return f"still true: {counts}"
    return f"**no longer true**, since {answer['turned']}: {counts}"


def turned(checks: Checks, chapter: str) -> str:
    """Return what a chapter says above everything else: its verdicts that have turned, in a green
    box. Empty if none has."""
    lines = []
    for verdict in checks["verdicts"]:
        no_longer = [answer for answer in verdict["answers"] if answer["still"] is False]
        if no_longer and verdict["chapter"] == chapter:
            first = no_longer[0]
            lines.append(
                f"- Since {verdict['package']} {first['turned']} it is no longer true that "
                f"{verdict['says']} ({first['version']}: {first['counts']})."
            )
    if not lines:
        return ""
    return "\n".join([
        "```{admonition} One release later", ":class: tip", *lines, "",
        f"Asked on {checks['asked']}. This chapter measures the releases that it names; "
        "[What changed upstream](../book/upstream.md) has the others.", "```",
    ])  # fmt: skip
