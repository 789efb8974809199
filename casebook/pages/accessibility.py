"""What pages need for readers of all kinds, and neither the theme nor docutils gives them."""

import html
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

#: What the axe checker finds in pages as the theme and docutils write them, and its cure.
MENDS = (
    # region: the book's title in the sidebar is in no landmark.
    (
        r'<div id="pst-primary-sidebar"',
        '<div id="pst-primary-sidebar" role="navigation" aria-label="Book"',
    ),
    # label-content-name-mismatch: the button also shows its key, "Search Ctrl+K".
    (r'(<button class="btn search-button-field[^>]*?) aria-label="Search"', r"\1"),
    # label-content-name-mismatch: titles of the icons count as text of the "Color mode" button.
    (r'(<i class="theme-switch [^>]*?) title="[^"]*"', r"\1"),
    # aria-deprecated-role, aria-required-children: a bibliography is a list.
    (r'role="doc-biblioentry"', 'role="listitem"'),
)
#: A word of code in running text that is too long for a line of a phone beside others.
LONG_CODE = re.compile(r'<span class="pre">([^<]{20,})</span>')
#: A block of code, and what may stand before the text of a line in it: its start, a line's mark.
CODE = re.compile(r'(?<=<div class="highlight"><pre>).*?(?=</pre>)', re.DOTALL)
BEFORE_LINE = re.compile(r'(?:<span></span>|<code>|</span>|<span class="hll">)*')
INDENT = re.compile(r'(?:<span class="w">)?( +)(?:</span>)?')
#: A line of code with this many letters has no room on a phone.
LONG_LINE = 40
#: Where a long line of code may go on in the next line, besides its blanks; tags come before that.
BREAK = re.compile(r"""(<[^>]*>)|(?<![\d%:])([.(=\[])(?=(?:</?span[^>]*>)*[\w*"'&])""")
#: A table of the text; with this many columns it is cards on a phone, and each cell says its title.
TEXT_TABLE = re.compile(r'<table class="table">.*?</table>', re.DOTALL)
CARDS = 3
#: empty-table-header: the corner above row names heads nothing. Not every page has one.
EMPTY_HEAD = re.compile(r"<th\b([^>]*)>(?:\s|&nbsp;|<p></p>)*</th>")
#: A picture or a table, but for quoted code; and an apostrophe in it, which docutils does not see.
PICTURE = re.compile(r'<(figure|svg)\b(?! class="cb cb-listing).*?</\1>', re.DOTALL)
APOSTROPHE = re.compile(r"(?<=[A-Za-z]{2})(?:'|&#x27;|&#39;|&apos;)(?=[a-z])")


def amend(pages: Iterable[Path]) -> list[str]:
    """Apply MENDS to pages, once.

    Returns what is wrong, in words: MENDS of which no page has anything, since the theme is new.
    """
    mended: Counter[str] = Counter()
    for page in pages:
        text = EMPTY_HEAD.sub(r"<td\1></td>", page.read_text(encoding="utf-8"))
        text = LONG_CODE.sub(_with_breaks, text)
        text = CODE.sub(_with_indents, text)
        text = TEXT_TABLE.sub(_with_titles, text)
        text = PICTURE.sub(lambda picture: APOSTROPHE.sub("’", picture[0]), text)
        for pattern, cure in MENDS:
            text, count = re.subn(pattern, cure, text)
            mended[pattern] += count
        page.write_text(text, encoding="utf-8")
    unknown = [pattern for pattern, count in mended.items() if not count]
    return [f"no page has {', '.join(unknown)}: see accessibility.MENDS"] * bool(unknown)


def _with_titles(table: re.Match[str]) -> str:
    """Return a table whose cells say the titles of their columns, if there are CARDS or more."""
    head, end, body = table[0].partition("</thead>")
    cells = re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", head, re.DOTALL)
    titles = [html.unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in cells]
    if len(titles) < CARDS:
        return table[0]

    def with_title(row: re.Match[str]) -> str:
        of_row = iter(titles)
        return re.sub(r"<td\b", lambda _: f'<td data-title="{html.escape(next(of_row))}"', row[0])

    body = re.sub(r"<tr\b.*?</tr>", with_title, body, flags=re.DOTALL)
    return head.replace('class="table"', 'class="table cards"', 1) + end + body


def _with_breaks(word: re.Match[str]) -> str:
    """Return a long word of code that may break after its dots, slashes, dashes and the like."""
    broken = re.sub(r"(?<=\w)([./_:(=-])(?=\w)", r"\1<wbr>", word[1])
    return f'<span class="pre long">{broken}</span>'


def _with_indents(code: re.Match[str]) -> str:
    """Return a block of code whose long lines go on at their own indent on a phone.

    There the spaces before them are not shown: a line would break after them.
    """
    return "".join(map(_with_indent, code[0].splitlines(keepends=True)))


def _with_indent(line: str) -> str:
    """Return a line of code; a long one is marked, says its indent, and may break inside calls."""
    start = BEFORE_LINE.match(line).end()  # type: ignore[union-attr]
    before, rest = line[:start], line[start:]
    letters = html.unescape(re.sub(r"<[^>]*>", "", rest)).rstrip("\n")
    if len(letters) < LONG_LINE or rest.count("<span") != rest.count("</span"):
        return line
    if lead := INDENT.match(rest):
        rest = f'<span class="cb-indent">{lead[1]}</span>{rest[lead.end() :]}'
    rest = BREAK.sub(lambda found: found[1] or f"{found[2]}<wbr>", rest)
    width = len(letters) - len(letters.lstrip(" "))
    return f'{before}<span class="cb-long" style="--indent:{width}ch">{rest}</span>'
