"""Sentences that rest on findings, and what a page says if a finding did not hold.

A conclusion links to its finding, `it is [the locks](#claim-load-locks)`, or has its value glued,
{glue:text}`load-locks:.1f`. Findings are known when pages are written. If one came out
otherwise, undecided or not here, the sentence around the link says so in words, with the figure
that says it; if the author wrote a sentence for that case, as the link's title, it takes the
place of the first:

    [the locks](#claim-load-locks "otherwise: Here it is not the locks. undecided: Who knows?")

A sentence ends with its full stop, or with its paragraph, bullet or cell of a table.
notebooks/README.md says how to write one. All such sentences of a book are listed in rests.json,
beside its pages.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.core.variables import format_plain_text
from myst_nb.ext.glue.roles import PasteTextRole
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from casebook.errors import BookFailed
from casebook.findings import claims, reach
from casebook.findings.finding import Finding
from casebook.laboratory.decisions import HOLDS, NOT_HERE, OTHERWISE, UNDECIDED
from casebook.pages import ledger
from casebook.pages.contents import Book

LOGGER = logging.getLogger(__name__)

#: The file of all sentences that rest on findings, and its name among a page's metadata.
LISTED = "rests.json"
#: What a sentence is marked with, and a figure that comes out in another way than its sentence
#: says; the gravest first.
MARKS = {
    OTHERWISE: ("Not so here", "otherwise here"),
    UNDECIDED: ("Undecided here", "undecided here"),
    NOT_HERE: ("Not measured here", "not measured here"),
}
#: The end of a sentence and the white space behind it. The next may begin with a small letter:
#: "requests loads it".
_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)[.!?][\"'”’)\]]*(\s+)")
#: The sentences of a title, each behind the outcome that it is for.
_INSTEAD = re.compile(rf"\b({OTHERWISE}|{UNDECIDED}): *")


@dataclass(frozen=True)
class Resting:
    """A sentence that rests on findings.

    page: without suffix; text: as its author wrote it; claims: their ids; shown: what the page says
    if it is marked, else empty.
    """

    page: str
    text: str
    claims: list[str]
    shown: str = ""


def listed(book: Book) -> list[Resting]:
    """Return all sentences of the book, as built last, that rest on findings, in reading order.

    Raises BookFailed if there is no built book, or none that was finished.
    """
    file = book.html / LISTED
    if not file.exists():
        raise BookFailed("There is no book yet whose sentences could be listed: run `make book`.")
    return [Resting(**fields) for fields in json.loads(file.read_text(encoding="utf-8"))]


def too_wide(book: Book) -> list[tuple[Resting, list[str]]]:
    """Return the sentences that speak of more than their findings were measured on.

    Each with the layers that it speaks of (findings/reach.py). Raises as `listed`.
    """
    sentences = listed(book)
    stacks = {finding.id: finding.stack for finding in ledger.read(book.html)}
    wide = []
    for sentence in sentences:
        if layers := reach.wider(sentence.text, [stacks[id] for id in sentence.claims]):
            wide.append((sentence, layers))
    return wide


def stand_ins_of(title: str) -> dict[str, str]:
    """Return what the title of a link says for each outcome.

    Raises ValueError for any other title.
    """
    prefix, *parts = _INSTEAD.split(title)
    sentences = dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
    if prefix.strip() or not all(sentences.values()) or len(sentences) != len(parts) // 2:
        raise ValueError(
            f"the title {title!r} is a sentence for the case that the finding did not hold: it "
            f'begins with "{OTHERWISE}:" or "{UNDECIDED}:", each of them once at most'
        )
    return sentences


class GluedValue(PasteTextRole):
    """{glue:text}, which remembers the claim whose value it shows."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the value as text, with the id of its claim."""
        env = self.document.settings.env
        path, _, key = self.text.rpartition("::")
        id, _, spec = key.partition(":")
        finding = _findings(env.app).get(id)
        if finding is None or finding.chapter != Path(path or env.docname).stem:
            return super().run()  # no claim, or not of this chapter: MyST-NB has it, or complains
        text = "…"  # nothing was measured
        if finding.value is not None:
            try:
                value = finding.value if spec else claims.rounded(finding.value)
                text = format_plain_text(repr(value), spec or "s")  # rounded once
            except ValueError:
                return super().run()  # which complains
        return [nodes.inline(text, text, classes=["pasted-text"], claim=id)], []


class MarkSentences(SphinxTransform):
    """Links conclusions to their findings, and marks those whose finding did not hold."""

    default_priority = 870  # before MyST looks for what `#…` leads to

    def apply(self, **_: Any) -> None:
        """Mark the sentences of a page, and list those that rest on findings."""
        self.findings = _findings(self.app)
        for link in list(self.document.findall(nodes.Element)):
            if (address := self._address(link)) is not None:
                link.replace_self(self._linked(link, *address))
        self.sentences: list[Resting] = []
        self.told_ids: set[str] = set()  # of the findings whose figures the page has said
        for block in dict.fromkeys(map(_block, _resting(self.document))):
            sentences = map(self._marked, _sentences(block))
            block.children = []
            block += [node for sentence in sentences for node in sentence]
        self.env.metadata[self.env.docname][LISTED] = self.sentences

    def _address(self, node: nodes.Element) -> tuple[str, str] | None:
        """Return the page and the id of a claim that a node links to; None for every other node."""
        page, target = self.env.docname, ""
        if isinstance(node, nodes.reference) and node.get("id_link"):
            target = node["refuri"][1:]
        elif isinstance(node, addnodes.pending_xref) and node.get("reftargetid"):
            page, target = node["reftarget"], node["reftargetid"]
        kind, _, id = target.partition("-")
        return (page, id) if kind == "claim" and id else None

    def _linked(self, link: nodes.Element, page: str, id: str) -> nodes.Node:
        """Return a link to a claim as it is shown, with the id of the claim."""
        children = link.children
        if isinstance(link, addnodes.pending_xref):
            children = link[0].children
        finding, instead = self.findings.get(id), {}
        if finding is None:
            self._complain(f"no chapter makes the claim {id!r}, on which a sentence rests", link)
            return nodes.inline("", "", *children)
        if page != f"notebooks/{finding.chapter}":
            self._complain(f"the claim {id!r} is made in {finding.chapter}, not in {page}", link)
        try:
            if title := link.get("reftitle") or link.get("title"):
                instead = stand_ins_of(title)
        except ValueError as error:
            self._complain(f"the claim {id!r}: {error}", link)
        return nodes.inline("", "", self._reference(finding, *children), claim=id, instead=instead)

    def _complain(self, message: str, link: nodes.Element) -> None:
        LOGGER.warning(message, location=link, type="casebook")

    def _reference(self, finding: Finding, *children: nodes.Node) -> nodes.reference:
        page = f"notebooks/{finding.chapter}"
        address = "" if page == self.env.docname else self.app.builder.get_relative_uri(
            self.env.docname, page
        )  # fmt: skip
        address += f"#claim-{finding.id}"
        return nodes.reference(
            "", "", *children, internal=True, refuri=address, classes=["cb-rests"]
        )

    def _marked(self, sentence: list[nodes.Node]) -> list[nodes.Node]:
        """Return a sentence as its page shows it: marked, if it rests on what did not hold."""
        links = [link for node in sentence for link in _resting(node)]
        if not links:
            return sentence
        findings = {link["claim"]: self.findings[link["claim"]] for link in links}
        failed = [finding for finding in findings.values() if finding.outcome != HOLDS]
        on_page = self._stand_in(sentence, links, failed) if failed else sentence
        texts = [_text(sentence), _text(on_page) if failed else ""]
        self.sentences.append(Resting(self.env.docname, texts[0], [*findings], texts[1]))
        return on_page

    def _stand_in(
        self, sentence: list[nodes.Node], links: list[nodes.Element], failed: list[Finding]
    ) -> list[nodes.Node]:
        """Return what replaces a sentence some of whose findings did not hold."""
        outcomes = {finding.id: finding.outcome for finding in failed}
        instead = [
            stand_in
            for link in links
            for outcome, stand_in in link.get("instead", {}).items()
            if outcomes.get(link["claim"]) == outcome
        ]
        gravest = min(outcomes.values(), key=[*MARKS].index)
        marked = nodes.inline("", "", classes=["cb-marked", f"cb-{gravest}"])
        if instead:
            marked += _inline(" ".join(instead))
        else:
            marked += [nodes.strong("", f"{MARKS[gravest][0]}:"), nodes.Text(" "), *sentence]
        figures: dict[tuple[str, str], Finding] = {}  # two may lack the same thing: said once
        for finding in failed:
            figure = finding.in_brief(is_known=finding.id in self.told_ids)
            self.told_ids.add(finding.id)
            is_told = not instead and finding.outcome == gravest
            figures.setdefault(("" if is_told else MARKS[finding.outcome][1], figure), finding)
        for (mark, figure), finding in figures.items():
            texts = _inline(figure)
            if mark:  # which is enough for a reader; the figure is for checking
                texts = [nodes.Text(mark), nodes.inline("", "", nodes.Text(": "), *texts)]
                texts[1]["classes"].append("cb-measured")
            link = self._reference(finding, *texts)
            parts = [nodes.Text(" ("), link, nodes.Text(")")]
            marked += nodes.inline("", "", *parts, classes=["cb-why"])
        return [marked]


def _findings(app: Sphinx) -> dict[str, Finding]:
    """Read the findings of this build by id (pages/records.py has written them)."""
    return {finding.id: finding for finding in ledger.read(Book(Path(app.srcdir)).included)}


def _resting(node: nodes.Node) -> Iterator[nodes.Element]:
    """Yield the links and values in a node, itself included, that rest on a claim."""
    for inline in node.findall(nodes.inline):
        if "claim" in inline:
            yield inline


def _block(node: nodes.Node) -> nodes.Element:
    """Return the paragraph, or other block of text, that contains a link."""
    while isinstance(node.parent, nodes.Inline):
        node = node.parent
    return node.parent


def _sentences(block: nodes.Element) -> list[list[nodes.Node]]:
    """Return the sentences of a paragraph, and the white space between them, each as its nodes."""
    sentences: list[list[nodes.Node]] = [[]]
    for node in _merged(block.children):
        if not isinstance(node, nodes.Text):
            sentences[-1].append(node)
            is_strong = isinstance(node, nodes.strong | nodes.emphasis)
            if is_strong and node.astext()[-1:] in (".", "!", "?"):
                sentences.append([])  # behind a lead-in
            continue
        start, text = 0, node.astext()
        if not sentences[-1]:
            start = len(text) - len(text.lstrip())
            sentences[-1:] = [[nodes.Text(text[:start])], []]
        for end in _END.finditer(text, start):
            sentences[-1].append(nodes.Text(text[start : end.start(1)]))
            sentences += [[nodes.Text(end[1])], []]
            start = end.end()
        if start < len(text):
            sentences[-1].append(nodes.Text(text[start:]))
    return sentences


def _merged(children: Sequence[nodes.Node]) -> list[nodes.Node]:
    """Return the children of a paragraph, with neighbouring texts joined into one."""
    merged: list[nodes.Node] = []
    for node in children:
        if isinstance(node, nodes.Text) and merged and isinstance(merged[-1], nodes.Text):
            merged[-1] = nodes.Text(merged[-1].astext() + node.astext())
        else:
            merged.append(node)
    return merged


def _text(sentence: Sequence[nodes.Node]) -> str:
    return " ".join("".join(node.astext() for node in sentence).split())


def _inline(text: str) -> list[nodes.Node]:
    """Return the nodes of a sentence with `code` in backticks."""
    parts = enumerate(text.split("`"))
    return [nodes.literal("", part) if n % 2 else nodes.Text(part) for n, part in parts if part]


def write_list(app: Sphinx, exception: Exception | None) -> None:
    """List the sentences of all pages that rest on claims; a listener of `build-finished`."""
    if exception is None:
        pages = Book(Path(app.srcdir)).page_names()
        sentences = [
            sentence for page in pages for sentence in app.env.metadata[page].get(LISTED, ())
        ]
        text = json.dumps(
            [asdict(sentence) for sentence in sentences], indent=1, ensure_ascii=False
        )
        Path(app.outdir, LISTED).write_text(text + "\n", encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register it all."""
    app.setup_extension("myst_nb")
    app.add_role_to_domain("glue", "text", GluedValue(), override=True)
    app.add_transform(MarkSentences)
    app.connect("build-finished", write_list)
