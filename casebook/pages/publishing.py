"""Checks the built book before it is published, and packs it. It builds nothing.

    python -m casebook.pages.publishing          check (make publish-check)
    python -m casebook.pages.publishing FILE     pack it into a zip archive (make archive)

Every page is checked, every address in it as if the site were served under a sub-path, as GitHub's
Pages serve it, and what the page tells search engines and those who share a link.
"""

import re
import struct
import sys
import zipfile
from pathlib import Path
from urllib.parse import unquote

from casebook import places
from casebook.errors import BookFailed
from casebook.pages import address, links, permanent
from casebook.pages.contents import Book
from casebook.pages.links import Page

#: Pages that nobody shares: without content of their own, or shown in a frame of another.
NOT_SHARED = re.compile(r"(search|genindex|404)\.html|profiles/.*")
#: What is shown when a link is shared.
CARD = ("og:title", "og:description", "og:url", "og:image")
#: Networks show no smaller picture large.
CARD_WIDTH, CARD_HEIGHT = 600, 315


def problems(site: Path, published: str) -> list[str]:
    """Return what is wrong with a site that is to be published at an address, a line each.

    published: the address, with a slash at its end. If it is empty, nothing that depends on it
    is checked.
    """
    if not (site / "index.html").is_file():
        return [f"{site.name} has no index.html: `make book` writes the site"]
    lines = _left_out(site) + links.problems(site, published)
    for path, page in links.pages_of(site).items():
        name = path.relative_to(site).as_posix()
        has_content = name == "index.html" or not page.leads_on
        if published and has_content and not NOT_SHARED.fullmatch(name):
            lines += [f"{name}: {line}" for line in _check_metadata(site, name, page, published)]
        if "noindex" in page.meta.get("robots", ""):
            lines.append(f"{name}: tells search engines to leave it out (robots: noindex)")
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


def _check_metadata(site: Path, name: str, page: Page, published: str) -> list[str]:
    """Check what a page says of itself, its canonical address and its social card.

    Returns the problems.
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
