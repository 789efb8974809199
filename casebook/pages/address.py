"""Where the book is published. _config.yml names the repository; all else follows from that.

python -m casebook.pages.address     the repository's address, or nothing (make dist asks)
"""

import re
from functools import lru_cache
from pathlib import Path

import yaml

from casebook import places

#: What GitHub serves the pages of https://github.com/OWNER/NAME under.
_ON_GITHUB = re.compile(r"https://github\.com/(?P<owner>[\w-]+)/(?P<name>[\w.-]+)")


def of_repository(root: Path = places.ROOT) -> str:
    """Return the address of the repository; empty while the book is published nowhere."""
    repository = _config(root).get("repository") or {}
    return (repository.get("url") or "").rstrip("/").removesuffix(".git")


def of_site(root: Path = places.ROOT) -> str:
    """Return the address of the first page's folder, with a slash at its end; empty without one.

    It is that of GitHub's Pages, unless _config.yml gives another (`html: baseurl`).
    """
    if base_url := (_config(root).get("html") or {}).get("baseurl"):
        return base_url.rstrip("/") + "/"
    match = _ON_GITHUB.fullmatch(of_repository(root))
    if not match:
        return ""
    host = f"{match['owner'].lower()}.github.io"
    return (
        f"https://{host}/" if match["name"].lower() == host else f"https://{host}/{match['name']}/"
    )


def of_start(root: Path = places.ROOT) -> str:
    """Return the address at which Binder opens the page to start from.

    Empty while the book is published nowhere on GitHub.
    """
    match, config = _ON_GITHUB.fullmatch(of_repository(root)), _config(root)
    if not match:
        return ""
    hub, branch = config["launch_buttons"]["binderhub_url"], config["repository"]["branch"]
    return f"{hub}/v2/gh/{match['owner']}/{match['name']}/{branch}?urlpath=lab/tree/start.ipynb"


def _config(root: Path) -> dict:
    return _parsed((root / "_config.yml").read_text(encoding="utf-8"))


@lru_cache
def _parsed(text: str) -> dict:
    """Parse a configuration: each page that is written asks for it."""
    return yaml.safe_load(text) or {}


if __name__ == "__main__":
    print(of_repository())
