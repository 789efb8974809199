"""What of a page is running text: a change of that alone concerns no other page.

Everything else may show elsewhere: a heading in the contents, a label in a reference, an exercise
in the numbers of those that follow, the term of a glossary, a link's sentences for another outcome.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from casebook.pages.contents import Book, read
from casebook.stacks import digests

#: The beginning and the end of a directive or of a block of code.
_FENCE = re.compile(r" *(`{3,}|:{3,}|~{3,})(.*)")
#: A line that is no running text: heading, label, field, comment, row of a table, rule, or where a
#: link or a footnote leads.
_APART = re.compile(r" *(#|\(\S+\)=|:|%|\+\+\+|\||---|===|\[\S+\]:)")
#: What running text may have that leads to other pages, or comes from there: a role, a link with
#: its title, a footnote, HTML, a substitution.
_ACROSS = re.compile(r"\{[^}]*\}`[^`]*`|\]\([^)]*\)|\[\^[^\]]*\]|<[^>]*>|\{\{.*?\}\}", re.DOTALL)


def split(book: Book) -> tuple[str, dict[str, str]]:
    """Split what the pages of a book say into running text, and the rest.

    Returns a stamp of the rest, without outputs, and a stamp of each page, by its name.
    """
    rests, pages = {}, {}
    for name in book.page_names():
        texts = list(_texts(book.page_file(name)))
        rests[name] = [text if kind == "code" else rest(text) for kind, text in texts]
        pages[name] = hashlib.sha256(repr(texts).encode()).hexdigest()
    return digests.digest(rests), pages


def rest(markdown: str) -> list[str]:
    """Return what of a text in Markdown is no running text, in its order."""
    kept, running, fence = [], [], ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if fence or mark or _APART.match(line):
            kept.append(line)
        else:
            running.append(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    return kept + _ACROSS.findall("\n".join(running))


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the cells of a page, each as its kind ("markdown" or "code") and its text."""
    if path.suffix != ".ipynb":
        yield "markdown", path.read_text(encoding="utf-8")
        return
    for cell in read(path).cells:
        is_text = cell.cell_type == "markdown"
        yield ("markdown", cell.source) if is_text else ("code", repr(cell.metadata) + cell.source)
