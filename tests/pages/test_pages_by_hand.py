"""What is executed again, on findings that are written down."""

from pathlib import Path

import nbformat

from casebook.findings import media
from casebook.findings.finding import Finding
from casebook.laboratory.decisions import HOLDS, OTHERWISE, UNDECIDED
from casebook.pages import building, execution
from casebook.pages.contents import Book


def executed(book: Book, *findings: Finding) -> Path:
    """A chapter that had these findings when it was executed last."""
    cell = nbformat.v4.new_code_cell("claim(...)")
    cell.outputs = [
        nbformat.v4.new_output("display_data", {media.CLAIM: finding.as_json()})
        for finding in findings
    ]
    path = book.root / "one.ipynb"
    book.executed.mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), book.executed / path.name)
    return path


def test_what_was_counted_here_and_came_out_otherwise_is_counted_again(tmp_path: Path) -> None:
    def finding(id: str, outcome: str = OTHERWISE, **more) -> Finding:
        return Finding(id, "It is.", outcome=outcome, **({"live": True, "keys": ["k"]} | more))

    book = Book(tmp_path)
    assert execution._to_count_again(book, tmp_path / "one.ipynb") == []  # never executed
    path = executed(
        book,
        finding("counted"),
        finding("holds", HOLDS),
        finding("undecided", UNDECIDED),
        finding("recorded", live=False),
        finding("nothing stored", keys=[]),
        # Its second attempt was taken where its rounds are.
        finding("on a clock", window="below 1"),
    )
    assert [found.id for found in execution._to_count_again(book, path)] == ["counted"]


def test_a_strict_build_names_the_chapters_with_cells_that_have_no_answer() -> None:
    def chapter(stem: str, holes: int) -> execution.Chapter:
        cell = nbformat.v4.new_code_cell("ask()")
        why = {media.NOT_IN_FILE: {"why": "its machine file has no answer to this"}}
        cell.outputs = [nbformat.v4.new_output("display_data", why) for _ in range(holes)]
        return execution.Chapter(stem, nbformat.v4.new_notebook(cells=[cell]))

    [line] = building._holes([chapter("whole", 0), chapter("torn", 2)])
    assert line.startswith("torn: 2 cells")
