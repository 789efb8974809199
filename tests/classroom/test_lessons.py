"""The lessons on the instructors' page: their sections, and what of their minutes was taken."""

import re
from dataclasses import dataclass

import nbformat
import pytest

from casebook import places
from casebook.laboratory import machine_files

#: What somebody reads of a text like this in a minute.
WORDS_PER_MINUTE = 150
#: Where a chapter ends for a lesson.
END = "Exercises"
_HEAD = "| minutes | what | chapters | read | run |\n|---|---|---|---|---|\n"
_ROW = re.compile(r"(?m)^\| (\d+) \| .* \| (\d+)(, up to)?(?:, \*|\ \*)?([^*|]*?)(?:\*.*)? \| "
                  r"(\d+) \| (\d+) \|$")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A row of a lesson: minutes, read (of them, for reading), run: seconds of its chapter's cells.

    chapter, section, up_to: what it reads: a chapter, a section of one, or all before the section.
    """

    minutes: int
    read: int
    run: int
    chapter: int
    section: str
    up_to: bool


def rows() -> list[Row]:
    """The rows that have a chapter."""
    page = (places.ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
    found = []
    for table in page.split(_HEAD)[1:]:
        for match in _ROW.findall(table.partition("\n\n")[0]):
            minutes, chapter, up_to, section, read, run = match
            numbers = map(int, (minutes, read, run, chapter))
            found.append(Row(*numbers, section, bool(up_to)))
    return found


def part(row: Row) -> tuple[int, bool]:
    """How many words a row reads, and whether it has cells of code."""
    [path] = places.NOTEBOOKS.glob(f"{row.chapter:02}_*.ipynb")
    blocks: list[str | None] = []  # prose, which begins anew at each heading, or a cell of code
    for cell in nbformat.read(path, as_version=4).cells:
        is_text = cell.cell_type == "markdown"
        blocks += filter(None, re.split(r"(?m)^(?=#+ )", cell.source)) if is_text else [None]
    headings = [re.match(r"#+ (.+)|", block or "")[1] for block in blocks]
    headings[0] = ""  # the title of the chapter, which a section may have, too
    assert not row.section or row.section in headings, f"{path.name} has no {row.section!r}"
    start, end = 0, headings.index(END)
    if row.section and row.up_to:
        end = headings.index(row.section)
    elif row.section:
        start = headings.index(row.section)
        end = next(number for number in range(start + 1, len(headings)) if headings[number])
    chosen = blocks[start:end]
    return sum(count(block) for block in chosen if block), None in chosen


def count(markdown: str) -> int:
    """How many words are read: not those of pictures, addresses and directives."""
    lines = [line for line in markdown.splitlines() if not re.match(r"\s*(```|:::|:\w+:)", line)]
    prose = re.sub(r"!\[.*?\]\(.*?\)|\]\(.*?\)|\{[\w:]+\}", " ", "\n".join(lines))
    return len(re.findall(r"[^\W_][\w'’.,-]*", prose))


@pytest.mark.parametrize("chapter", range(1, 13))
def test_a_chapter_of_the_story_says_how_long_its_text_takes_to_read(chapter: int) -> None:
    [path] = places.NOTEBOOKS.glob(f"{chapter:02}_*.ipynb")
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    [minutes] = re.findall(r"minutes with its exercises, (\d+) without\.\*", text)
    words, _ = part(Row(0, 0, 0, chapter, section="", up_to=False))
    assert abs(int(minutes) - words / WORDS_PER_MINUTE) < 1


def test_a_row_reads_for_as_long_as_its_sections_take() -> None:
    wrong = {
        (row.chapter, row.section): (row.read, round(minutes, 1))
        for row in rows()
        if abs(row.read - (minutes := part(row)[0] / WORDS_PER_MINUTE)) >= 1
    }
    assert wrong == {} and len(rows()) == 25


def test_a_row_runs_for_as_long_as_its_chapter_took_on_the_quiet_machine() -> None:
    machine = machine_files.read(places.DATA / "machines" / "intel-xeon-2core.jsonl.xz")
    seconds = {
        int(stem[:2]): sum(round(chapter[f"{part}_s"]) for part in ("clock", "counting", "drawing"))
        for stem, chapter in machine.chapters.items()
        if stem[0].isdigit()
    }
    wrong = {
        (row.chapter, row.section): (row.run, seconds[row.chapter])
        for row in rows()
        if abs(row.run - (seconds[row.chapter] if part(row)[1] else 0)) > 2
    }
    assert wrong == {}


def test_a_row_leaves_time_for_talk() -> None:
    """A third of its minutes at least, were all cells of the chapter to run."""
    for row in rows():
        assert row.read + row.run / 60 <= 2 / 3 * row.minutes, row


@pytest.mark.parametrize(
    ("section", "up_to", "words", "has_code"),
    [
        ("", False, 10, True),
        ("First", True, 4, True),
        ("First", False, 4, True),
        ("Title", False, 2, False),  # the section, not the chapter
        ("Title", True, 8, True),
    ],
)
def test_a_part_of_a_chapter(section, up_to, words, has_code, tmp_path, monkeypatch) -> None:
    text, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    cells = [
        text("# Title"), code("import time"), text("one two ![picture](p.svg)"),
        text("```{admonition} Guess\n:class: tip\nthree\n```\n\n## First\nfour [five](a.ipynb#b)"),
        code("a = 1"), text("six\n\n## Title\nseven"), text("## Exercises\neight"), code("c"),
    ]  # fmt: skip
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "07_small.ipynb")
    monkeypatch.setattr(places, "NOTEBOOKS", tmp_path)
    assert part(Row(1, 1, 1, 7, section, up_to)) == (words, has_code)
