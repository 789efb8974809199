"""What changed upstream: a page of the book, and what chapters say of findings that have turned."""

import json
from pathlib import Path
from typing import Any

from casebook import places

#: What `python -m casebook.upstream --keep` writes: `asked` (the day) and `findings`, each with
#: package, claim, chapter, says, before, true_from, true_to, turned and `answers`: version, still,
#: counts, turned (casebook/upstream.py). One that is over has no answers. And `clients`: what each
#: can do, by the columns of casebook/cases/bookstore/abilities.py, and `leaks`: whether it shows
#: the certificate of another with which it shares a context (null where it takes none beside one).
KEPT = places.UPSTREAM

#: HTTP/2's window of a stream, unless a client asks for another (RFC 9113, section 6.9.2).
OWN_WINDOW = 65_535

Checks = dict[str, Any]


def load(root: Path) -> Checks:
    """Load what was asked upstream last; nothing if nobody has asked yet."""
    path = root / KEPT
    if not path.exists():
        return {"asked": "", "findings": [], "clients": []}
    return json.loads(path.read_text(encoding="utf-8"))


def page(checks: Checks, chapters: str = "") -> str:
    """Return a table in Markdown, a row for each release that was asked.

    chapters: the folder that links lead to; without one there are no links.
    """
    if not checks["findings"]:
        return "Nobody has asked yet: `python -m casebook.upstream --keep` does.\n"
    lines = [
        f"Asked on {checks['asked']}.",
        "",
        "| The book says | True | Asked |",
        "|---|---|---|",
    ]
    for finding in checks["findings"]:
        statement = finding["says"]
        if chapters:
            statement = (
                f"[{statement}]({chapters}{finding['chapter']}.ipynb#claim-{finding['claim']})"
            )
        cells = f"| **{finding['package']}**: {statement} | {of_releases(finding)} |"
        lines += [
            f"{cells} {answer['version']}, {_result_text(answer)} |"
            for answer in finding["answers"]
        ]
        if not finding["answers"]:
            lines.append(f"{cells} over; its chapter asks, at each build |")
    return "\n".join(lines) + "\n"


def clients(checks: Checks) -> str:
    """Return what clients can do, in Markdown: sentences, and the table that they are made from."""
    rows = checks.get("clients", [])
    if not rows:
        return ""
    lines = [
        *(f"- {sentence}" for sentence in sentences(rows)),
        "",
        "| client | windows, KiB | HTTP/3 | early | loads |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        wide = "no HTTP/2"
        if row["http2"]:
            wide = f"{row['stream_window'] / 1024:,.0f} and {row['connection_window'] / 1024:,.0f}"
        over_quic = "" if row["http3"] is None else "if told so" if row["http3"] else "no"
        if row["quic_by_itself"]:
            over_quic = "by itself"
        early = "" if row["early"] is None else f"{row['early']:.0f} of 2"
        loads = "" if row["loads"] is None else f"{row['loads']:.0f} for {row['connections']:.0f}"
        lines.append(
            f"| {row['client']} {row['release']} | {wide} | {over_quic} | {early} | {loads} |"
        )
    return "\n".join(lines) + "\n"


def sentences(rows: list[dict[str, Any]]) -> list[str]:
    """Say of all clients that were asked: HTTP/3, early requests, windows, loads, certificates."""
    real = [row for row in rows if row["http3"] is not None]
    by_themselves = listed([row for row in real if row["quic_by_itself"]])
    countable = [row for row in real if row["loads"] is not None]
    with_h2 = [row for row in rows if row["http2"]]
    wide = [row for row in with_h2 if row["stream_window"] > OWN_WINDOW]
    return [
        f"HTTP/3: {listed([row for row in real if row['http3']])}; "
        f"not {listed([row for row in real if not row['http3']], 'or')}. "
        f"By itself, when the server says that it can: {by_themselves}.",
        "A request with the first datagrams (0-RTT), accepted by our store: "
        f"{listed([row for row in real if row['early']])}; "
        f"not {listed([row for row in real if row['http3'] and not row['early']], 'or')}.",
        "HTTP/2's own window of 65,535 bytes is opened by "
        f"{listed(wide)}; not by {listed([row for row in with_h2 if row not in wide], 'or')}.",
        "As many loads of certificates as connections: "
        f"{listed([row for row in countable if row['loads'] >= row['connections']])}; fewer: "
        f"{listed([row for row in countable if row['loads'] < row['connections']])}. "
        "Python cannot count those of "
        f"{listed([row for row in real if row['loads'] is None])}.",
        "Clients share a context, and one of them brings a certificate (`cert=`). The next one "
        f"shows it, too: {listed([row for row in real if row['leaks']])}; does not show it: "
        f"{listed([row for row in real if row['leaks'] is False])}. Nobody can bring one beside a "
        f"context of Python's: {listed([row for row in real if row['leaks'] is None])}.",
    ]


def listed(rows: list[dict[str, Any]], last: str = "and") -> str:
    """Return the clients of some rows, as a sentence lists them."""
    names = [row["client"] for row in rows] or ["none"]
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def of_releases(finding: dict[str, Any]) -> str:
    """Return the releases of its package that a finding is true of.

    They are the oldest and the newest that we know, and the neighbours that it is not true of.
    """
    false_before, false_since = finding["before"], finding["turned"]
    true_of = [answer["version"] for answer in finding["answers"] if answer["still"]]
    false_since = false_since or next(
        (answer["turned"] for answer in finding["answers"] if answer["still"] is False), ""
    )
    from_ = finding["true_from"]
    to = (true_of or [finding["true_to"]])[-1]
    text = f"from {from_} to {to}" if from_ != to else f"in {to}"
    text += "" if false_before else ", and perhaps before"
    exceptions = " or ".join(version for version in (false_before, false_since) if version)
    return text + (f" (not in {exceptions})" if exceptions else "")


def releases(checks: Checks, chapter: str) -> str:
    """Return what a chapter says below everything else: which releases its findings are true of.

    Empty if it has none.
    """
    lines = [
        f"- **{finding['package']}**: [{finding['says']}](#claim-{finding['claim']}). True "
        f"{of_releases(finding)}."
        for finding in checks["findings"]
        if finding["chapter"] == chapter
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
    """Return what a chapter says above everything else: its findings that have turned.

    They are in a green box; empty if none has.
    """
    lines = []
    for finding in checks["findings"]:
        no_longer = [answer for answer in finding["answers"] if answer["still"] is False]
        if no_longer and finding["chapter"] == chapter:
            first = no_longer[0]
            lines.append(
                f"- Since {finding['package']} {first['turned']} it is no longer true that "
                f"{finding['says']} ({first['version']}: {first['counts']})."
            )
    if not lines:
        return ""
    return "\n".join([
        "```{admonition} One release later", ":class: tip", *lines, "",
        f"Asked on {checks['asked']}. This chapter measures the releases that it names; "
        "[What changed upstream](../book/upstream.md) has the others.", "```",
    ])  # fmt: skip
