"""The chapters at a glance, for start.ipynb: what each takes, and what this machine can measure."""

import re
from html import escape
from pathlib import Path

from casebook import places
from casebook.charts.captions import Caption
from casebook.charts.tables import Table, table
from casebook.pages import timing
from casebook.pages.contents import Book, code_cells, read
from casebook.stacks import environments, interpreters

#: How cells name what only an old Python can run: stack-py27, or its version in quotes.
_NAMED = {"2.7": r'py27|"2\.7"', "3.7": r'py37|"3\.7"'}
#: "25 minutes, one of them measuring": the last time that a chapter's beginning tells.
_MINUTES = re.compile(r"(?:\d+|[Hh]alf a) minutes?[^.*]*")


def chapters() -> Table:
    """Return a row for each notebook of the book, in reading order, linked from the root folder.

    The time at a reader's pace is what the chapter says; the time that its cells took is that of
    the last build here, if there was one.
    """
    book = Book(places.ROOT)
    took, missing = timing.read(book), [version for version in _NAMED if not _runs(version)]
    seconds = {stem: time.wall_s for stem, time in took.items()}
    rows = [_row(path, seconds.get(path.stem), missing) for path in book.notebooks()]
    titles = ["chapter", "takes", "what is measured here"]
    titles += ["its last run here, s"] * bool(took)
    lines = (row[: len(titles)] for row in rows)
    return table(Caption("The chapters"), titles, lines, numbers=[3])


def _runs(version: str) -> bool:
    """Say whether there is such a Python, on a processor that its packages exist for."""
    interpreter = interpreters.find(version)
    return interpreter is not None and interpreter.machine in environments.X86_64


def _row(path: Path, seconds: float | None, missing: list[str]) -> list[str]:
    notebook = read(path)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    code = "\n".join(cell.source for cell in code_cells(notebook))
    title = re.search(r"(?m)^# (.+)", text)
    minutes = _MINUTES.findall(text.partition("\n## ")[0])
    number = path.stem.partition("_")[0].lstrip("0")
    named = f"{number} " * number.isdigit() + (title[1] if title else path.stem)
    lacks = [version for version in missing if re.search(_NAMED[version], code)]
    return [
        f'<a href="{path.relative_to(places.ROOT).as_posix()}">{escape(named)}</a>',
        minutes[-1].lower() if minutes else "",
        f"all but Python {' and '.join(lacks)}, which is recorded" if lacks else "all",
        "" if seconds is None else f"{seconds:.0f}",
    ]
