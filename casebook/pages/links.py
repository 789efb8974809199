"""Checks the links between the built pages, anchors included, and that pages load nothing else."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes whose address a browser fetches by itself.
LOADED = ("src", "poster", "data")
#: Relations of <link> that are only information, never fetched.
NOT_LOADED = {"canonical", "author", "license", "next", "prev", "index", "search", "copyright"}


class Page(HTMLParser):
    """What a page says of itself (meta, canonical), where one can go (anchors), where it leads to
    (links), and what it loads.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        #: By name or property, such as "og:title".
        self.meta: dict[str, str] = {}
        self.canonical = ""
        #: Whether it only leads to another page.
        self.leads_on = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
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


def pages_of(site: Path) -> dict[Path, Page]:
    """Read the pages of a folder, without the templates that the theme leaves in _static."""
    paths = [path for path in sorted(site.rglob("*.html")) if path.parent.name != "_static"]
    return {path: Page(path.read_text(encoding="utf-8")) for path in paths}


def problems(site: Path) -> list[str]:
    """Return a line per link that leads nowhere, and per file that a page would load from
    elsewhere.

    The site is a folder of HTML pages. Links to other sites are not followed.
    """
    pages = pages_of(site)
    lines = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        elsewhere = [address for address in page.loaded if urlsplit(address).netloc]
        lines += [f"{name}: loads {address} from another site" for address in elsewhere]
        for address in page.links + page.loaded:
            if reason := _broken(site, path, address, pages):
                lines.append(f"{name}: {address} {reason}")
    return lines


def _broken(site: Path, path: Path, address: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return ""
    target = path
    if parts.path:
        base = site if parts.path.startswith("/") else path.parent
        target = (base / unquote(parts.path).lstrip("/")).resolve()
        if target.is_dir():
            target /= "index.html"
        if not target.is_file():
            return "does not exist"
    anchor = unquote(parts.fragment)
    # An empty fragment is the top of the page; browsers also know "top".
    if anchor and anchor != "top" and target in pages and anchor not in pages[target].anchors:
        return "has no such anchor"
    return ""
