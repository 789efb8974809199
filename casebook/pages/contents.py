"""What the book consists of: its folders, and its notebooks in reading order."""

import csv
from dataclasses import dataclass
from pathlib import Path

from sphinx_external_toc.parsing import MalformedError, parse_toc_yaml

from casebook.errors import BookFailed


@dataclass(frozen=True)
class Book:
    """A book project in `root` (which holds _toc.yml and _config.yml).

    build: all that is made. html: the site. included: what pages include of what the chapters
    said. cache: the jupyter-cache, where Jupyter Book looks for it by default.
    """

    root: Path

    build = property(lambda self: self.root / "_build")
    html = property(lambda self: self.build / "html")
    included = property(lambda self: self.build / "included")
    cache = property(lambda self: self.build / ".jupyter_cache")

    def page_names(self) -> list[str]:
        """The pages of _toc.yml in reading order, without suffix ("notebooks/01_one_at_a_time").

        Raises BookFailed when _toc.yml is missing or malformed.
        """
        try:
            return list(parse_toc_yaml(self.root / "_toc.yml"))
        except (OSError, MalformedError) as error:
            raise BookFailed(f"_toc.yml cannot be read: {error}") from error

    def notebooks(self) -> list[Path]:
        """The notebooks of _toc.yml in reading order. Raises BookFailed for a page without file."""
        for name in self.page_names():
            if not any((self.root / f"{name}.{kind}").exists() for kind in ("ipynb", "md")):
                raise BookFailed(f"_toc.yml names {name}: there is no such .ipynb and no .md")
        paths = (self.root / f"{name}.ipynb" for name in self.page_names())
        return [path for path in paths if path.exists()]

    def published(self) -> dict[str, dict[str, str]]:
        """The rows of data/published.csv by id, in its order; none where there is no such file."""
        path = self.root / "data" / "published.csv"
        if not path.exists():
            return {}
        with path.open(newline="", encoding="utf-8") as file:
            return {row["id"]: row for row in csv.DictReader(file)}

    def name(self, path: Path) -> str:
        """The name of the page that a notebook becomes."""
        return path.relative_to(self.root).with_suffix("").as_posix()
