"""A sheet to print: what the machines of a class measured, side by side, and where they differ."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from casebook import words
from casebook.findings import side_by_side
from casebook.laboratory.decisions import OUTCOMES, outcome_in_words
from casebook.laboratory.machine_files import Machine

#: The most differences that are told in words: a sheet has no room for more.
TOLD = 6
#: The most machines that are named for one outcome.
NAMED = 3

_SHEET = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
@page {{ size: A4; margin: 14mm; }}
@media print {{ body {{ padding: 0; }} }}
body {{ font: 10pt/1.3 Georgia, serif; max-width: 180mm; margin: 0 auto; padding: 1em;
       color: #111; background: #fff; }}
h1 {{ font-size: 20pt; text-align: center; margin: 0 0 .2em; }}
h1 + p {{ text-align: center; margin: 0 0 1em; }}
div {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-size: 8.5pt; }}
th, td {{ text-align: left; vertical-align: top; padding: .1em .5em;
          border-bottom: 1px solid #bbb; }}
td.count, th.count {{ text-align: right; }}
li {{ margin-bottom: .2em; overflow-wrap: anywhere; }}
.signed {{ margin-top: 2.5em; display: flex; gap: 3em; }}
.signed span {{ flex: 1; border-top: 1px solid #111; padding-top: .2em; font-size: 8.5pt; }}
</style>
<h1>{title}</h1>
<p>{said}</p>
<div><table>
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
<p>{how_many}</p>
{differences}{whose}
<p>A finding is a sentence of <em>The curious case of slow HTTPS in Python</em> with a
condition that can fail. Each was decided on its machine, by what was measured there.</p>
<p class="signed"><span>Date</span><span>For the class</span></p>
</html>
"""


def page(machines: Sequence[Machine], title: str) -> str:
    """Return the sheet, a whole page of HTML that loads nothing.

    A row for each machine, with how its findings came out; then the findings that came out
    differently, at most TOLD of them in words. Texts of the files are escaped: they are strangers'.
    """
    heads = [f"<th>{head}</th>" for head in ("machine", "processor", "cores", "Python", "OpenSSL")]
    heads += [f'<th class="count">{outcome_in_words(outcome)}</th>' for outcome in OUTCOMES]
    rows = side_by_side.findings(machines)
    differing = [row for row in rows if row.differs]
    items = [_difference(row, machines) for row in differing[:TOLD]]
    if rest := len(differing) - len(items):
        items.append(f"And {rest} more: the command machine compare lists them all.")
    lines = "".join(f"<li>{escape(item)}</li>\n" for item in items)
    return _SHEET.format(
        title=escape(title),
        said=escape(_subtitle(machines)),
        heads="".join(heads),
        rows="\n".join(map(_row, machines)),
        how_many=escape(side_by_side.how_many(rows)),
        differences=f"<ul>\n{lines}</ul>\n" if lines else "",
        whose=_WHOSE if lines else "",
    )


def _subtitle(machines: Sequence[Machine]) -> str:
    """Say how many machines measured, and when: "2 machines, 2026-11-02 to 2026-11-23"."""
    days = [str(machine.about.get(name, ""))[:10] for machine in machines for name in _DAYS]
    days = sorted({day for day in days if day})
    many = f"{len(machines)} machine{'' if len(machines) == 1 else 's'}"
    return f"{many}, {' to '.join(dict.fromkeys([days[0], days[-1]]))}" if days else many


#: A sentence of a finding has the numbers of one machine.
_WHOSE = (
    """<p>The numbers in a sentence are those of the first machine above that measured it.</p>"""
)

_DAYS = ("measured_from", "measured_to")


def _difference(row: side_by_side.Row, machines: Sequence[Machine]) -> str:
    """Say on which machines a finding came out how, or on how many if they are many."""
    parts = []
    for outcome in OUTCOMES:
        names = [
            machine.name
            for machine, finding in zip(machines, row.by_machine, strict=True)
            if finding and finding.get("outcome") == outcome
        ]
        if names:
            on = words.join(names) if len(names) <= NAMED else f"{len(names)} machines"
            parts.append(f"{outcome_in_words(outcome)} on {on}")
    return f"{row.statement.rstrip('.')}. {words.capital('; '.join(parts))}."


def _row(machine: Machine) -> str:
    about: list[Any] = [machine.about.get(name, "?") for name in ("processor", "cores", "python")]
    openssl = str(machine.about.get("openssl", "?")).removeprefix("OpenSSL ").split()
    cells = [machine.name, *about, openssl[0] if openssl else "?"]
    outcomes = Counter(finding.get("outcome") for finding in machine.findings.values())
    counts = [outcomes[outcome] for outcome in OUTCOMES]
    html = [f"<td>{escape(str(cell))}</td>" for cell in cells]
    html += [f'<td class="count">{count}</td>' for count in counts]
    return f"<tr>{''.join(html)}</tr>"
