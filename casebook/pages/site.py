"""Has Jupyter Book write the site in a folder of its own, and its index."""

import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from casebook import places
from casebook.errors import BookFailed
from casebook.pages.contents import Book

#: -P keeps the folder that it runs in off the import path.
JUPYTER_BOOK = (sys.executable, "-P", "-m", "casebook.pages.jupyter_book")
#: index.html leads to the first page of the book, even if scripts are off.
FIRST_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>To the first page</title>
<link rel="icon" href="_static/icon.svg">
{1}
<meta http-equiv="refresh" content="0; url={0}"></head>
<body><main><a href="{0}">To the first page</a></main></body></html>
"""
#: What a page says of where it is published, and what is shown when its link is shared.
CARD = r'<link rel="canonical" [^>]*>|<meta (?:property="og:|name="twitter:)[^>]*>'


def folder(book: Book) -> Path:
    """Return the folder in which Jupyter Book writes the site, before anyone reads it."""
    return Book(_workshop(book)).html


def _workshop(book: Book) -> Path:
    """Return the folder in which Jupyter Book keeps what it has read and written."""
    return book.build / "next"


def write(
    book: Book, strict: bool, gently: bool = False, only: Sequence[str] | None = None
) -> list[str]:
    """Have the pages written.

    Parameters:
        book: of which.
        strict: whether Sphinx's warnings are problems.
        gently: leave the processors to what is measured meanwhile.
        only: the pages that are written again, beside those that are there; None: all.

    Returns what Sphinx complains of, if it is strict. Raises BookFailed if it wrote none.
    """
    place = _workshop(book)
    doctrees = place / "_build" / ".doctrees"
    command = [*JUPYTER_BOOK, "build", str(book.root), "--path-output", str(place)]
    if only is not None and (doctrees / "environment.pickle").exists():
        for name in only:  # whatever the time of its file may be
            (doctrees / f"{name}.doctree").unlink(missing_ok=True)
    else:
        # From nothing: glue of an earlier build would be taken for what a key means now.
        shutil.rmtree(place, ignore_errors=True)
        command.append("--all")
    command += ["--keep-going", "-q"]
    command += ["-W", "-n"] if strict else []
    if gently and (nice := shutil.which("nice")):
        command = [nice, "-n", "19", *command]
    result = subprocess.run(
        command, cwd=book.root, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(places.ROOT)},  # our extension
    )  # fmt: skip
    (book.build / "pages.log").write_text(result.stdout, encoding="utf-8")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout).replace(f"{book.root}/", "")
    # The warnings and errors, or all of it if there are none.
    lines = [line for line in plain.splitlines() if re.search(r"WARNING|ERROR|CRITICAL", line)]
    complaints = "\n".join(dict.fromkeys(lines)) or plain.strip()
    message = f"The pages could not be written as they should be:\n{complaints}"
    if not (folder(book) / f"{book.page_names()[0]}.html").exists():
        raise BookFailed(message)
    return [message] if result.returncode and strict else []


def write_index(book: Book, site: Path) -> None:
    """Have index.html lead to the first page of the book, with its card for those who share it."""
    first = f"{book.page_names()[0]}.html"
    card = re.findall(CARD, (site / first).read_text(encoding="utf-8"))
    tags = "\n".join(card).replace('"../_static/', '"_static/')  # index.html is in another folder
    (site / "index.html").write_text(FIRST_PAGE.format(html.escape(first), tags))
