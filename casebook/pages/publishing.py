"""Checks the built book before it is published, and packs it. It builds nothing.

    python -m casebook.pages.publishing          check (make publish-check)
    python -m casebook.pages.publishing FILE     pack it into a zip archive (make archive)

For the check, the site is served on this machine under a sub-path, as GitHub's Pages serve it.
Every page is checked, every address in it, and what it tells search engines and those who share a
link.
"""

import contextlib
import functools
import re
import struct
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from casebook import places
from casebook.errors import BookFailed
from casebook.pages import address, links, permanent
from casebook.pages.contents import Book
from casebook.pages.links import Page

#: The folder that a site is served under if its address is not known yet.
SOMEWHERE = "/book/"
#: Pages that nobody shares: without content of their own, or shown in a frame of another.
NOT_SHARED = re.compile(r"(search|genindex|404)\.html|profiles/.*")
#: What is shown when a link is shared.
CARD = ("og:title", "og:description", "og:url", "og:image")
#: Networks show no smaller picture large.
CARD_WIDTH, CARD_HEIGHT = 600, 315
#: Hosts that mean the machine that built the book, and no other.
ONLY_HERE = ("localhost", "127.0.0.1", "0.0.0.0", "[::1]")


class _Pages(SimpleHTTPRequestHandler):
    """Serves a folder below a sub-path, and nothing beside it; a folder shows its index.html."""

    def __init__(self, *args: object, below: str, **options: object) -> None:
        self.below = below
        super().__init__(*args, **options)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        is_below = path.startswith(self.below)
        return super().translate_path(
            path[len(self.below) - 1 :] if is_below else "/nowhere-at-all"
        )

    def list_directory(self, path: object) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def _served(site: Path, below: str) -> Iterator[int]:
    """Serve a site at a port of loopback for as long as the block runs; yield the port."""
    handler = functools.partial(_Pages, directory=str(site), below=below)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def problems(site: Path, published: str) -> list[str]:
    """Return what is wrong with a site that is to be published at an address, a line each.

    published: the address, with a slash at its end. If it is empty, nothing that depends on it
    is checked.
    """
    if not (site / "index.html").is_file():
        return [f"{site.name} has no index.html: `make book` writes the site"]
    pages = links.pages_of(site)
    below = urlsplit(published).path or SOMEWHERE
    lines = _left_out(site)
    with _served(site, below) as port, contextlib.closing(_ServedSite(port, below, site)) as served:
        for path, page in pages.items():
            name = path.relative_to(site).as_posix()
            lines += [f"{name}: {line}" for line in served.problems(name, page, published)]
            has_content = name == "index.html" or not page.leads_on
            if published and has_content and not NOT_SHARED.fullmatch(name):
                lines += [
                    f"{name}: {line}" for line in _check_metadata(site, name, page, published)
                ]
            if "noindex" in page.meta.get("robots", ""):
                lines.append(f"{name}: tells search engines to leave it out (robots: noindex)")
        for sheet in sorted(site.rglob("*.css")):
            name = sheet.relative_to(site).as_posix()
            lines += [f"{name}: {line}" for line in served.problems_of_sheet(name, sheet)]
    robots = site / "robots.txt"
    if robots.exists() and re.search(r"(?mi)^disallow:\s*/\s*$", robots.read_text()):
        lines.append("robots.txt tells search engines to leave the whole site out")
    return lines


def _left_out(site: Path) -> list[str]:
    """Return what GitHub would not publish, or not serve."""
    names = {path.relative_to(site).parts[0] for path in site.rglob("*")}
    underscored = sorted(name for name in names if name.startswith("_"))
    if underscored and not (site / ".nojekyll").exists():
        listed = ", ".join(underscored)
        return [f".nojekyll is missing, and without it Jekyll leaves {listed} out"]
    return []


class _ServedSite:
    """A served site, each of whose addresses is asked for once."""

    def __init__(self, port: int, below: str, site: Path) -> None:
        self.origin, self.below, self.site = f"http://127.0.0.1:{port}", below, site
        self.connection = HTTPConnection("127.0.0.1", port, timeout=30)
        self.answers: dict[str, tuple[int, str, set[str]]] = {}

    def close(self) -> None:
        self.connection.close()

    def problems(self, name: str, page: Page, published: str) -> list[str]:
        """Return what is wrong with the addresses in a page."""
        lines = []
        for url in dict.fromkeys([*page.links, *page.loaded]):
            if published and url in page.links and url.startswith(published):
                lines.append(f"{url} leads to the published site, whoever's copy this is")
            elif wrong := self._wrong(name, url, loaded=url in page.loaded):
                lines.append(f"{url} {wrong}")
        return lines

    def problems_of_sheet(self, name: str, sheet: Path) -> list[str]:
        """Return what is wrong with the addresses in a style sheet."""
        text = sheet.read_text(encoding="utf-8", errors="replace")
        addresses = dict.fromkeys(re.findall(r"url\(\s*[\"']?([^)\"']+)", text))
        checked = ((url, self._wrong(name, url, loaded=True)) for url in addresses)
        return [f"{url} {problem}" for url, problem in checked if problem]

    def _wrong(self, name: str, url: str, loaded: bool) -> str:
        """Return what is wrong with an address in a page or a sheet; empty if nothing is."""
        if urlsplit(url).scheme in ("data", "mailto"):
            return ""
        if urlsplit(url).scheme == "file":
            return "is a file of the machine that built the book"
        target = urlsplit(urljoin(f"{self.origin}{self.below}{name}", url))
        if f"{target.scheme}://{target.netloc}" != self.origin:
            if target.hostname in ONLY_HERE:
                return "is on the machine that built the book"
            return "is loaded from another site" if loaded else ""
        if not target.path.startswith(self.below):
            return "leaves the folder in which the book is published"
        if any(part.startswith(".") for part in target.path.split("/")):
            return "is hidden, and is left out where a site is uploaded"
        status, kind, anchors = self._get(target.path)
        if status != 200:
            return f"does not resolve ({status})"
        anchor = unquote(target.fragment)
        if anchor and anchor != "top" and kind == "text/html" and anchor not in anchors:
            return "has no such anchor"
        return ""

    def _get(self, path: str) -> tuple[int, str, set[str]]:
        """Return status, kind and anchors of what is served at a path."""
        if path not in self.answers:
            self.connection.request("GET", path)
            answer = self.connection.getresponse()
            text, kind = answer.read(), answer.headers.get_content_type()
            if answer.status in (301, 302):
                return self._get(urlsplit(answer.headers["Location"]).path)
            anchors = Page(text.decode()).anchors if kind == "text/html" else set()
            self.answers[path] = answer.status, kind, anchors
        return self.answers[path]


def _check_metadata(site: Path, name: str, page: Page, published: str) -> list[str]:
    """Check what a page says of itself, its canonical address and its social card; return the
    problems.
    """
    lines = []
    # The index leads to the first page, and says of itself what that does.
    canonical = published + name if name != "index.html" else page.canonical
    if not page.canonical.startswith(published) or page.canonical != canonical:
        lines.append(f"its canonical address is {page.canonical or 'missing'}")
    if missing := [field for field in CARD if not page.meta.get(field)]:
        return [*lines, f"its social card lacks {', '.join(missing)}"]
    if page.meta["og:url"] != canonical:
        lines.append(f"its social card is that of {page.meta['og:url']}")
    image = page.meta["og:image"]
    file = site / unquote(image.removeprefix(published))
    if not image.startswith(published) or not file.is_file():
        return [*lines, f"the picture of its social card is nowhere on the site: {image}"]
    head = file.read_bytes()[:24]
    if head[:8] != b"\x89PNG\r\n\x1a\n":
        return [*lines, f"the picture of its social card is no PNG: {image}"]
    width, height = struct.unpack(">II", head[16:])
    if width < CARD_WIDTH or height < CARD_HEIGHT:
        lines.append(f"the picture of its social card is {width} x {height} points, too small")
    return lines


def pack(site: Path, file: Path) -> int:
    """Write a site into an archive that opens from a folder, of the archive's name; its bytes.

    Raises BookFailed if there is no site.
    """
    if not (site / "index.html").is_file():
        raise BookFailed("there is no built book to pack: `make book` builds it")
    paths = sorted(path for path in site.rglob("*") if path.is_file())
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in paths:
            if path.name != ".buildinfo":  # Sphinx's own
                archive.write(path, Path(file.stem, path.relative_to(site)))
    return file.stat().st_size


def main(arguments: list[str]) -> int:
    """Pack the site of this checkout into a file, or check it: see above. Returns as `check`."""
    if not arguments:
        return check()
    [file] = arguments
    size = pack(Book(places.ROOT).html, Path(file))
    print(f"{file}: {size / 1e6:.1f} MB; unpacked, it opens with its index.html")
    return 0


def check() -> int:
    """Check the site of this checkout: return 0, or 1 after printing a line for each problem."""
    site, published = Book(places.ROOT).html, address.of_site()
    lines = problems(site, published) + permanent.find_lost(places.ROOT, site)
    if not published:
        lines.insert(0, "_config.yml does not say where the repository is (repository: url)")
    for line in lines:
        print(line)
    count = len(links.pages_of(site)) if site.is_dir() else 0
    verdict = f"{len(lines)} problems" if lines else f"ready for {published}"
    print(f"{count} pages looked at: {verdict}", file=sys.stderr)
    return bool(lines)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BookFailed as failed:
        sys.exit(f"casebook: {failed}")
