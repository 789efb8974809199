"""What is executed again and what pages say, on findings and machines that are written down."""

import ast
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from casebook.errors import NotInFile
from casebook.findings import media
from casebook.findings.finding import Finding
from casebook.laboratory import machine_files
from casebook.laboratory.decisions import HOLDS, OTHERWISE, UNDECIDED
from casebook.laboratory.machine_files import Machine
from casebook.pages import accessibility, building, execution, links, records, statements
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


def test_a_chapter_that_the_nearest_machine_did_not_have_is_measured(
    tmp_path: Path, monkeypatch
) -> None:
    """Its page would be holes, and a strict build would fail until the file is renewed."""
    (tmp_path / "notebooks").mkdir()
    for name in ("told", "known", "new"):
        (tmp_path / "notebooks" / f"{name}.ipynb").touch()
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: notebooks/told\nchapters:\n- file: notebooks/known\n"
        "- file: notebooks/new\n"
    )
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "story.txt").write_text("told\n")

    def measured(*stems: str, nearest: Path | None = tmp_path, everything: bool = False) -> list:
        chapters = {stem: {"stem": stem} for stem in stems}
        machine = Machine("m", {}, [], {}, chapters)
        monkeypatch.setattr(machine_files, "read_kept", lambda _: machine)
        paths = building._to_measure(Book(tmp_path), nearest, everything)
        return [path.stem for path in paths]

    assert measured("told", "known") == ["told", "new"]
    assert measured("told", "known", "new") == ["told"]
    assert measured() == ["told"]  # an older file does not say
    assert measured("told", "known", everything=True) == ["told", "known", "new"]
    assert measured(nearest=None) == ["told", "known", "new"]


def test_a_chapter_that_failed_runs_again_in_the_next_build(tmp_path: Path, monkeypatch) -> None:
    book, notebook = Book(tmp_path), nbformat.v4.new_notebook()
    good, bad = (tmp_path / f"{name}.ipynb" for name in ("good", "bad"))
    failures = {good: "", bad: "ZeroDivisionError"}
    monkeypatch.setattr(execution, "_executed", lambda path, *_: (notebook, failures[path]))
    book.executed.mkdir(parents=True)
    stamps = {good: "of good", bad: "of bad"}
    assert execution._execute_all(book, stamps, None, lambda: None, None) == failures
    assert book.has_run(good, "of good") and not book.has_run(bad, "of bad")
    assert (book.executed / bad.name).exists()  # the page shows it as far as it came


CELL = """
claim("before", "It was.", 1, holds=True)
asked = server.counters()
claim(f"of-{name}", "It is computed.", asked, holds=True)
claim("after", f"It is {asked}.", asked, holds=True)
for each in asked:
    claim("inside", "It is one.", each, holds=True)
"""


@pytest.mark.parametrize(
    ("number", "claims"),
    [
        (0, ["before", "after", "inside"]),
        (1, ["after", "inside"]),
        (3, ["after", "inside"]),  # a claim may be what has no answer
        (4, ["inside"]),
    ],
)
def test_claims_from_the_statement_on_that_has_no_answer_are_not_here(
    number, claims, monkeypatch
) -> None:
    cell, made = ast.parse(CELL).body, []
    monkeypatch.setattr(statements, "display", lambda *_, **__: None)
    monkeypatch.setattr(statements.claims, "claim", lambda id, *_, **__: made.append(id))
    answering = object.__new__(statements.Answering)
    answering.statements, answering._number = [(statement, []) for statement in cell], number
    answering._cell, answering.chapter, answering.machine = cell, "one", Machine("m", {}, [])
    error = NotInFile("its machine file has no answer to this")
    answering._not_in_file(SimpleNamespace(user_ns={}), NotInFile, error)
    assert made == claims
    assert dict(statements.claims_in(cell[3:]))["after"] == "It is …."


def test_the_machine_of_a_book_stands_beside_all_others_and_not_beside_itself(monkeypatch) -> None:
    recorded = [Machine(name, {"cores": 2}, []) for name in ("a", "b")]
    monkeypatch.setattr(machine_files, "all_recorded", lambda: recorded)
    monkeypatch.setattr(machine_files, "describe", lambda: {"cores": 4, "commit": "abc1234"})
    found = [Finding("x", "It is.", outcome=HOLDS, source="reference")]
    first, further = records._machines(found, recorded[0], [])
    assert (first.name, [other.name for other in further]) == ("a", ["b"])
    assert [*first.findings] == ["x"]  # in its own book it was measured
    first, further = records._machines(found, None, [])
    assert (first.name, [other.name for other in further]) == ("this machine", ["a", "b"])
    assert first.findings == {} and first.about == {"cores": 4}


def test_an_anchor_is_found_as_a_browser_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b%20c.html#gr%C3%B6%C3%9Fe">x</a><a href="#top">x</a><a href="#">x</a>'
        '<a href="#gr%C3%B6%C3%9Fe">x</a>'
    )
    (tmp_path / "b c.html").write_text('<p id="größe">x</p>')
    assert links.problems(tmp_path) == ["a.html: #gr%C3%B6%C3%9Fe has no such anchor"]


def test_a_long_line_of_code_goes_on_at_its_own_indent_on_a_phone(tmp_path):
    long = '    <span class="n">call</span>(' + "x" * 40 + ")"
    lines = [
        "short = 1",
        long,
        f'<span class="hll">{long.lstrip()}',
        f"</span>{long}",
        '"' + "&gt;" * 20 + '"',  # 22 letters
    ]
    page = tmp_path / "page.html"
    code = "\n".join(lines)
    page.write_text(f'<div class="highlight"><pre><span></span>{code}\n</pre></div>')
    accessibility.amend([page])
    broken = long.lstrip().replace("(", "(<wbr>")
    indented = (
        '<span class="cb-long" style="--indent:4ch"><span class="cb-indent">    </span>'
        f"{broken}\n</span>"
    )
    assert page.read_text() == (
        '<div class="highlight"><pre><span></span>short = 1\n'
        f"{indented}"
        f'<span class="hll"><span class="cb-long" style="--indent:0ch">{broken}\n</span>'
        f"</span>{indented}"
        f"{lines[-1]}\n</pre></div>"
    )


def test_a_table_of_the_text_with_three_columns_says_the_title_of_each_cell(tmp_path):
    def table(titles, cells):
        head = "".join(f"<th><p>{title}</p></th>" for title in titles)
        row = "".join(f"<td><p>{cell}</p></td>" for cell in cells)
        return (
            f'<table class="table">\n<thead><tr>{head}</tr>\n</thead>\n<tbody><tr>{row}</tr>\n'
            f"<tr>{row}</tr></tbody></table>"
        )

    wide = table(["", "take <em>it</em> &amp; go", "costs"], ["a", "b", "<code>c</code>"])
    narrow = table(["if", "then"], ["a", "b"])
    page = tmp_path / "page.html"
    page.write_text(wide + narrow)
    accessibility.amend([page])
    cells = (
        '<tr><td data-title=""><p>a</p></td><td data-title="take it &amp; go"><p>b</p></td>'
        '<td data-title="costs"><p><code>c</code></p></td></tr>'
    )
    head, _, _ = wide.partition("<tbody>")
    head = head.replace('class="table"', 'class="table cards"').replace(
        "<th><p></p></th>", "<td></td>"
    )
    assert page.read_text() == f"{head}<tbody>{cells}\n{cells}</tbody></table>{narrow}"
