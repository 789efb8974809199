"""Takes what chapters state and show out of their executed notebooks (see casebook.media)."""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casebook import media
from casebook.errors import BookFailed
from casebook.pages import ledger
from casebook.pages.contents import Book
from casebook.pages.execution import Chapter


@dataclass(frozen=True)
class Evidence:
    """What all chapters said, in reading order. Each record also names its `chapter`."""

    claims: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)
    profiles: list[dict[str, Any]] = field(default_factory=list)


def collect(book: Book, chapters: Sequence[Chapter]) -> Evidence:
    """Gather, check and write the evidence into `book.evidence`.

    Files: claims.json, claims.md, published.md and one <name>.html per figure.
    Raises BookFailed for an id that is used twice.
    """
    evidence = Evidence(
        claims=list(_records(chapters, media.CLAIM)),
        comparisons=list(_records(chapters, media.COMPARISON)),
        figures=list(_records(chapters, media.FIGURE)),
        profiles=list(_records(chapters, media.PROFILE)),
    )
    _check_unique(evidence.claims, "claim", "id")
    _check_unique(evidence.comparisons, "comparison", "id")
    _check_unique(evidence.figures, "figure", "name")
    _check_unique(evidence.profiles, "profile", "name")
    _write(book, evidence)
    return evidence


def _records(chapters: Sequence[Chapter], media_type: str) -> Iterator[dict[str, Any]]:
    for chapter in chapters:
        for cell in chapter.notebook.cells:
            for output in cell.get("outputs", ()):
                record = output.get("data", {}).get(media_type)
                if record is not None:
                    yield {**record, "chapter": chapter.stem}


def _check_unique(records: list[dict[str, Any]], kind: str, key: str) -> None:
    first: dict[str, str] = {}
    for record in records:
        name, chapter = record[key], record["chapter"]
        if name in first:
            raise BookFailed(
                f"The {kind} {name} is made twice, in {first[name]} and in {chapter}: "
                "give one of them another name."
            )
        first[name] = chapter


def _write(book: Book, evidence: Evidence) -> None:
    shutil.rmtree(book.evidence, ignore_errors=True)
    book.evidence.mkdir(parents=True)
    _write_text(book.evidence / "claims.json", ledger.claims_json(evidence.claims))
    _write_text(book.evidence / "claims.md", ledger.claims_page(evidence.claims))
    published = book.root / "data" / "published.csv"
    _write_text(
        book.evidence / "published.md", ledger.published_page(published, evidence.comparisons)
    )
    for figure in evidence.figures:
        _write_text(book.evidence / f"{figure['name']}.html", figure["html"])


def _write_text(path: Path, text: str) -> None:
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def as_json(evidence: Evidence) -> str:
    """All of the evidence as one text, to see whether any of it changed."""
    return json.dumps([evidence.claims, evidence.comparisons, evidence.figures, evidence.profiles])
