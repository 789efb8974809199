"""Checks the links between the built pages, anchors included, and that pages load nothing else."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

#: The folder that a site is served under if its address is not known yet.
SOMEWHERE = "/book/"
#: Hosts that mean the machine that built the book, and no other.
ONLY_HERE = ("localhost", "127.0.0.1", "0.0.0.0", "::1")

#: Attributes whose address a browser fetches by itself.
LOADED = ("src", "poster", "data")
#: Relations of <link> that are only information, never fetched.
NOT_LOADED = {"canonical", "author", "license", "next", "prev", "index", "search", "copyright"}


class Page(HTMLParser):
    """What a page says of itself, and where it leads.

    meta: by name or property, such as "og:title"; canonical: its own address. anchors: where one
    can go on it; links: where it leads; loaded: what a browser fetches with it. leads_on: whether
    it only leads to another page.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.meta: dict[str, str] = {}
        self.canonical = ""
        self.leads_on = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take from a tag what it says; called by the parser."""
        attributes = {name: value for name, value in attrs if value}
        self.anchors.update(attributes[name] for name in ("id", "name") if name in attributes)
        self.loaded.extend(attributes[name] for name in LOADED if name in attributes)
        if tag == "link" and "canonical" in attributes.get("rel", "").lower().split():
            self.canonical = attributes.get("href", "")
        if tag == "link" and not NOT_LOADED & set(attributes.get("rel", "").lower().split()):
            self.loaded.append(attributes.get("href", ""))
        elif tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            self.leads_on = True
        elif tag == "meta" and "content" in attributes:
            self.meta[attributes.get("name") or attributes.get("property", "")] = attributes[
                "content"
            ]


def page_files(site: Path) -> list[Path]:
    """Return the pages of a folder, without the templates that the theme leaves in _static."""
    return [path for path in sorted(site.rglob("*.html")) if path.parent.name != "_static"]


def pages_of(site: Path) -> dict[Path, Page]:
    """Read the pages of a folder."""
    return {path: _read(path) for path in page_files(site)}


def _read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def problems(site: Path, published: str = "", only: Sequence[Path] | None = None) -> list[str]:
    """Return a line for each address in the pages and style sheets of a site that leads nowhere.

    So does one that holds on this machine alone, and one that a page would load from another site.
    Links to other sites are not followed.

    Parameters:
        site: its folder.
        published: the address of the site, with a slash at its end, if it has one; it is looked at
            as if it were served below that address's folder.
        only: pages to look at; None: all of them, and the style sheets.
    """
    page_of = lru_cache(maxsize=None)(_read)
    below = urlsplit(published).path or SOMEWHERE
    lines = []

    def wrong(name: str, url: str, is_loaded: bool) -> str:
        return _elsewhere(url, is_loaded) or _broken(site, page_of, below, name, url)

    for path in page_files(site) if only is None else only:
        page, name = page_of(path), path.relative_to(site).as_posix()
        for url in dict.fromkeys([*page.links, *page.loaded]):
            if published and url in page.links and url.startswith(published):
                reason = "leads to the published site, also from a copy of it"
            else:
                reason = wrong(name, url, url in page.loaded)
            lines += [f"{name}: {url} {reason}"] * bool(reason)
    for sheet in sorted(site.rglob("*.css")) if only is None else ():
        name = sheet.relative_to(site).as_posix()
        text = sheet.read_text(encoding="utf-8", errors="replace")
        for url in dict.fromkeys(re.findall(r"url\(\s*[\"']?([^)\"']+)", text)):
            if reason := wrong(name, url, is_loaded=True):
                lines.append(f"{name}: {url} {reason}")
    return lines


def broken(site: Path, only: Sequence[Path] | None = None) -> list[str]:
    """Return what `problems` finds as one problem of a build, or none if it finds nothing."""
    lines = problems(site, only=only)
    return ["The pages have broken links:\n" + "\n".join(lines)] * bool(lines)


def _elsewhere(url: str, is_loaded: bool) -> str:
    """Return what is wrong with an address outside the site; empty if nothing is."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return "is a file of the machine that built the book"
    if parts.hostname in ONLY_HERE:
        return "is on the machine that built the book"
    return "is loaded from another site" if parts.netloc and is_loaded else ""


def _broken(site: Path, page_of: Callable[[Path], Page], below: str, name: str, url: str) -> str:
    """Return why an address in a file of the site leads nowhere in it; empty if it does not."""
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return ""
    path = unquote(urlsplit(urljoin(f"{below}{name}", url)).path)
    if not path.startswith(below):
        return "leaves the folder in which the book is published"
    if any(part.startswith(".") for part in path.split("/")):
        return "is hidden, and is left out where a site is uploaded"
    target = site / path.removeprefix(below)
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "does not exist"
    anchor = unquote(parts.fragment)
    # An empty fragment is the top of the page; browsers also know "top".
    if not anchor or anchor == "top" or target.suffix != ".html":
        return ""
    if anchor not in page_of(target).anchors:
        return "has no such anchor"
    return ""
