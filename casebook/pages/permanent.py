"""Addresses that stay: what was published once is found again, or leads on.

book/permanent.txt lists pages, claims and figures, an address a line. If one has moved, its line
says where to: `notebooks/04_old.html -> notebooks/04_new.html#claim-it`.

    python -m casebook.pages.permanent     add what the built book has and the list has not
"""

import re
import sys
from collections.abc import Collection
from html import escape
from os.path import relpath
from pathlib import Path

from casebook import places
from casebook.pages import links
from casebook.pages.contents import Book

#: Where the list is, below the root of a book.
LIST = Path("book", "permanent.txt")
#: What is cited of a page: what it states and what it draws.
_CITED = re.compile(r"(claim|figure)-[\w-]+")
_LEADS_ON = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Moved</title>
<meta http-equiv="refresh" content="0; url={0}">
<script>
const line = document.getElementById(location.hash.slice(1));  // what stood there may be elsewhere
if (line) location.replace(line.querySelector("a").href);
</script></head>
<body><main><a href="{0}">This page has moved.</a></main></body></html>
"""


def listed(root: Path) -> dict[str, str]:
    """Return the addresses of the list: with the new one if they have moved, else with ""."""
    file = root / LIST
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    pairs = (line.partition(" -> ") for line in lines if line and not line.startswith("#"))
    return {old.strip(): new.strip() for old, _, new in pairs}


def lead_on(root: Path, site: Path, only: Collection[str] | None = None) -> None:
    """Have what has moved lead to where it is now.

    A page that is gone goes there by itself, and so does what was on it. What is gone from a page
    that is still there has a line with a link at that page's end, which shows itself to those who
    come by its address.

    only: the addresses of pages that are looked at; None: all.
    """
    for old, new in listed(root).items():
        page, _, anchor = old.partition("#")
        file = site / page
        if not new or (only is not None and page not in only):
            continue
        to = escape(relpath(new, Path(page).parent))
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_LEADS_ON.replace("{0}", to), encoding="utf-8")
        elif anchor:
            link = f'<a href="{to}">What was here has moved.</a>'
            _at_its_end(file, f'<p class="cb-moved" id="{escape(anchor)}">{link}</p>')


def say_why(root: Path, site: Path, reason: str) -> None:
    """Have each page that lacks something published on it say why at its end.

    Links to what it lacks then lead there. reason: HTML.
    """
    pages = {path.relative_to(site).as_posix(): (path, page.anchors)
             for path, page in links.pages_of(site).items()}  # fmt: skip
    lacking: dict[Path, list[str]] = {}
    for old, new in listed(root).items():
        page, _, anchor = (new or old).partition("#")
        file, anchors = pages.get(page, (None, set()))
        if file and anchor and anchor not in anchors:
            lacking.setdefault(file, []).append(anchor)
    for file, missing in lacking.items():
        targets = "".join(
            f'<span id="{escape(anchor)}"></span>' for anchor in dict.fromkeys(missing)
        )
        _at_its_end(file, f"<p>{targets}{reason}</p>")


def _at_its_end(file: Path, line: str) -> None:
    # In a page that leads on, which has no article, it comes before the script that looks for it.
    head, end, tail = file.read_text(encoding="utf-8").rpartition("</article>")
    file.write_text(f"{head}{line}{end}{tail}", encoding="utf-8")


def find_lost(root: Path, site: Path) -> list[str]:
    """Find the addresses of the list that a site no longer has, a line each."""
    pages = {path.relative_to(site).as_posix(): page for path, page in links.pages_of(site).items()}
    lines = []
    for old, new in listed(root).items():
        # A page that leads on takes all with it that was on it.
        for address in (new or old, old.partition("#")[0]):
            page, _, anchor = address.partition("#")
            if page not in pages or (anchor and anchor not in pages[page].anchors):
                problem = "was published, and is gone: let it lead on (`old -> new`)"
                lines.append(f"{LIST.name}: {address} {problem}")
                break
    return lines


def _cited(site: Path) -> list[str]:
    """Return the addresses of a site that are cited: its pages, and what they state and draw."""
    addresses = []
    for path, page in links.pages_of(site).items():
        name = path.relative_to(site).as_posix()
        if name.startswith(("book/", "notebooks/")) and not page.leads_on:
            addresses += [
                name,
                *(
                    f"{name}#{anchor}"
                    for anchor in sorted(page.anchors)
                    if _CITED.fullmatch(anchor)
                ),
            ]
    return addresses


def main() -> None:
    """Add to the list what the built book has; nothing is taken away."""
    addresses, file = listed(places.ROOT), places.ROOT / LIST
    new = [address for address in _cited(Book(places.ROOT).html) if address not in addresses]
    with file.open("a", encoding="utf-8") as to:
        to.writelines(f"{address}\n" for address in new)
    print(f"{LIST}: {len(new)} new addresses", file=sys.stderr)


if __name__ == "__main__":
    main()
