"""How a finding is shown: as a sentence of the book, with a small mark at its end.

The mark says how the sentence came out, and whether that was measured here. It leads to the row
of the ledger, where the interval, the rounds and both attempts are; in JupyterLab, which has no
built pages, to the page that explains the outcomes. What did not hold is also said in words.
"""

import re
from dataclasses import dataclass
from html import escape
from typing import Any

from IPython import get_ipython
from IPython.display import display

from casebook import build, words
from casebook.colours import style

#: The class of a sentence by the sign of its mark.
_CLASSES = {"✓": "cb-yes", "✗": "cb-no"}

#: Where the marks lead: from a chapter's page, and from a notebook.
_LEDGERS = {
    "claim": ("../book/claims.html#{}", "../book/claims.md"),
    "published": ("../book/published.html#{}", "../book/published.md"),
}


@dataclass(frozen=True)
class Sentence:
    """A finding as it is shown. `text` and `remark` may have `code` in backticks.

    kind: "claim" or "published", which name its ledger. id: the anchor is <kind>-<id>. sign: ✓, ✗,
    or another for neither; outcome: what it means, in a word or two. origin: "live", "recorded" or
    the like, if anything was measured. details: what the mark says when one points at it. remark:
    what is read behind it.
    """

    kind: str
    id: str
    text: str
    sign: str
    outcome: str
    origin: str
    details: str
    remark: str = ""

    @property
    def html(self) -> str:
        """Return the sentence with its mark, as a paragraph."""
        anchor = escape(f"{self.kind}-{self.id}")
        on_a_page, in_a_notebook = _LEDGERS[self.kind]
        ledger = on_a_page if build.in_build() else in_a_notebook
        classes = _CLASSES.get(self.sign, "cb-maybe")
        if self.kind == "published":
            classes += " cb-row"
        if self.sign == "✓" and self.origin == words.LIVE:
            classes += " cb-quiet"  # its mark may be left out (casebook.js): it says the usual
        remark = f' <span class="cb-remark">{inline(self.remark)}</span>' if self.remark else ""
        return (
            f'{style("finding")}<p class="cb cb-finding {classes}" id="{anchor}" '
            f'data-{self.kind}="{escape(self.outcome)}">{inline(self.text)} <a class="cb-mark" '
            f'href="{ledger.format(anchor)}" title="{escape(self.details)}">'
            f'<span class="cb-sign" aria-hidden="true">{self.sign}</span> '
            f'<span class="cb-word">{self.outcome}{", " if self.origin else ""}</span>'
            f"{self.origin}</a>{remark}</p>"
        )

    @property
    def plain(self) -> str:
        """Return the same on one line, for a terminal."""
        mark = ", ".join(part for part in (f"{self.sign} {self.outcome}", self.origin) if part)
        return f"{self.text} [{mark}; {self.kind} {self.id}] {self.remark}".rstrip()

    def show(self, mime: str, record: dict[str, Any]) -> None:
        """Put it and its record into the cell's output; without a notebook, print it."""
        if get_ipython() is None:
            print(self.plain)
        else:
            display({"text/html": self.html, "text/plain": self.plain, mime: record}, raw=True)


def inline(text: str) -> str:
    """Return a sentence as HTML, with `code` in backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def origin(recorded: int, total: int) -> str:
    """Say in a word where a finding comes from, by how many of its runs were recorded elsewhere."""
    if not recorded and not words.is_from_machine_file():
        return words.LIVE
    return "recorded" if recorded == total or words.is_from_machine_file() else "partly recorded"
