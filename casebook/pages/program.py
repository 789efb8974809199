"""The page *Your program*: a report of the doctor, drawn beside programs that the book measured.

A report is a stranger's text. What is taken out of it is numbers within bounds and short texts,
which stand on the page as text.
"""

import html
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import charts, places
from casebook.cases import products
from casebook.cases.patients import working
from casebook.errors import UsageError

#: Reports are some kilobytes. Numbers and texts of a report are cut at these.
MOST_BYTES, MOST, LONGEST, MOST_ROWS = 2_000_000, 10**9, 160, 12
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
#: What the doctor says of each thing to change; all but the first stand below it, with their names.
ADVISED = ("what", "remove", "add", "package", "saves")
CODE = ("remove", "add")
#: What is drawn of the reader's program, and of the book's.
SIDE_BY_SIDE = {
    "connections": "connections", "loads": "certificate loads", "share": "share of the CPU, %",
}  # fmt: skip
#: What the doctor calls a client, and the book's programs with it.
CALLED = {"botocore": "boto3"}
#: Verdicts on something that was seen.
WELL = {"not repeated", "free", "at once", "few"}
COUNTED = {
    "connections": "TLS connections", "handshakes": "handshakes", "peak": "handshakes at once",
    "contexts": "contexts made", "loads": "certificate loads", "needed": "loads needed",
    "share": "share of the CPU that the other loads took, %", "alive": "contexts alive at once",
}  # fmt: skip


def keep(root: Path, report: Path | None) -> None:
    """Keep a report of `doctor.py run --json` for this build; of none, forget the last one.

    Raises UsageError for what is no such report.
    """
    file = _kept_file(root)
    file.unlink(missing_ok=True)
    if report is not None:
        figures = _read(report)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(figures), encoding="utf-8")


def page(root: Path, answers: Sequence[dict[str, Any]]) -> str:
    """Return the Markdown of the page below its first paragraph.

    answers: of the machine whose programs are drawn beside the reader's.
    """
    file = _kept_file(root)
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


def _kept_file(root: Path) -> Path:
    return root / places.LOCAL_NAME / "program.json"


def _read(path: Path) -> dict[str, Any]:
    """Read from a report what the page needs. Raises UsageError."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        report = json.loads(text)
        counts, verdicts = report["counts"], report["verdicts"]
        advice = [
            {name: _text(advice_row.get(name, ""), 3 * LONGEST) for name in ADVISED}
            for advice_row in report["advice"][:MOST_ROWS]
        ]
        return {
            "program": _text(report["program"]), "python": _text(report["python"]),
            "counts": {name: _number(counts[name]) for name in COUNTED},
            "clients": [
                CALLED.get(name, name)
                for client in counts.get("clients", [])[:MOST_ROWS]
                for name in (_text(client["client"]), _text(client.get("through")))
            ],
            "verdicts": {matter[0]: _text(verdicts.get(matter[0], "")) for matter in MATTERS},
            "advice": advice,
        }  # fmt: skip
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)[:LONGEST]
        raise UsageError(
            f"{path} is no report of a run ({reason}): write one with "
            "`python doctor.py run --json -- your_program.py > report.json`"
        ) from None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a count is no number")
    if not 0 <= value <= MOST or not math.isfinite(value):
        raise ValueError(f"a count is not between 0 and {MOST:,}")
    return value


def _text(value: Any, longest: int = LONGEST) -> str:
    """Return a text on one line, without invisible characters, and not too long."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(value)[: 4 * longest])
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


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
