"""Has Jupyter Book write the site from executed notebooks, and checks what it wrote."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from nbformat import NotebookNode

from casebook import places
from casebook.cases.fetching import observations
from casebook.charts import snakeviz
from casebook.errors import BookFailed
from casebook.pages import (
    accessibility,
    execution,
    ledger,
    links,
    permanent,
    running_text,
    staleness,
)
from casebook.pages.contents import Book
from casebook.pages.execution import Chapter
from casebook.pages.records import Records
from casebook.stacks import digests

#: What the site is made of, beside the executed notebooks and their records.
SOURCES = ("_config.yml", "_toc.yml", "book", "notebooks", "casebook", "requirements.txt")
#: -P keeps the folder that it runs in off the import path.
JUPYTER_BOOK = (sys.executable, "-P", "-m", "casebook.pages.jupyter_book")
#: Takes the place of a figure if its chapter stopped before drawing it.
NO_FIGURE = "<p><em>A figure is missing here: its chapter has not got so far.</em></p>\n"
#: The same if its chapter was written to its end from a machine file; and the end of a page that
#: lacks something with an address.
FIGURE_NOT_IN_FILE = (
    "<p><em>A figure is missing here: it is not in the machine file that this book is made of."
    "</em></p>\n"
)
NOT_IN_FILE = (
    "<em>What is missing on this page is not in the machine file that this book is made of.</em>"
)
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


def render(
    book: Book,
    chapters: Sequence[Chapter],
    collected: Records,
    is_last: bool = True,
    gently: bool = False,
) -> tuple[Path, list[str]]:
    """Write `book.html` anew when anything it is made of has changed.

    Parameters:
        book: where it is written.
        chapters: as they were executed last.
        collected: what they said.
        is_last: whether no chapter is still to come. Before that, what is wrong does not matter.
        gently: leave the processors to what is measured meanwhile.

    Returns the first page, and what is wrong with the site, in words: chapters that did not run to
    their end, warnings of Sphinx (a missing reference or glue key is one), links between pages that
    lead nowhere, pages that would load something from another site. The pages are there anyway.
    Raises BookFailed when nothing was written at all.
    """
    first_page, stamp_file = book.html / "index.html", book.build / "site.stamp"
    executed = [chapter.notebook for chapter in chapters]
    is_whole = not any(map(execution.not_in_file, executed))
    stamp = _Stamp.of(book, executed, collected)
    failures = [chapter.failure for chapter in chapters if chapter.failure]
    written = _Stamp.read(stamp_file) if first_page.exists() else None
    if written == stamp:
        return first_page, failures
    if is_last:
        print("writing the pages", file=sys.stderr, flush=True)
    if failures or not is_whole or not is_last:
        stopped = failures or not is_last
        _stand_in_for_figures(book, NO_FIGURE if stopped else FIGURE_NOT_IN_FILE)
    changed = stamp.changed_pages(written)
    stamp_file.unlink(missing_ok=True)  # first: what is left of this build passes for nothing
    # What a chapter that stopped has not stated is missing on other pages: no fault of theirs.
    problems = _run_jupyter_book(book, is_whole and not failures and is_last, gently, changed)
    problems = failures + problems
    site = _copy(Book(_workshop(book)).html, book.build / "site")
    permanent.lead_on(book.root, site)
    unknown = accessibility.amend(site)
    first = f"{book.page_names()[0]}.html"
    # The address of the book is shared with the card of its first page.
    card = re.findall(CARD, (site / first).read_text(encoding="utf-8"))
    tags = "\n".join(card).replace('"../_static/', '"_static/')  # index.html is in another folder
    (site / "index.html").write_text(FIRST_PAGE.format(html.escape(first), tags))
    shutil.copy(book.included / ledger.FINDINGS_FILE, site)
    if not is_whole and is_last:
        permanent.say_why(book.root, site, NOT_IN_FILE)
    for recording in collected.profiles:
        profile = observations.recorded_profile(recording["name"])
        snakeviz.write(profile, site / "profiles", recording["name"], recording["title"])
    broken = links.problems(site)
    if is_whole and not failures:
        problems += unknown
        problems += ["The pages have broken links:\n" + "\n".join(broken)] * bool(broken)
    _replace(book.html, site)
    if is_last and not problems:
        stamp_file.write_text(json.dumps(asdict(stamp)), encoding="utf-8")
    return first_page, problems


@dataclass(frozen=True)
class _Stamp:
    """A stamp of what pages are made of.

    rest: of everything but running text; pages: of each page's source, by its name.
    """

    rest: str
    pages: dict[str, str]

    @classmethod
    def of(cls, book: Book, executed: Sequence[NotebookNode], collected: Records) -> "_Stamp":
        """Return the stamp of a book as it is."""
        files = [book.page_file(name) for name in book.page_names()]
        rest, pages = running_text.split(book)
        outputs = [
            [notebook.metadata, [cell.get("outputs") for cell in notebook.cells]]
            for notebook in executed
        ]
        return cls(
            digests.digest(
                staleness.of_files(book.root, SOURCES, without=files),
                staleness.of_files(book.included, [""]),
                asdict(collected), rest, outputs, sys.version,
            ),
            pages,
        )  # fmt: skip

    @classmethod
    def read(cls, file: Path) -> "_Stamp | None":
        """Return the stamp of the site as it was written last.

        None if something was wrong then, or if it is no such stamp, as an earlier version's.
        """
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def changed_pages(self, written: "_Stamp | None") -> list[str] | None:
        """Return the pages whose running text alone has changed; None if anything else has, too."""
        if written is None or (written.rest, [*written.pages]) != (self.rest, [*self.pages]):
            return None
        return [name for name, stamp in self.pages.items() if stamp != written.pages[name]]


def _replace(old: Path, new: Path) -> None:
    """Put a folder in the place of another. Readers always find whole pages."""
    former = old.with_name(f"{old.name}.before")
    shutil.rmtree(former, ignore_errors=True)
    if old.exists():
        old.rename(former)
    new.rename(old)
    shutil.rmtree(former, ignore_errors=True)


def _stand_in_for_figures(book: Book, message: str) -> None:
    """Say on other pages that a figure is missing, where its chapter has not drawn it."""
    for page in (book.root / "book").rglob("*.md"):
        for name in re.findall(r"_build/included/([\w-]+\.html)", page.read_text(encoding="utf-8")):
            if not (book.included / name).exists():
                (book.included / name).write_text(message)


def _workshop(book: Book) -> Path:
    """Return the folder in which Jupyter Book works, and keeps what it has read and written."""
    return book.build / "next"


def _copy(folder: Path, copy: Path) -> Path:
    """Copy a folder, in the place of an earlier copy. Returns the copy."""
    shutil.rmtree(copy, ignore_errors=True)
    return shutil.copytree(folder, copy)


def _run_jupyter_book(
    book: Book, strict: bool, gently: bool, changed: Sequence[str] | None
) -> list[str]:
    """Have the pages written, beside those that are there.

    changed: the pages that are written again, if nothing concerns any other one; None: all.

    Returns what Sphinx complains of, if it is strict. Raises BookFailed if it wrote none.
    """
    place = _workshop(book)
    site, doctrees = Book(place).html, place / "_build" / ".doctrees"
    command = [*JUPYTER_BOOK, "build", str(book.root), "--path-output", str(place)]
    if changed is not None and (doctrees / "environment.pickle").exists():
        for name in changed:  # whatever the time of its file may be
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
    if not (site / f"{book.page_names()[0]}.html").exists():
        raise BookFailed(message)
    return [message] if result.returncode and strict else []
