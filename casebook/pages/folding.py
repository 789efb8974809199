"""What a page folds, and what it shows to a reader.

A page can be seen in two ways (book/_static/casebook.js): *reading*, the default, and *checking*.
In reading, code that calls what the notebook imports from `casebook` is folded, with the findings
that came out as they should, into one quiet line below what it drew; so are the cells of the kinds
`evidence` and `plumbing`. A solution's stay as they are. In checking every such fold is open.
The section CHECKS becomes one fold that says how its checks came out, and is only seen in checking.
Exercises and sources, which follow the story, are a fold each.
"""

import ast
import itertools
import re
from collections.abc import Iterator
from html import escape

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from nbformat import NotebookNode
from sphinx.application import Sphinx

from casebook.laboratory.decisions import OTHERWISE, UNDECIDED
from casebook.pages import ledger
from casebook.pages.contents import tree

#: The heading of the section that is folded.
CHECKS = "All checks of this chapter"
#: The heading of what a chapter says of its releases; only seen in checking, too.
RELEASES = "Of which releases"

#: What follows the story in each chapter, and what its fold is called; open in checking.
AFTER_STORY = {
    "How to use it": "a few lines in your program, and what they leave alone",
    "Exercises": "to go on by yourself, each with a solution that was run",
    "Sources": "where this chapter’s facts come from",
}

#: What MyST-NB folds the code of.
FOLDED = "hide-input"

#: What a fold is called. Where its cells show nothing or only quote code, it is not for reading.
_MEASURED = "how this was measured"
_PREPARED = {"": "preparation", "cb-listing": "how this is quoted"}
#: What is counted, and of which kind of sentence (casebook/findings).
_NOUNS = {"claim": "claim", "published": "published number"}
#: A page makes its main claims before its checks.
_BESIDE = {"claim": " beside those above"}
#: Of these outcomes a page need not speak.
AS_IT_SHOULD = {"holds", "reproduced"}


def choose(notebook: NotebookNode) -> None:
    """Fold, in a notebook that becomes a page, the code that calls the book's instruments."""
    instruments = instruments_of(notebook)
    for cell in outside_solutions(notebook):
        tags = cell.metadata.setdefault("tags", [])
        if FOLDED not in tags and names_in(cell) & instruments:
            tags.append(FOLDED)


def outside_solutions(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """Yield the code cells of a notebook that no solution holds."""
    is_solution = False
    for cell in notebook.cells:
        if cell.cell_type != "code":
            starts, ends = (cell.source.rfind(f"{{solution-{end}}}") for end in ("start", "end"))
            is_solution = starts > ends or (is_solution and ends < 0)
        elif not is_solution:
            yield cell


def instruments_of(notebook: NotebookNode) -> set[str]:
    """Return the names by which a notebook's code calls what it imports from `casebook`.

    So is a name that it gives to a part of that: quic = bookstore.quic.
    """
    names: set[str] = set()
    for cell in notebook.cells:
        for node in ast.walk(tree(cell)):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("casebook."):
                names |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Assign):
                names |= {name for name, value in _bindings(node) if _root(value) in names}
    return names


def _bindings(assignment: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that an assignment binds, each with its value, as far as they stand there."""
    for target in assignment.targets:
        value = assignment.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))  # as in: a, *rest = 1, 2, 3
        else:
            pairs = [(target, value)]
        yield from ((name.id, part) for name, part in pairs if isinstance(name, ast.Name))


def _root(node: ast.expr) -> str:
    """Return the name that an attribute of an attribute begins with; "" of anything else."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def names_in(cell: NotebookNode) -> set[str]:
    """Return the names that the code of a cell uses."""
    return {node.id for node in ast.walk(tree(cell)) if isinstance(node, ast.Name)}


def fold(_app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Fold the cells and the checks of a page; a listener of `doctree-resolved`."""
    for section in list(doctree.findall(nodes.section)):
        heading = section[0].astext()
        if heading == CHECKS:
            section["classes"] += ["checks", "checking"] + ["telling"] * _has_more_to_say(section)
            _enclose(section, "checks", _count_outcomes(section))
        elif heading == RELEASES:
            section["classes"].append("checking")
        elif heading in AFTER_STORY and page.startswith("notebooks/"):
            _enclose(section, "further", AFTER_STORY[heading])
    parents = {id(cell.parent): cell.parent for cell in doctree.findall(_is_folded_cell)}
    for parent in parents.values():
        is_check = "checks" in parent.get("classes", ())
        for folded, run in itertools.groupby(list(parent.children), _is_folded_cell):
            if folded:
                for cells in ([cell] for cell in run) if is_check else [[*run]]:
                    _fold_run(parent, cells, keep_findings=is_check)


def _enclose(section: nodes.section, kind: str, summary: str) -> None:
    """Put what stands below the heading of a section into a fold.

    A last paragraph that begins in bold, as in "Next: ...", leads on, and stays in sight.
    """
    start = f'<details class="{kind}"><summary>{escape(summary)}</summary>'
    paragraphs = [node for node in section if isinstance(node, nodes.paragraph)]
    end = len(section)
    if paragraphs and _is_bold_at_first(paragraphs[-1]):
        end = section.index(paragraphs[-1])
    section.insert(end, nodes.raw("", "</details>", format="html"))
    section.insert(1, nodes.raw("", start, format="html"))


def _is_bold_at_first(paragraph: nodes.paragraph) -> bool:
    """Say whether a paragraph begins in bold; MyST has an empty text before it."""
    parts = [part for part in paragraph.children if part.astext()]
    return bool(parts) and isinstance(parts[0], nodes.strong)


def _is_folded_cell(node: nodes.Node) -> bool:
    """Say whether a node is a code cell whose code is folded."""
    if not isinstance(node, nodes.container) or node.get("nb_element") != "cell_code":
        return False
    return any(isinstance(part, HideCodeCellNode) for part in node)


def _fold_run(parent: nodes.Element, cells: list[nodes.container], keep_findings: bool) -> None:
    """Put the code of neighbouring cells into one fold below what they show.

    The findings that came out as they should go there too, unless they are to be kept in sight.
    """
    place = parent.index(cells[0])
    fold, visible_cells = HideCodeCellNode(classes=["fold"]), []
    for cell in cells:
        parent.remove(cell)
        codes = [part for part in cell if isinstance(part, HideCodeCellNode)]
        behind = cell.copy()
        for code in codes:
            cell.remove(code)
            behind += code.children
        for outputs in list(cell.children):
            for output in list(outputs.children):
                if not keep_findings and is_quiet(output.astext()):
                    outputs.remove(output)
                    behind += output
            if not outputs.children:
                cell.remove(outputs)
        fold += behind
        visible_cells += [cell] if cell.children else []
    fold["prompt_show"], only_checked = _prompt(visible_cells)
    if only_checked and not visible_cells:
        parent.insert(place, nodes.container("", fold, classes=["cb-run", "checking"]))
        return
    fold["classes"] += ["checking"] * only_checked
    parent.insert(place, nodes.container("", *visible_cells, fold, classes=["cb-run"]))


def _prompt(visible_cells: list[nodes.container]) -> tuple[str, bool]:
    """Return what the fold below the outputs of cells is called, and if only checking shows it."""
    text = "".join(cell.astext() for cell in visible_cells)
    figures = re.findall(r'class="cb (cb-\w+)', text)
    blocks = (block for cell in visible_cells for block in cell.findall(nodes.literal_block))
    code = "".join(block.astext() for block in blocks if block.get("language") == "python")
    if code and code.strip() == text.strip():  # it is shown as Markdown
        figures = ["cb-listing"]
    if set(figures) - {"cb-listing"} or (text.strip() and not figures):
        return _MEASURED, False
    return _PREPARED[figures[0] if figures else ""], True


def is_quiet(output: str) -> bool:
    """Say whether an output is a finding that a reader need not see, or says that it is not here.

    What came out otherwise, or could not be decided, is always seen.
    """
    if "cb-not-here" in output:
        return True
    outcomes = {outcome for _, outcome in _SENTENCE.findall(output)}
    return bool(outcomes) and not outcomes & {OTHERWISE, UNDECIDED}


def _count_outcomes(section: nodes.section) -> str:
    """Return "9 claims beside those above: 8 hold, 1 is undecided. 2 published numbers: ..."."""
    sentences, counts = _outcomes(section), []
    for kind, noun in _NOUNS.items():
        outcomes = [outcome for sentence_kind, outcome in sentences if sentence_kind == kind]
        if n := len(outcomes):
            counted_claims = f"{n} {noun}{'s' * (n > 1)}{_BESIDE.get(kind, '')}"
            counts.append(f"{counted_claims}: {ledger.came_out(outcomes)}.")
    return " ".join(counts) or "What else was measured"


def _has_more_to_say(section: nodes.section) -> bool:
    """Say whether something in a section came out in another way than it should."""
    return bool({outcome for _, outcome in _outcomes(section)} - AS_IT_SHOULD)


#: The kind of a sentence, and how it came out.
_SENTENCE = re.compile(r'data-(claim|published)="([^"]*)"')


def _outcomes(section: nodes.section) -> list[tuple[str, str]]:
    """Return the kind of each sentence in a section, and how it came out."""
    return _SENTENCE.findall(section.astext())


def visit_fold(translator, node: HideCodeCellNode) -> None:
    """Write a fold without the frame and the label that MyST-NB gives it."""
    translator.body.append(
        f'<details class="{" ".join(node["classes"])}"><summary>'
        f"{escape(node['prompt_show'])}</summary>\n"
    )


def depart_fold(translator, _node: HideCodeCellNode) -> None:
    """Close a fold."""
    translator.body.append("</details>\n")


def setup(app: Sphinx) -> None:
    """Register it all."""
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_fold))
    app.connect("doctree-resolved", fold)
