"""The notebooks as they are committed."""

import ast
import re
import statistics
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from here import run
from nbformat import NotebookNode

from casebook import places
from casebook.classroom import solutions
from casebook.pages.contents import Book
from casebook.pages.folding import CHECKS

NOTEBOOKS = sorted(places.NOTEBOOKS.glob("*.ipynb"))
CHAPTERS = [path for path in NOTEBOOKS if path.stem[0].isdigit()]

#: What a code cell is for. The last two are folded.
KINDS = ("mechanism", "evidence", "plumbing")
#: The story comes first: the least and the most of what a reader of a chapter sees unfolded.
BOUNDS = {
    "mechanism among visible code lines": (2 / 3, 1),
    "lines of a visible cell in the median": (0, 4),
    "findings in the text": (0, 4),
    "published rows compared in the text": (0, 0),
    "words outside the exercises": (0, 1600),
}
#: Chapters of the laboratory that were two, and how many words they may have.
TWO_IN_ONE = {"15_thousands": 2300, "16_the_loop_that_loads": 2050}


@cache
def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def sources(path: Path, kind: str) -> list[str]:
    """What stands in the cells of a kind."""
    return [cell.source for cell in read(path).cells if cell.cell_type == kind]


def python_of(cell: str) -> str:
    """A cell without the lines that are IPython's own."""
    return "\n".join(line for line in cell.splitlines() if not line.startswith(("%", "!")))


def test_all_notebooks_are_chapters() -> None:
    assert set(Book(places.ROOT).notebooks()) == {*NOTEBOOKS}, "a chapter has a line in _toc.yml"
    assert Book(places.ROOT).notebooks() == NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_valid_runs_anywhere_installs_nothing_and_opens_with_its_only_title(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert not re.search(r"(pip|conda) install", "\n".join(sources(path, "code")))
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    assert len(re.findall(r"^# ", "\n".join(sources(path, "markdown")), re.M)) == 1


def test_are_committed_without_outputs() -> None:
    """`nbstripout --keep-id` would change nothing."""
    checked = run(sys.executable, "-m", "nbstripout", "--keep-id", "--verify", *NOTEBOOKS)
    assert checked.returncode == 0, (
        f"{checked.stdout}\nrun: .venv/bin/nbstripout --keep-id notebooks/*.ipynb"
    )


def test_nothing_is_defined_in_two_notebooks() -> None:
    """What two chapters need belongs into the package."""
    defined: dict[str, list[str]] = {}
    for path in NOTEBOOKS:
        for cell in sources(path, "code"):
            for node in ast.walk(ast.parse(python_of(cell))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    defined.setdefault(node.name, []).append(path.stem)
    twice = {name: where for name, where in defined.items() if len(set(where)) > 1}
    assert twice == {}


@cache
def story(path: Path) -> list[tuple[str, NotebookNode]]:
    """The cells of a chapter outside its exercises, each with the heading of its section."""
    told, section = [], ""
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            headings = re.findall(r"^## +(.+?)\s*$", cell.source, re.M)
            section = headings[-1] if headings else section
        if section != "Exercises":
            told.append((section, cell))
    return told


def code_of(path: Path) -> list[tuple[str, NotebookNode]]:
    """The code cells among them."""
    return [each for each in story(path) if each[1].cell_type == "code"]


@cache
def seen(path: Path) -> dict[str, float]:
    """What a reader sees of a chapter: the lines of unfolded code by kind, and what has BOUNDS."""
    visible = [lines_of(cell) for _, cell in code_of(path) if "hide-input" not in tags_of(cell)]
    lines = sum(visible, Counter())
    calls = Counter(
        called(node)
        for section, cell in code_of(path)
        if section != CHECKS
        for node in ast.walk(ast.parse(python_of(cell.source)))
    )
    prose = [cell.source for _, cell in story(path) if cell.cell_type == "markdown"]
    bounded = (
        lines["mechanism"] / max(1, lines.total()),
        statistics.median([each.total() for each in visible] or [0]),
        calls["claim"],
        calls["compare"],
        sum(len(words_of(each)) for each in prose),
    )
    return {kind: lines[kind] for kind in (*KINDS, "no kind")} | dict(
        zip(BOUNDS, bounded, strict=True)
    )


def tags_of(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def called(node: ast.AST) -> str:
    """The name of the function that a node calls; empty for what is no call."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def lines_of(cell: NotebookNode) -> Counter:
    """The lines of a cell by kind: its own, but what decides, draws or imports our package."""
    source = python_of(cell.source)
    kind = next((tag for tag in tags_of(cell) if tag in KINDS), "no kind")
    kinds = dict.fromkeys(range(1, len(source.splitlines()) + 1), kind)
    for statement in ast.parse(source).body:
        calls = set(map(called, ast.walk(statement)))
        shown = ast.unparse(statement)
        if calls & {"claim", "compare"}:
            other = "evidence"
        elif re.match(r"from casebook|import casebook|(\w+ = )?(charts|tables)\.", shown):
            other = "plumbing"
        else:
            continue
        kinds |= dict.fromkeys(range(statement.lineno, statement.end_lineno + 1), other)
    return Counter(kinds[n] for n, line in enumerate(source.splitlines(), 1) if line.strip())


def words_of(markdown: str) -> list[str]:
    """The words of a prose cell: no code, no pictures, no addresses, no marks of directives."""
    prose, inside = [], []
    for line in markdown.splitlines():
        fence = re.match(r"(?:```|:::)[`:]*(.*)", line)
        if fence and (fence[1] or not inside):
            inside.append(fence[1].startswith("{"))  # else it is code
        elif fence:
            inside.pop()
        elif all(inside) and not re.match(r":\w+:", line):
            prose.append(re.sub(r"!\[.*?\]\(.*?\)|\]\(.*?\)", " ", line))
    return re.findall(r"[^\W_][\w'’.,-]*", " ".join(prose))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_story_comes_first(path: Path) -> None:
    found = seen(path)
    bounds = dict(BOUNDS)
    if most_words := TWO_IN_ONE.get(path.stem):
        bounds["words outside the exercises"] = (0, most_words)
    wrong = {
        what: found[what]
        for what, (least, most) in bounds.items()
        if not least <= found[what] <= most
    }
    assert wrong == {}, f"bounds: {bounds}"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_each_cell_is_of_one_kind_and_folded_by_it(path: Path) -> None:
    for _, cell in code_of(path):
        kinds = [tag for tag in tags_of(cell) if tag in KINDS]
        assert len(kinds) == 1, f"tag {cell.id} as one of {KINDS}, not {kinds}:\n{cell.source}"
        hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
        folded = kinds != ["mechanism"]
        assert ("hide-input" in tags_of(cell), hidden) == (folded, folded), (
            f"{cell.id}: evidence and plumbing, and only they, have the tag hide-input and the "
            "metadata jupyter.source_hidden = true"
        )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_a_solution_and_no_other_is_folded_with_its_output(path: Path) -> None:
    """The code of a solution, and no other, is folded with its output.

    JupyterLab opens and closes a solution as a whole (casebook/pages/jupyterlab); any other program
    that shows notebooks goes by this metadata.
    """
    notebook = read(path)
    for first, *_ in solutions.cells_of(notebook):
        assert first.source.startswith("```{solution-start}"), f"{first.id}: split this cell"
    solved = {cell.id for solution in solutions.cells_of(notebook) for cell in solution}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            hidden = cell.metadata.get("jupyter", {}).get("outputs_hidden", False)
            assert hidden == (cell.id in solved), f"{cell.id}: run casebook.classroom.solutions"
            if hidden:
                assert cell.metadata.jupyter.source_hidden is True


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_solution_follows_its_exercise(path: Path) -> None:
    text = "\n".join(cell.source for cell in read(path).cells)
    exercises = re.finditer(r":label: (ex-[\w-]+)|{solution-start} (ex-[\w-]+)", text)
    last = ""
    for exercise, solution in (match.groups() for match in exercises):
        assert not solution or solution == last, f"the solution of {solution} follows {last}"
        last = exercise or last


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_all_checks_stand_folded_at_the_end(path: Path) -> None:
    checks = re.compile(rf"^## {CHECKS}$", re.M)
    headings = [cell for _, cell in story(path) if checks.search(cell.source)]
    assert len(headings) == 1, f"one Markdown cell begins with: ## {CHECKS}"
    heading = headings[0]
    assert heading.source.startswith(f"## {CHECKS}\n") or heading.source == f"## {CHECKS}"
    assert heading.metadata.get("jp-MarkdownHeadingCollapsed") is True, (
        "collapse that heading in JupyterLab, which gives its cell the metadata "
        "jp-MarkdownHeadingCollapsed = true"
    )
    cells = read(path).cells
    after = cells[[cell.id for cell in cells].index(heading.id) + 1 :]
    assert not [cell for cell in after if cell.source.startswith(("# ", "## "))], (
        f"## {CHECKS} is the last section, behind the exercises"
    )


def test_how_much_of_each_chapter_is_story(capsys: pytest.CaptureFixture) -> None:
    """Prints it, for whoever reads the log."""
    heads = [*KINDS, "no kind", "share", "median", "findings", "compared", "words"]
    rows = pd.DataFrame([seen(path).values() for path in CHAPTERS], columns=heads)
    rows.index = [path.stem for path in CHAPTERS]
    with capsys.disabled():
        print(f"\nvisible code lines\n{rows.round(2).to_string()}")
