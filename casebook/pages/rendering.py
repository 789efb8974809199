"""Has Jupyter Book write the site from executed notebooks, and checks what it wrote."""

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from casebook.errors import BookFailed
from casebook.pages import evidence, links, snakeviz_pages, staleness
from casebook.pages.contents import Book
from casebook.pages.evidence import Evidence
from casebook.pages.execution import Chapter

#: What the site is made of, beside the executed notebooks and their evidence.
SOURCES = ("_config.yml", "_toc.yml", "book", "notebooks", "casebook", "requirements.txt")
#: Jupyter Book has no `python -m`. -P keeps the folder that it runs in off the import path.
JUPYTER_BOOK = (sys.executable, "-P", "-c", "from jupyter_book.cli.main import main; main()")


def render(book: Book, chapters: Sequence[Chapter], found: Evidence) -> tuple[Path, list[str]]:
    """Write `book.html` anew when anything it is made of has changed.

    Returns the first page, and what is wrong with the site, in words: chapters that did not run to
    their end, warnings of Sphinx (a missing reference or glue key is one), links between pages that
    lead nowhere, pages that would load something from another site. The pages are there anyway.
    Raises BookFailed when nothing was written at all.
    """
    first_page = book.html / "index.html"
    stamp = book.build / "site.digest"
    digest = _digest(book, chapters, found)
    failures = [chapter.failure for chapter in chapters if chapter.failure]
    if first_page.exists() and stamp.exists() and stamp.read_text() == digest:
        return first_page, failures
    stamp.unlink(missing_ok=True)
    # Glue of earlier builds lies in jupyter_execute; a missing key would be found there.
    for folder in (book.html, book.build / "jupyter_execute", book.build / ".doctrees"):
        shutil.rmtree(folder, ignore_errors=True)
    print("writing the pages", file=sys.stderr, flush=True)
    if failures:
        _stand_in_for_figures(book)
    # What a chapter that stopped has not stated is missing on other pages: no fault of theirs.
    problems = failures or _run_jupyter_book(book, strict=True)
    if failures:
        _run_jupyter_book(book, strict=False)
    _write_first_page(book)
    shutil.copy(book.evidence / "claims.json", book.html / "claims.json")
    for profile in found.profiles:
        snakeviz_pages.write(
            book.root / profile["file"], book.html / "profiles", profile["name"], profile["title"]
        )
    broken = links.problems(book.html)
    if broken and not failures:
        problems.append("The pages have broken links:\n" + "\n".join(broken))
    if not problems:
        stamp.write_text(digest)
    return first_page, problems


def _stand_in_for_figures(book: Book) -> None:
    """Say on other pages that a figure is missing, where its chapter stopped before it."""
    for page in (book.root / "book").rglob("*.md"):
        for name in re.findall(r"_build/evidence/([\w-]+\.html)", page.read_text(encoding="utf-8")):
            if not (book.evidence / name).exists():
                text = "<p><em>A figure is missing here: its chapter stopped before it.</em></p>\n"
                (book.evidence / name).write_text(text)


def _digest(book: Book, chapters: Sequence[Chapter], found: Evidence) -> str:
    executed = [json.dumps(chapter.notebook, sort_keys=True) for chapter in chapters]
    parts = [
        staleness.of_files(book.root, SOURCES),
        evidence.as_json(found),
        sys.version,
        *executed,
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _run_jupyter_book(book: Book, strict: bool) -> list[str]:
    """Have the pages written; what Sphinx complains of, if it is strict. Raises BookFailed when it
    wrote none."""
    command = [*JUPYTER_BOOK, "build", str(book.root), "--all", "--keep-going", "-q"]
    command += ["-W", "-n"] if strict else []
    environ = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=book.root, env=environ, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    log = book.build / "pages.log"
    log.write_text(done.stdout, encoding="utf-8")
    said = f"The pages could not be written as they should be:\n{_complaints(book, done.stdout)}"
    if not (book.html / f"{book.page_names()[0]}.html").exists():
        raise BookFailed(said)
    return [said] if done.returncode and strict else []


def _complaints(book: Book, output: str) -> str:
    """The warnings and errors in Sphinx's output, or all of it when it names none."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output).replace(f"{book.root}/", "")
    lines = [line for line in plain.splitlines() if re.search(r"WARNING|ERROR|CRITICAL", line)]
    return "\n".join(dict.fromkeys(lines)) or plain.strip()


def _write_first_page(book: Book) -> None:
    """index.html leads to the first page of the book, also where scripts are off."""
    address = html.escape(f"{book.page_names()[0]}.html")
    (book.html / "index.html").write_text(
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8"><title>To the first page</title>\n'
        '<link rel="icon" href="_static/icon.svg">'
        f'<meta http-equiv="refresh" content="0; url={address}"></head>\n'
        f'<body><main><a href="{address}">To the first page</a></main></body></html>\n',
        encoding="utf-8",
    )
