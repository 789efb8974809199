"""The page *Your program*: a report of the doctor, drawn beside programs that the book measured.

A report is a stranger's text. What is taken out of it is numbers within bounds and short texts,
which stand on the page as text.
"""

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import charts
from casebook.cases import products
from casebook.cases.patients import working
from casebook.pages import program_report
from casebook.pages.program_report import ADVISED, COUNTED

NONE_GIVEN = """\
This copy of the book has none yet. Run the doctor on your program, and build the book with what it
found:

```bash
python doctor.py run --json -- \\
  your_program.py > report.json
make book PROGRAM=report.json
```
"""
#: What the doctor found ill: (question, its verdict, chapters as `doctor.CHAPTERS` numbers them,
#: why they matter). The first three that apply are told.
MATTERS = (
    ("event loop", "blocked", 2, "while one request waits, all others of your program do"),
    ("handshakes", "one at a time", 11, "its handshakes waited for each other"),
    ("loads on the loop", "held up", 16, "its event loop loaded certificates while others waited"),
    ("certificate loads", "repeated", 13, "it loaded the same certificates again and again"),
    ("contexts", "one for each client", 16, "it kept many contexts with the same certificates"),
    ("certificate loads", "repeated", 10, "one context for all connections ends that"),
    ("event loop", "blocked", 7, "these changes let its event loop run on"),
)
CODE = ("remove", "add")
#: What is drawn of the reader's program, and of the book's.
SIDE_BY_SIDE = {
    "connections": "connections", "loads": "certificate loads", "share": "share of the CPU, %",
}  # fmt: skip
#: Verdicts on something that was seen.
WELL = {"not repeated", "free", "at once", "few"}


def page(root: Path, answers: Sequence[dict[str, Any]]) -> str:
    """Return the Markdown of the page below its first paragraph.

    answers: of the machine whose programs are drawn beside the reader's.
    """
    file = program_report.file_in(root)
    if not file.exists():
        return NONE_GIVEN
    figures = json.loads(file.read_text(encoding="utf-8"))
    parts = [_raw(_counts(figures)), "## What matters to you\n", _chapters(figures["verdicts"])]
    if figures["advice"]:
        parts += ["## What the doctor would change\n", _raw(_advice(figures["advice"]))]
    jobs = _similar_jobs(working.rows_of(answers), figures["clients"])
    if drawings := _draw(figures["counts"], jobs):
        title = "Beside programs of the book" if len(jobs) else "In the book's charts"
        parts += [f"## {title}\n", *map(_raw, drawings)]
    return "\n".join(parts)


def _raw(text: str) -> str:
    return f"```{{raw}} html\n{text}\n```\n"


def _counts(figures: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{title}</th><td>{figures['counts'][name]:g}</td></tr>"
        for name, title in COUNTED.items()
    )
    program, python = html.escape(figures["program"]), html.escape(figures["python"])
    return (
        f"<p><code>{program}</code>, run with Python {python}. The doctor counted this in your "
        f"run; it was not measured when this page was made.</p><table class='table'>"
        f"<caption>What your program did</caption><tbody>{rows}</tbody></table>"
    )


def _chapters(verdicts: dict[str, str]) -> str:
    matters = [matter for matter in MATTERS if verdicts[matter[0]] == matter[1]][:3]
    if not matters and not set(verdicts.values()) & WELL:
        return (
            "The doctor could not tell: it saw no TLS connection in this run, or could not try "
            "your event loop. [Its page](../notebooks/a_doctor.ipynb) says what it cannot see.\n"
        )
    if not matters:
        return (
            "The doctor found nothing ill that it looks for. "
            "[What to take with you](../notebooks/23_what_to_take.ipynb) is the chapter to read.\n"
        )
    lines = []
    for place, (_, _, number, reason) in enumerate(matters, 1):
        file, title = products.doctor.CHAPTERS[number]
        lines.append(f"{place}. [{title}](../notebooks/{file}.ipynb): {reason}.")
    return "\n".join(lines) + "\n"


def _similar_jobs(jobs: pd.DataFrame, clients: list[str]) -> pd.DataFrame:
    """Return the jobs that the doctor was tried on with the same clients, or what calls them.

    If there are none, those with requests.
    """
    jobs = jobs[jobs["question"] == working.LOADS]
    clients_of_jobs = jobs["job"].map(lambda name: name.partition(",")[0])
    return jobs[
        clients_of_jobs.isin(clients)
        if clients_of_jobs.isin(clients).any()
        else clients_of_jobs == "requests"
    ]


def _draw(counts: dict[str, float], jobs: pd.DataFrame) -> list[str]:
    """Draw the program's counts in the book's charts, above those of the jobs.

    Nothing if it made no connection.
    """
    if not counts["connections"]:
        return []
    rows = [
        {"program": job["job"], "connections": job["connections_doctor"],
         "loads": job["loads_doctor"], "share": job["share_doctor"]}
        for _, job in jobs.iterrows()
    ]  # fmt: skip
    program = {"program": "your program", "source": "from its report"}
    frame = pd.DataFrame([program | {name: counts[name] for name in SIDE_BY_SIDE}, *rows])
    drawings = []
    for columns, title in (
        (("connections", "loads"), "Connections, and certificate loads"),
        (("share",), "What the loads cost that were not needed"),
    ):
        quantities = {name: SIDE_BY_SIDE[name] for name in columns}
        name = f"your-program-{columns[-1]}"
        drawings.append(charts.dots(frame, quantities, "program", title=title, name=name).html)
    return drawings


def _advice(advice: list[dict[str, str]]) -> str:
    items = []
    for change in advice:
        lines = [html.escape(change["what"])]
        for name in ADVISED[1:]:
            if text := html.escape(change[name]):
                lines.append(f"{name}: " + (f"<code>{text}</code>" if name in CODE else text))
        items.append(f"<li>{'<br>'.join(lines)}</li>")
    return f"<ol>{''.join(items)}</ol>"
