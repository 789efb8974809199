"""What a page folds: the code that is not the story, and the checks at the end of a chapter.

A cell's kind is one of three tags. `mechanism` stays open. `evidence` (decides a claim) and
`plumbing` (formats, draws, prepares) also carry `hide-input`; here they get a line that says
what is in them, below what they show. The section CHECKS becomes one fold that says how its
checks came out.
"""

import re
from html import escape

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx

from casebook.pages import ledger

#: The heading of the section that is folded.
CHECKS = "All checks of this chapter"

#: What plumbing is called, by what its cell shows.
_BEHIND = {"cb-figure": "code of this picture", "cb-table": "code of this table"}
#: What is counted, and of which kind of sentence (casebook/findings).
_NOUNS = {"claim": "claim", "published": "published number"}
#: A page makes its main claims before its checks.
_BESIDE = {"claim": " beside those above"}
#: Of these outcomes a page need not speak.
AS_IT_SHOULD = {"holds", "reproduced"}


def fold(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Fold the cells and the checks of a page; a listener of `doctree-resolved`."""
    for cell in list(doctree.findall(nodes.container)):
        if cell.get("nb_element") == "cell_code":
            _say_what_is_folded(cell)
    for section in list(doctree.findall(nodes.section)):
        if section[0].astext() == CHECKS:
            start = f'<details class="checks"><summary>{escape(_count_outcomes(section))}</summary>'
            section["classes"] += ["checks"] + ["telling"] * _has_more_to_say(section)
            section.insert(1, nodes.raw("", start, format="html"))
            section.append(nodes.raw("", "</details>", format="html"))


def _say_what_is_folded(cell: nodes.container) -> None:
    """Put a cell's folded code below its output, and name it by its kind."""
    code = next((node for node in cell if isinstance(node, HideCodeCellNode)), None)
    if code is None or code.children[0].get("nb_element") != "cell_code_source":
        return
    cell.remove(code)
    output = "".join(node.astext() for node in cell)
    if "tag_evidence" in cell["classes"]:
        prompt = "how this is decided"
    else:
        prompts = (prompt_text for sign, prompt_text in _BEHIND.items() if sign in output)
        prompt = next(prompts, "code behind this" if output.strip() else "preparation")
    code["prompt_show"] = code["prompt_hide"] = prompt
    cell.append(code)


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


def _outcomes(section: nodes.section) -> list[tuple[str, str]]:
    """Return the kind of each sentence in a section, and how it came out."""
    return re.findall(r'data-(claim|published)="([^"]*)"', section.astext())


def visit_fold(translator, node: HideCodeCellNode) -> None:
    """Write a fold without the frame and the label that MyST-NB gives it."""
    translator.body.append(
        f'<details class="fold"><summary>{escape(node["prompt_show"])}</summary>\n'
    )


def depart_fold(translator, node: HideCodeCellNode) -> None:
    translator.body.append("</details>\n")


def setup(app: Sphinx) -> None:
    """Register it all."""
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_fold))
    app.connect("doctree-resolved", fold)
