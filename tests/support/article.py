"""What a reader reads on a page of the book."""

import re
from html.parser import HTMLParser
from pathlib import Path


class Article(HTMLParser):
    """The text of a page, and where its links lead."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.text, self.links = "", []
        self.feed(re.search(r"<article.*</article>", page.read_text(), re.S)[0])
        self.text = " ".join(self.text.split())

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if "cb-rests" in (dict(attrs).get("class") or ""):
            self.links.append(dict(attrs)["href"])
