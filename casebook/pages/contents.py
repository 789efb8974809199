"""What the book consists of: its folders, and its notebooks in reading order."""

from dataclasses import dataclass
from pathlib import Path

from sphinx_external_toc.parsing import MalformedError, parse_toc_yaml

from casebook.errors import BookFailed


@dataclass(frozen=True)
class Book:
    """A book project in `root` (which holds _toc.yml and _config.yml)."""

    root: Path

    @property
    def build(self) -> Path:
        return self.root / "_build"

    @property
    def html(self) -> Path:
        return self.build / "html"

    @property
    def evidence(self) -> Path:
        """What was collected from the executed notebooks; pages include files from here."""
        return self.build / "evidence"

    @property
    def cache(self) -> Path:
        """The jupyter-cache; where Jupyter Book looks for it by default."""
        return self.build / ".jupyter_cache"

    def page_names(self) -> list[str]:
        """The pages of _toc.yml in reading order, without suffix ("notebooks/01_one_at_a_time").

        Raises BookFailed when _toc.yml is missing or malformed.
        """
        try:
            site = parse_toc_yaml(self.root / "_toc.yml")
        except (OSError, MalformedError) as error:
            raise BookFailed(f"_toc.yml cannot be read: {error}") from error
        names: list[str] = []

        def walk(name: str) -> None:
            names.append(name)
            for tree in site[name].subtrees:
                for child in tree.items:
                    if child in site:  # not an external link
                        walk(str(child))

        walk(site.root.docname)
        return names

    def notebooks(self) -> list[Path]:
        """The notebooks of _toc.yml in reading order. Raises BookFailed for a page without file."""
        found = []
        for name in self.page_names():
            notebook = self.root / f"{name}.ipynb"
            if notebook.exists():
                found.append(notebook)
            elif not (self.root / f"{name}.md").exists():
                raise BookFailed(
                    f"_toc.yml names {name}: there is no {name}.ipynb and no {name}.md"
                )
        return found
