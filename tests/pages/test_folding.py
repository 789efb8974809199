"""What a page folds: by what the code calls, by its kind, and never a solution's."""

import nbformat
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode

from casebook.findings.sentences import Sentence
from casebook.pages import folding

IMPORTS = "import time\nfrom casebook import measure as ask\nfrom casebook.cases import server"


def code(source: str, *tags: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_code_cell(source, metadata={"tags": [*tags]})


def test_code_that_calls_what_comes_from_casebook_is_folded() -> None:
    cells = {
        "runs = ask('a')": True,
        "with server.start() as lab:\n    pass": True,
        "def later():\n    return ask('b')": True,
        "%time\nask('c')": True,
        "print(time.time())": False,
        "measure = 3": False,  # here it has another name
        "'ask'": False,
        "casebook = runs": False,
        "later = server.start": True,
        "later()": True,
        "n, ready = 3, server.is_up": True,
        "first, *rest = 1, 2, 3": False,
        "ready()": True,
        "n": False,
        "port = server.start().port": True,
        "port": False,
    }
    notebook = nbformat.v4.new_notebook(
        cells=[code(IMPORTS), *map(code, cells), code("x = 1", "plumbing", folding.FOLDED)]
    )
    folding.choose(notebook)
    folded = [folding.FOLDED in cell.metadata.tags for cell in notebook.cells[1:]]
    assert folded == [*cells.values(), True]


def test_a_solution_stays_as_it_is() -> None:
    text = nbformat.v4.new_markdown_cell
    notebook = nbformat.v4.new_notebook(
        cells=[code(IMPORTS), text("```{solution-start} ex\n```"), code("ask('a')"), text("So:"),
               code("ask('b')"), text("It is.\n```{solution-end}\n```"), code("ask('c')")]
    )  # fmt: skip
    folding.choose(notebook)
    tags = [cell.metadata.tags for cell in notebook.cells if cell.cell_type == "code"]
    assert tags == [[], [], [], [folding.FOLDED]]


def cell(source: str, *outputs: str) -> nodes.container:
    made = nodes.container(nb_element="cell_code", classes=["cell"])
    made += HideCodeCellNode("", nodes.literal_block(source, source))
    shown = nodes.container(nb_element="cell_code_output")
    shown += [nodes.raw("", output, format="html") for output in outputs]
    made += [shown] if outputs else []
    return made


def folded(*cells: nodes.container, title: str = "Of something") -> nodes.section:
    section = nodes.section("", nodes.title(title, title), *cells)
    document = nodes.document(None, None)
    document += section
    folding.fold(None, document, "page")
    return section


def sentence(outcome: str) -> str:
    return Sentence("claim", outcome, "It is.", "", outcome, "live", "").html


def test_neighbours_have_one_fold_below_what_they_show() -> None:
    picture = '<figure class="cb cb-figure">drawn</figure>'
    section = folded(cell("a = 1"), cell("draw(a)", picture), cell("claim(a)", sentence("holds")))
    (run,) = section.findall(
        lambda node: "cb-run" in getattr(node, "attributes", {}).get("classes", ())
    )
    shown, fold = run.children
    assert shown.astext() == picture
    assert fold["prompt_show"] == "how this was measured" and "checking" not in fold["classes"]
    said = fold.astext()
    assert (
        said.index("a = 1") < said.index("draw(a)") < said.index("claim(a)") < said.index("It is")
    )


def test_only_checking_has_what_shows_nothing_or_only_quotes() -> None:
    run = folded(cell("a = 1"), cell("claim(a)", sentence("holds")))[1]
    assert run["classes"] == ["cb-run", "checking"]
    quoted, fold = folded(cell("listing()", '<figure class="cb cb-listing">x = 1</figure>'))[1]
    assert "x = 1" in quoted.astext() and "checking" in fold["classes"]
    for language, is_quoted in (("python", True), ("myst-ansi", False)):  # Markdown, or printed
        shown = cell("show(f)", "")
        shown[-1][0] = nodes.literal_block("", "def f(): pass", language=language)
        fold = folded(shown)[1][-1]
        assert (fold["prompt_show"] == "how this is quoted") == is_quoted
        assert ("checking" in fold["classes"]) == is_quoted


def test_what_came_out_otherwise_is_not_folded() -> None:
    for outcome in ("otherwise", "undecided"):
        shown, fold = folded(cell("claim(a)", sentence(outcome)))[1]
        assert "It is." in shown.astext() and "It is." not in fold.astext()


def test_each_check_stands_by_itself_in_a_section_that_only_checking_has() -> None:
    checks = folded(
        cell("claim(a)", sentence("holds")), cell("claim(b)", sentence("holds")),
        title=folding.CHECKS,
    )  # fmt: skip
    assert {"checks", "checking"} <= {*checks["classes"]}
    runs = [each for each in checks if isinstance(each, nodes.container)]
    assert len(runs) == 2 and all("It is." in run[0].astext() for run in runs)


def test_what_follows_the_story_of_a_chapter_is_a_fold() -> None:
    for page, is_folded in (("notebooks/01_one", True), ("book/method", False)):
        section = nodes.section(
            "", nodes.title("Exercises", "Exercises"), nodes.paragraph("", "Do.")
        )
        document = nodes.document(None, None)
        document += section
        folding.fold(None, document, page)
        inside = [child.astext() for child in section.children]
        assert inside[0] == "Exercises" and "Do." in inside
        assert (inside[1].startswith('<details class="further"><summary>to go on')) == is_folded
        assert (inside[-1] == "</details>") == is_folded


def test_what_leads_on_stays_in_sight_below_what_is_folded() -> None:
    parts = (nodes.Text(""), nodes.strong("", "Next:"), nodes.Text(" a chapter."))
    bold = nodes.paragraph("", "", *parts)
    plain = nodes.paragraph("", "A source.")
    for last, in_sight in ((bold, [bold]), (plain, [])):
        section = nodes.section("", nodes.title("", "Sources"), nodes.paragraph("", "A"), last)
        section += nodes.comment("", "of the parser")
        folding._enclose(section, "further", "sources")
        ends = [i for i, node in enumerate(section) if node.astext() == "</details>"]
        assert [
            node for node in section[ends[0] :] if isinstance(node, nodes.paragraph)
        ] == in_sight
