"""What the book consists of: its folders, and its notebooks in reading order."""

import ast
import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from sphinx_external_toc.parsing import MalformedError, parse_toc_yaml

from casebook import places
from casebook.errors import BookFailed

#: In the metadata of an executed notebook: the machine whose file all its answers come from.
MACHINE = "casebook_machine"
#: And the name of that file.
MACHINE_FILE = "casebook_machine_file"
#: In the metadata of a notebook that is kept before it was executed: its turn is still to come.
WAITING = "casebook_waiting"


@dataclass(frozen=True)
class Book:
    """A book project in `root` (which holds _toc.yml and _config.yml).

    build: all that is made. html: the site. included: what pages include of what the chapters
    said. executed: the notebooks with their outputs, and a stamp of each that ran to its end. runs:
    the stored measurements.
    """

    root: Path

    build = property(lambda self: self.root / "_build")
    html = property(lambda self: self.build / "html")
    included = property(lambda self: self.build / "included")
    executed = property(lambda self: self.build / "executed")
    runs = property(lambda self: self.root / places.LOCAL_NAME / places.RUNS.name)

    def page_names(self) -> list[str]:
        """Return the pages of _toc.yml in reading order, such as "notebooks/01_one_at_a_time".

        Raises BookFailed if _toc.yml is missing or malformed.
        """
        path = self.root / "_toc.yml"
        try:
            return list(_page_names(path, path.stat().st_mtime_ns))
        except (OSError, MalformedError) as error:
            raise BookFailed(f"_toc.yml cannot be read: {error}") from error

    def notebooks(self) -> list[Path]:
        """Return the notebooks of _toc.yml in reading order.

        Raises BookFailed for a page without a file.
        """
        paths = [self.page_file(name) for name in self.page_names()]
        return [path for path in paths if path.suffix == ".ipynb"]

    def page_file(self, name: str) -> Path:
        """Return the file of a page of _toc.yml. Raises BookFailed if there is none."""
        for kind in ("ipynb", "md"):
            if (path := self.root / f"{name}.{kind}").exists():
                return path
        raise BookFailed(f"_toc.yml names {name}: there is no such .ipynb and no .md")

    def story(self) -> list[Path]:
        """Return the notebooks that book/story.txt names, in reading order; without the file, all.

        Raises BookFailed for a name that is not a chapter of the book.
        """
        notebooks, file = self.notebooks(), self.root / "book" / "story.txt"
        if not file.exists():
            return notebooks
        lines = file.read_text(encoding="utf-8").splitlines()
        stems = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
        if strangers := stems - {path.stem for path in notebooks}:
            raise BookFailed(f"book/story.txt names no chapter: {', '.join(sorted(strangers))}")
        return [path for path in notebooks if path.stem in stems]

    def published(self) -> dict[str, dict[str, str]]:
        """Return the rows of data/published.csv by id, in their order; none without the file."""
        path = self.root / "data" / "published.csv"
        if not path.exists():
            return {}
        with path.open(newline="", encoding="utf-8") as file:
            return {row["id"]: row for row in csv.DictReader(file)}

    def has_run(self, path: Path, stamp: str) -> bool:
        """Say whether a notebook ran to its end under this stamp and its result is still there."""
        file, executed = self._stamp_of(path), self.executed / path.name
        return file.exists() and executed.exists() and file.read_text() == stamp

    def has_result(self, path: Path) -> bool:
        """Say whether a notebook was executed as it is now, or waits for its turn."""
        return _sources(self._executed(path)) == _sources(read(path))

    def keep(self, path: Path, executed: NotebookNode, stamp: str) -> None:
        """Keep an executed notebook; without a stamp if it did not run to its end."""
        self._stamp_of(path).unlink(missing_ok=True)  # first: nothing old passes for new
        machine, note = executed.metadata.get(MACHINE, ""), self._note_of(path)
        file = executed.metadata.get(MACHINE_FILE, "")
        if executed.metadata.get(WAITING):
            self._waiting_of(path).touch()
        if machine:  # before the notebook: nothing of another machine is ever without its name
            note.write_text(f"{machine}\n{file}", encoding="utf-8")
        draft = self.executed / f"{path.name}.part"
        nbformat.write(executed, draft)
        draft.replace(self.executed / path.name)  # pages may be written meanwhile
        if not machine:
            note.unlink(missing_ok=True)
        if not executed.metadata.get(WAITING):
            self._waiting_of(path).unlink(missing_ok=True)
        if stamp:
            self._stamp_of(path).write_text(stamp)

    def forget(self, keys: Iterable[str]) -> None:
        """Delete stored measurements, so that the chapter that asks for them measures anew."""
        for key in keys:
            (self.runs / f"{key}.json").unlink(missing_ok=True)

    def machine_of(self, path: Path) -> str:
        """Return the machine whose file all answers of an executed notebook come from, in words.

        Empty if this machine was measured, and for a notebook that was not executed.
        """
        return self._noted(path)[0]

    def machine_file_of(self, path: Path) -> str:
        """Return the name of that machine's file; empty as `machine_of` is."""
        return self._noted(path)[1]

    def _noted(self, path: Path) -> tuple[str, str]:
        note = self._note_of(path)
        text = note.read_text(encoding="utf-8") if note.exists() else ""
        machine, _, file = text.partition("\n")
        return machine, file

    def is_waiting(self, path: Path) -> bool:
        """Say whether a notebook has pages before it was ever executed."""
        return self._waiting_of(path).exists()

    def _waiting_of(self, path: Path) -> Path:
        return self.executed / f"{path.stem}.waiting"

    def _note_of(self, path: Path) -> Path:
        return self.executed / f"{path.stem}.machine"

    def _stamp_of(self, path: Path) -> Path:
        return self.executed / f"{path.stem}.stamp"

    def result(self, path: Path) -> NotebookNode:
        """Return a notebook as it is now, with the outputs of its execution.

        Raises BookFailed if other code was executed, or none.
        """
        notebook, ran = read(path), self._executed(path)
        if _sources(notebook) != _sources(ran):
            raise BookFailed(
                f"{path.relative_to(self.root)} has not been executed as it is now: "
                "`python -m casebook book` does that, and then writes the pages"
            )
        for cell, its_cell in zip(code_cells(notebook), code_cells(ran), strict=True):
            cell.update(outputs=its_cell.outputs, execution_count=its_cell.execution_count)
        notebook.metadata = ran.metadata
        return notebook

    def _executed(self, path: Path) -> NotebookNode:
        executed = self.executed / path.name
        return read(executed) if executed.exists() else NotebookNode(cells=[], metadata={})


@lru_cache
def _page_names(path: Path, _changed: int) -> tuple[str, ...]:
    """Parse a table of contents: each page that is written asks for it."""
    return tuple(parse_toc_yaml(path))


def read(path: Path) -> NotebookNode:
    """Read a notebook. Raises BookFailed if the file is not a notebook."""
    try:
        return nbformat.read(path, as_version=4)
    except (ValueError, nbformat.ValidationError) as error:
        raise BookFailed(f"{path.name} is not a valid notebook: {error}") from error


def _sources(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in code_cells(notebook)]


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the code cells of a notebook."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tree(cell: NotebookNode) -> ast.Module:
    """Return the syntax tree of a cell's code, without the lines that are IPython's own.

    It is empty if the code is not Python: the execution says why.
    """
    lines = cell.source.splitlines() if cell.cell_type == "code" else ()
    try:
        return ast.parse("\n".join(line for line in lines if not line.startswith(("%", "!"))))
    except SyntaxError:
        return ast.Module([], [])
