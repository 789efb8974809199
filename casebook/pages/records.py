"""Takes what chapters state and show out of their executed notebooks (findings/media.py)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from casebook import charts
from casebook.errors import BookFailed
from casebook.findings import media, side_by_side
from casebook.findings.finding import Finding
from casebook.findings.published import Comparison
from casebook.laboratory import machine_files
from casebook.pages import ledger, program, upstream_page
from casebook.pages.contents import Book
from casebook.pages.execution import Chapter
from casebook.words import LIVE


@dataclass(frozen=True)
class Records:
    """What all chapters said, in reading order. Each record also names its `chapter`."""

    findings: list[Finding]
    comparisons: list[Comparison]
    figures: list[dict[str, Any]]
    profiles: list[dict[str, Any]]


def collect(
    book: Book, chapters: Sequence[Chapter], machine: machine_files.Machine | None = None
) -> Records:
    """Gather, check and write what the chapters said into `book.included`.

    machine: the one whose file all answers come from, if this one was not measured.

    Files: claims.json, claims.md, published.md, machines.md, upstream.md, clients.md and one
    <name>.html per figure.
    Raises BookFailed for an id that is used twice.
    """
    collected = Records(
        findings=[*map(Finding.from_json, _unique(chapters, media.CLAIM, "claim"))],
        comparisons=[
            Comparison(**row) for row in _unique(chapters, media.COMPARISON, "comparison")
        ],
        figures=_unique(chapters, media.FIGURE, "figure"),
        profiles=_unique(chapters, media.PROFILE, "profile"),
    )
    answers = machine.answers if machine else machine_files.stored_answers()
    # A chapter that the machine's file cannot answer whole is of another file.
    elsewhere = {
        path.stem
        for path in book.notebooks()
        if machine and book.machine_file_of(path).removesuffix(machine_files.SUFFIX) != machine.name
    }
    of_machine = [finding for finding in collected.findings if finding.chapter not in elsewhere]
    files = {
        ledger.FINDINGS_FILE: ledger.claims_json(collected.findings),
        "claims.md": ledger.claims_page(collected.findings),
        "published.md": ledger.published_page(book.published(), collected.comparisons),
        "machines.md": _side_by_side(book, of_machine, machine, answers),
        "upstream.md": upstream_page.page(upstream_page.load(book.root), "../notebooks/"),
        "clients.md": upstream_page.clients(upstream_page.load(book.root)),
        "program.md": program.page(book.root, answers),
    }
    files |= {f"{figure['name']}.html": figure["html"] for figure in collected.figures}
    _write(book.included, {name: text.rstrip("\n") + "\n" for name, text in files.items()})
    return collected


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write these files, and no others, into a folder.

    One that has not changed keeps its time: Sphinx writes a page again that includes a newer one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        if file.name not in files:
            file.unlink()
    for name, text in files.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def _side_by_side(
    book: Book,
    findings: list[Finding],
    machine: machine_files.Machine | None,
    answers: list[dict[str, Any]],
) -> str:
    """Write the page *Your machine*: this machine, or that of the file, and those of the book."""
    first, further = _machines(findings, machine, answers)
    with_findings = [first, *(other for other in further if other.findings)]
    drawings = charts.of_machines([first, *further], live_machine="" if machine else first.name)
    because = side_by_side.reasons_given(book.root)
    return ledger.machines_page(with_findings, because, [drawing.html for drawing in drawings])


def _machines(
    findings: list[Finding],
    machine: machine_files.Machine | None,
    answers: list[dict[str, Any]],
) -> tuple[machine_files.Machine, list[machine_files.Machine]]:
    """Return the machine of this book with its findings, and those that come with the book."""
    if machine is None:
        about = {name: fact for name, fact in machine_files.describe().items() if name != "commit"}
        findings_here = machine_files.findings_of(finding.as_json() for finding in findings)
        first = machine_files.Machine("this machine", about, answers, findings_here)
    else:
        findings_here = machine_files.findings_of(
            replace(finding, source=LIVE).as_json() for finding in findings
        )
        first = machine_files.Machine(machine.name, machine.about, machine.answers, findings_here)
    windows = side_by_side.windows(findings)
    further = (recorded for recorded in machine_files.all_recorded() if recorded.name != first.name)
    return first, [side_by_side.judged_today(other, windows) for other in further]


def _unique(chapters: Sequence[Chapter], mime: str, kind: str) -> list[dict[str, Any]]:
    """Return the records of one media type. Raises BookFailed if two have the same name."""
    by_name: dict[str, dict[str, Any]] = {}
    for chapter in chapters:
        for record in media.records(chapter.notebook, mime):
            name = record.get("id") or record["name"]
            if name in by_name:
                stems = [by_name[name]["chapter"], chapter.stem]
                raise BookFailed(made_twice(kind, name, stems))
            by_name[name] = {**record, "chapter": chapter.stem}
    return list(by_name.values())


def made_twice(kind: str, name: str, stems: Iterable[str]) -> str:
    """Say which chapters make records of one kind with the same name."""
    where = " and in ".join(stems)
    return f"The {kind} {name} is made twice, in {where}: give one of them another name."
