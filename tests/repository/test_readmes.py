"""What a new reader and a new contributor find first: its size, and where its links lead."""

import re
from pathlib import Path

from casebook import places

FILES = sorted(
    path
    for pattern in ("*.md", "*/README.md", "casebook/*/README.md", "packages/*/*.md")
    for path in places.ROOT.glob(pattern)
    if path.parent.name != "_build"
)
#: A printed page, in words.
PAGE = 500


def words(text: str) -> int:
    return len(text.split())


def anchors(text: str) -> set[str]:
    """The names that GitHub gives the headings of a file."""
    headings = re.findall(r"(?m)^#+ (.+)$", text)
    return {re.sub(r"[^\w\s-]", "", each).strip().lower().replace(" ", "-") for each in headings}


def broken(file: Path) -> list[str]:
    """The links of a file that lead to no file of ours, or to no heading in it."""
    text = re.sub(r"(?s)```.*?```|`[^`\n]*`", "", file.read_text())
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (file.parent / name).resolve() if name else file
        if not target.exists():
            found.append(link)
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            found.append(link)
    return found


def test_each_link_leads_somewhere() -> None:
    assert len(FILES) > 12
    assert {file.name: broken(file) for file in FILES if broken(file)} == {}


def test_what_the_book_is_takes_half_a_page_and_there_are_three_ways_on() -> None:
    first, *sections = re.split(r"(?m)^## ", (places.ROOT / "README.md").read_text())
    assert words(re.sub(r"!\[[^]]*\]\([^)]*\)", "", first)) <= PAGE / 2 + 50, words(first)
    assert len(sections) == 3


def test_contributing_takes_three_pages() -> None:
    assert words((places.ROOT / "CONTRIBUTING.md").read_text()) <= 3 * PAGE


def test_the_changes_of_a_release_take_a_page_and_a_half() -> None:
    text = (places.ROOT / "CHANGELOG.md").read_text()
    newest = re.split(r"(?m)^## ", text)[1]
    assert words(newest) <= 1.5 * PAGE
