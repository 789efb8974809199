"""A student's copy: all exercises, and no solution."""

import ast
import builtins
import re
from pathlib import Path

import nbformat
import pytest

from casebook import cli, places
from casebook.classroom import solutions
from casebook.errors import UsageError
from casebook.pages.contents import Book, read


def code_of(path: Path) -> list[str]:
    cells = nbformat.read(path, as_version=4).cells
    return [
        "\n".join(line for line in cell.source.splitlines() if not line.startswith(("%", "!")))
        for cell in cells
        if cell.cell_type == "code"
    ]


def student_text(path: Path) -> str:
    return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("class") / "copy"
    assert cli.main(["course", "--exercises", str(folder)]) == 0
    return folder


def test_it_has_every_exercise_an_empty_cell_for_each_and_no_solution(copy: Path) -> None:
    exercises, left = 0, []
    for path in Book(places.ROOT).notebooks():
        student = copy / path.relative_to(places.ROOT)
        nbformat.validate(nbformat.read(student, as_version=4))
        text, original = student.read_text(), path.read_text()
        assert "{solution" not in text and '"outputs_hidden"' not in text
        assert text.count("{exercise-start}") == original.count("{exercise-start}")
        assert text.count("# Yours.") == original.count("{solution-start}")
        exercises += text.count("{exercise-start}")
        notebook = read(path)
        solved = {cell.id for cells in solutions.cells_of(notebook) for cell in cells}
        other = "\n".join(cell.source for cell in notebook.cells if cell.id not in solved)
        solution = "\n".join(cell.source for cell in notebook.cells if cell.id in solved)
        lines = {line for line in solution.splitlines() if len(line) > 50} - {*other.splitlines()}
        left += [line for line in lines if line in student_text(student)]
    assert exercises > 80 and left == []


def test_nothing_in_it_promises_a_solution_or_is_for_contributors(copy: Path) -> None:
    for name, sentence in solutions._OF_SOLUTIONS.items():
        assert sentence in (places.ROOT / name).read_text()
    nbformat.read(copy / "start.ipynb", as_version=4)
    texts = [path for path in copy.rglob("*") if path.suffix in (".ipynb", ".md")]
    # Of the page's solutions; an equation has some, too.
    promise = re.compile(r"(folded|a) solution\b|solution is a bar|solution-start", re.I)
    assert [path.name for path in texts if promise.search(path.read_text())] == []
    assert not (copy / "notebooks" / "README.md").exists()


def test_its_cells_use_no_name_that_only_a_solution_gave(copy: Path) -> None:
    for student in sorted((copy / "notebooks").glob("*.ipynb")):
        given, used = {*dir(builtins), "get_ipython", "display", "__file__"}, set()
        for node in ast.walk(ast.parse("\n".join(code_of(student)))):
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else given).add(node.id)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                given |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
                given.add(node.name or "")
            elif isinstance(node, ast.arg):
                given.add(node.arg)
        assert used - given == set(), student.name


def test_its_links_lead_to_files_and_none_to_a_teachers_page(copy: Path) -> None:
    for student in [copy / "start.ipynb", *sorted((copy / "notebooks").glob("*.ipynb"))]:
        cells = nbformat.read(student, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text):
            if not link.startswith(("../casebook/", "../doctor.py", "../shared_context.py")):
                assert (student.parent / link).exists(), (student.name, link)
    for pages in ("instructors.md", "lab_*.md", "whodunit.md"):
        assert list((places.ROOT / "book").glob(pages)) and not list(copy.rglob(pages))


@pytest.mark.parametrize(
    ("check", "is_left_out"),
    [
        ("claim(waits)", True),
        ("def over(waits, *rest, **ends):\n    return waits, rest, ends", False),
        ("claim(lambda waits: waits)", False),
        ("waits = 3\nclaim(waits)", False),
        ("claim(delays)", False),
    ],
)
def test_a_check_is_left_out_that_depends_on_a_solution_and_no_other(check, is_left_out) -> None:
    code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    cells = [
        code("delays = 1"), text("```{solution-start} ex-a\n```"), code("waits = rest = ends = 2"),
        text("```{solution-end}\n```"), code(check),
    ]  # fmt: skip
    left = solutions.leave_out(nbformat.v4.new_notebook(cells=cells)).cells
    assert (check not in [cell.source for cell in left]) == is_left_out


def test_it_has_the_profiles_that_an_exercise_asks_to_open(copy: Path) -> None:
    assert "ProfilePage(" in student_text(copy / "notebooks" / "05_reading_the_profile.ipynb")


def test_it_writes_into_no_folder_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is there already"):
        solutions.exercises(tmp_path, Book(places.ROOT))


def test_folding_again_changes_nothing(tmp_path: Path) -> None:
    source = places.NOTEBOOKS / "05_reading_the_profile.ipynb"
    path = tmp_path / source.name
    path.write_bytes(source.read_bytes())
    solutions.fold(path)
    assert path.read_bytes() == source.read_bytes()
