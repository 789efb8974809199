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
from casebook.cases.patients import working
from casebook.cases.products import doctor
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
    ("handshakes", "one at a time", 21, "its handshakes waited for each other"),
    ("loads on the loop", "held up", 22, "its event loop loaded certificates while others waited"),
    ("certificate loads", "repeated", 10, "it loaded the same certificates again and again"),
    ("contexts", "one for each client", 23, "it kept many contexts with the same certificates"),
    ("certificate loads", "repeated", 12, "one context for all connections ends that"),
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
    kept = _kept(root)
    kept.unlink(missing_ok=True)
    if report is not None:
        taken = _read(report)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(taken), encoding="utf-8")


def page(root: Path, answers: Sequence[dict[str, Any]]) -> str:
    """The Markdown of the page below its first paragraph.

    answers: of the machine whose programs are drawn beside the reader's.
    """
    kept = _kept(root)
    if not kept.exists():
        return NONE_GIVEN
    found = json.loads(kept.read_text(encoding="utf-8"))
    parts = [_raw(_counts(found)), "## What matters to you\n", _chapters(found["verdicts"])]
    if found["advice"]:
        parts += ["## What the doctor would change\n", _raw(_advice(found["advice"]))]
    jobs = _alike(working.measured(answers), found["clients"])
    if drawn := _drawn(found["counts"], jobs):
        title = "Beside programs of the book" if len(jobs) else "In the book's charts"
        parts += [f"## {title}\n", *map(_raw, drawn)]
    return "\n".join(parts)


def _kept(root: Path) -> Path:
    return root / places.LOCAL_NAME / "program.json"


def _read(path: Path) -> dict[str, Any]:
    """What the page takes out of a report. Raises UsageError."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        report = json.loads(text)
        counts, verdicts = report["counts"], report["verdicts"]
        advice = [
            {name: _text(each.get(name, ""), 3 * LONGEST) for name in ADVISED}
            for each in report["advice"][:MOST_ROWS]
        ]
        return {
            "program": _text(report["program"]), "python": _text(report["python"]),
            "counts": {name: _number(counts[name]) for name in COUNTED},
            "clients": [
                CALLED.get(name, name)
                for each in counts.get("clients", [])[:MOST_ROWS]
                for name in (_text(each["client"]), _text(each.get("through")))
            ],
            "verdicts": {each[0]: _text(verdicts.get(each[0], "")) for each in MATTERS},
            "advice": advice,
        }  # fmt: skip
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)[:LONGEST]
        raise UsageError(
            f"{path} is no report of a run ({why}): write one with "
            "`python doctor.py run --json -- your_program.py > report.json`"
        ) from None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a count is no number")
    if not 0 <= value <= MOST or not math.isfinite(value):
        raise ValueError(f"a count is not between 0 and {MOST:,}")
    return value


def _text(value: Any, longest: int = LONGEST) -> str:
    """A text on one line, without what cannot be seen, and not too long."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(value)[: 4 * longest])
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _raw(text: str) -> str:
    return f"```{{raw}} html\n{text}\n```\n"


def _counts(found: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{said}</th><td>{found['counts'][name]:g}</td></tr>"
        for name, said in COUNTED.items()
    )
    program, python = html.escape(found["program"]), html.escape(found["python"])
    return (
        f"<p><code>{program}</code>, run with Python {python}. The doctor counted this in your "
        f"run; it was not measured when this page was made.</p><table class='table'>"
        f"<caption>What your program did</caption><tbody>{rows}</tbody></table>"
    )


def _chapters(verdicts: dict[str, str]) -> str:
    told = [each for each in MATTERS if verdicts[each[0]] == each[1]][:3]
    if not told and not set(verdicts.values()) & WELL:
        return (
            "The doctor could not tell: it saw no TLS connection in this run, or could not try "
            "your event loop. [Its page](../notebooks/a_doctor.ipynb) says what it cannot see.\n"
        )
    if not told:
        return (
            "The doctor found nothing ill that it looks for. "
            "[What to take with you](../notebooks/20_what_to_take.ipynb) is the chapter to read.\n"
        )
    lines = []
    for place, (_, _, number, why) in enumerate(told, 1):
        file, title = doctor.CHAPTERS[number]
        lines.append(f"{place}. [{title}](../notebooks/{file}.ipynb): {why}.")
    return "\n".join(lines) + "\n"


def _alike(jobs: pd.DataFrame, clients: list[str]) -> pd.DataFrame:
    """The jobs with the same clients, or libraries that call them, that the doctor was tried on; of
    clients that there are none of, those with requests."""
    jobs = jobs[jobs["question"] == working.LOADS]
    of = jobs["job"].map(lambda name: name.partition(",")[0])
    return jobs[of.isin(clients) if of.isin(clients).any() else of == "requests"]


def _drawn(counts: dict[str, float], jobs: pd.DataFrame) -> list[str]:
    """The program's counts in the book's charts, above those of the jobs; none where it made no
    connection."""
    if not counts["connections"]:
        return []
    rows = [
        {"program": job["job"], "connections": job["connections_doctor"],
         "loads": job["loads_doctor"], "share": job["share_doctor"]}
        for _, job in jobs.iterrows()
    ]  # fmt: skip
    own = {"program": "your program", "source": "from its report"}
    frame = pd.DataFrame([own | {name: counts[name] for name in SIDE_BY_SIDE}, *rows])
    drawn = []
    for columns, title in (
        (("connections", "loads"), "Connections, and certificate loads"),
        (("share",), "What the loads cost that were not needed"),
    ):
        asked = {name: SIDE_BY_SIDE[name] for name in columns}
        name = f"your-program-{columns[-1]}"
        drawn.append(charts.dots(frame, asked, "program", title=title, name=name).html)
    return drawn


def _advice(advice: list[dict[str, str]]) -> str:
    items = []
    for each in advice:
        lines = [html.escape(each["what"])]
        for name in ADVISED[1:]:
            if said := html.escape(each[name]):
                lines.append(f"{name}: " + (f"<code>{said}</code>" if name in CODE else said))
        items.append(f"<li>{'<br>'.join(lines)}</li>")
    return f"<ol>{''.join(items)}</ol>"
