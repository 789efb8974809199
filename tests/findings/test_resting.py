"""Sentences that rest on findings: linked, marked where the finding did not hold, listed."""

import ast
import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from article import Article
from playwright.sync_api import Browser
from test_book import FINDINGS, write, write_model
from test_notebooks import NOTEBOOKS, called, python_of, sources
from test_pages import PHONE, inaccessible, too_wide

from casebook import cli, places
from casebook.errors import BookFailed
from casebook.pages import build, resting
from casebook.pages.contents import Book
from casebook.pages.folding import CHECKS

#: Four findings, one of each outcome, a fifth that holds, and one that lacks what another lacks.
MADE = (
    FINDINGS
    + """
from casebook.laboratory.decisions import Window, decide
asked = Window(high=0.8)
claim('good', 'It is {value:.2f}.', 1.01507, True)
claim('bad', 'Apart they take {value:.0%} of `it`.', decide([1.1, 1.11, 1.12] * 6, asked))
claim('unsure', 'It is {value:.2f} times.', decide([0.7, 0.9] * 4, asked), unit='times')
claim('gone', 'It is {value}.', None, not_here='no Python 2.7')
claim('lost', 'It was {value}.', None, not_here='no Python 2.7')
"""
)
PROSE = """
Two things first. So it is [the *good* one](#claim-good), e.g. the second!
And [the bad](#claim-bad)? Nothing after it is marked.
A glued {glue:text}`unsure:.1f` stands in `code` too.

- It is [the locks](#claim-bad "otherwise: Here it is not `the locks`. undecided: Who knows?"), no.
- [So](#claim-unsure "otherwise: It is not so.") be it. **Lead-in.** Not [measured](#claim-gone).
- Glued: {glue:text}`gone:.1f`. Neither [here](#claim-gone), nor [here](#claim-lost).

| if | take |
|---|---|
| near | [the one](#claim-bad), and [more](#claim-unsure) |
| far | [the other](#claim-good "otherwise: never. undecided: never.") |
"""
PREFACE = """# Preface

There are {glue:text}`../notebooks/one.ipynb::good:.2f` of
[them](../notebooks/one.ipynb#claim-good).
You save {glue:text}`../notebooks/one.ipynb::bad:.0%`, and it is
[over there](../notebooks/one.ipynb#claim-bad "otherwise: You save nothing.").
You save {glue:text}`../notebooks/one.ipynb::unsure:.0%` there.
"""
BAD = "Apart they take 111% of it: 1.1 to 1.12 in 18 rounds, asked: below 0.8"
UNSURE = "It is 0.80 times: 0.7 to 0.9 in 8 rounds, asked: below 0.8"
#: The same for a reader who has met the figure on that page.
BAD_AGAIN, UNSURE_AGAIN = (each.partition(": ")[2] for each in (BAD, UNSURE))


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    root = tmp_path_factory.mktemp("resting") / "book"
    write_model(root)
    path = write(root, "one", MADE, prose=PROSE)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(-1, nbformat.v4.new_markdown_cell(f"## {CHECKS}"))
    nbformat.write(notebook, path)
    (root / "book" / "preface.md").write_text(PREFACE)
    build(root)
    return Book(root)


def test_what_rests_on_a_finding_that_did_not_hold_says_so(book: Book) -> None:
    told = Article(book.html / "notebooks" / "one.html")
    for said in (
        "Two things first. So it is the good one, e.g. the second! "
        f"Not so here: And the bad? ({BAD}) Nothing after it is marked. "
        f"Undecided here: A glued 0.8 stands in code too. ({UNSURE})",
        f"Here it is not the locks. (otherwise here: {BAD_AGAIN})",
        f"Undecided here: So be it. ({UNSURE_AGAIN}) Lead-in. "
        "Not measured here: Not measured. (no Python 2.7)",
        "Not measured here: Glued: …. (no Python 2.7) "
        "Not measured here: Neither here, nor here. (no Python 2.7)",
        f"Not so here: the one, and more ({BAD_AGAIN}) (undecided here: {UNSURE_AGAIN})",
        "the other",
    ):
        assert said in told.text
    assert "It is the locks" not in told.text and "never" not in told.text
    assert set(told.links) == {
        f"#claim-{name}" for name in ("good", "bad", "unsure", "gone", "lost")
    }


def test_also_on_pages_that_run_nothing(book: Book) -> None:
    told = Article(book.html / "book" / "preface.html")
    # Rounded once: by way of 1.015 it would be 1.01.
    assert "There are 1.02 of them. You save nothing. (otherwise here: " in told.text
    assert f"Undecided here: You save 80% there. ({UNSURE})" in told.text
    assert "111%, and" not in told.text
    ids = {link.partition("#")[2] for link in told.links}
    assert ids == {"claim-good", "claim-bad", "claim-unsure"}
    assert all(link.startswith("../notebooks/one.html#") for link in told.links)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_marked_sentence_can_be_read_on_a_phone(book: Book, browser: Browser, theme: str) -> None:
    window = {"width": PHONE, "height": 800}
    with browser.new_page(viewport=window, color_scheme=theme) as tab:
        for name in ("book/preface", "notebooks/one"):
            tab.goto((book.html / f"{name}.html").as_uri())
            grounds = "nodes => nodes.map(node => getComputedStyle(node).backgroundColor)"
            marked = tab.locator(".cb-marked")
            assert marked.count() > 1
            # What is undecided says so in words alone, while one reads.
            loud = tab.locator(".cb-marked:not(.cb-undecided)")
            assert "rgba(0, 0, 0, 0)" not in loud.evaluate_all(grounds)
            assert inaccessible(tab) + too_wide(tab) == []


def test_a_link_opens_the_fold_that_its_finding_is_in_each_time(
    book: Book, browser: Browser
) -> None:
    with browser.new_page() as tab:
        tab.goto((book.html / "book" / "preface.html").as_uri())
        tab.get_by_role("link", name="them").click()
        tab.wait_for_url("**/one.html#claim-good")
        assert tab.locator("#claim-good").is_visible()
        for _ in range(2):
            tab.locator("details.checks").evaluate("fold => { fold.open = false }")
            assert not tab.locator("#claim-good").is_visible()
            tab.get_by_role("link", name="good one").click()
            tab.locator("#claim-good").wait_for(state="visible", timeout=5000)


def test_all_of_them_are_listed(
    book: Book, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    found = resting.listed(book)
    assert len(found) == 13 and [each.page for each in found[:3]] == ["book/preface"] * 3
    assert found[1].text == "You save 111%, and it is over there."
    assert found[1].claims == ["bad"] and found[1].shown.startswith("You save nothing. (")
    assert [each.text for each in found if not each.shown] == [
        "There are 1.02 of them.",
        "So it is the good one, e.g. the second!",
        "the other",
    ]
    monkeypatch.setattr(places, "ROOT", book.root)
    assert cli.main(["rests"]) == 0
    assert capsys.readouterr().out.count("    rests on ") == 13
    assert cli.main(["rests", "--marked"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("    rests on ") == printed.count("    shown here: ") == 10
    assert "book/preface: You save 111%, and it is over there.\n    rests on bad\n" in printed


def test_nothing_is_marked_where_all_hold(book: Book, tmp_path: Path) -> None:
    """The same pages on a machine on which all came out."""
    root = tmp_path / "book"
    write_model(root)
    held = re.sub(r"decide\(.*?\)(?=[,)])", "0.5, True", MADE)
    held = held.replace("None, not_here='no Python 2.7'", "1, True")
    write(root, "one", held.replace(", asked), unit", ", unit"), prose=PROSE)
    (root / "book" / "preface.md").write_text(PREFACE)
    build(root)
    found = resting.listed(Book(root))
    assert len(found) == len(resting.listed(book))
    assert {each.shown for each in found} == {""}
    for path in Book(root).html.rglob("*.html"):
        assert "cb-marked" not in path.read_text()
    assert "It is the locks, no." in Article(Book(root).html / "notebooks" / "one.html").text


def test_a_sentence_that_rests_on_nothing_fails_the_build(tmp_path: Path) -> None:
    wrong = {
        "[a](#claim-gone)": "no chapter makes the claim 'gone', on which a sentence rests",
        "[a](two.ipynb#claim-good)": "the claim 'good' is made in one, not in notebooks/two",
        '[a](#claim-good "Else.")': "the title 'Else.' is a sentence for the case that",
        '[a](#claim-good "otherwise: ")': "the title 'otherwise: ' is a sentence for the case",
        '[a](#claim-good "otherwise: A. otherwise: B.")': "each of them once at most",
        "{glue:text}`two.ipynb::good:.1f`": "'good' not found in doc 'notebooks/two'",
    }
    root = tmp_path / "book"
    write_model(root)
    made = FINDINGS + "claim('good', 'Two is {value}.', 2, True)"
    write(root, "one", made, prose="\n\n".join(wrong))
    with pytest.raises(BookFailed) as failure:
        build(root)
    assert [said for said in wrong.values() if said not in str(failure.value)] == []


def test_a_list_needs_a_book(tmp_path: Path) -> None:
    with pytest.raises(BookFailed, match="make book"):
        resting.listed(Book(tmp_path))


PAGES = [*NOTEBOOKS, *sorted((places.ROOT / "book").glob("*.md"))]
#: A link to a claim, or a glued value: the page (empty: this one) and the id.
RESTS = re.compile(r"\]\(([\w./]*)#claim-([\w-]+)|\{glue:text\}`(?:([^`]*)::)?([\w-]+)")
#: The first heads of the tables that conclude nothing: what others saw and when, what is where.
TELLS = {"when", "chapters", "minutes", "trust", "evidence", "mark", "setting", "part",
         "you have", ""}  # fmt: skip


def prose_of(path: Path) -> str:
    """The Markdown of a page."""
    return path.read_text() if path.suffix == ".md" else "\n\n".join(sources(path, "markdown"))


def rests_of(path: Path, prose: str) -> set[tuple[str, str]]:
    """What some of a page's prose rests on: pairs of a chapter and the id of a claim."""
    found = RESTS.findall(prose)
    return {(Path(at or glued or path).stem, id or key) for at, id, glued, key in found}


@cache
def made() -> frozenset[tuple[str, str]]:
    """The claims of all chapters, as such pairs."""
    return frozenset(
        (path.stem, ast.literal_eval(node.args[0]))
        for path in NOTEBOOKS
        for cell in sources(path, "code")
        for node in ast.walk(ast.parse(python_of(cell)))
        if called(node) == "claim"
    )


def rows_of(prose: str) -> list[str]:
    """The rows of the tables that conclude something."""
    tables = re.findall(r"(?:^\|.*\n?)+", prose, re.M)
    lines = [table.splitlines() for table in tables]
    return [row for head, _, *rows in lines if head.split("|")[1].strip() not in TELLS
            for row in rows]  # fmt: skip


def test_the_findings_are_found_in_the_code() -> None:
    assert len(made()) > 150 and ("09_thirty_threads", "threads-load-each") in made()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_what_a_page_rests_on_is_found_where_its_links_lead(path: Path) -> None:
    assert rests_of(path, prose_of(path)) - made() == set()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_line_of_what_we_learned_rests_on_a_finding(path: Path) -> None:
    learned = re.findall(r"^## What we learned\n(.*?)(?=^## |\Z)", prose_of(path), re.M | re.S)
    items = re.findall(r"^(?:-|\d\.) .*(?:\n(?!- |\d\. |\n).*)*", "".join(learned), re.M)
    assert items or path.stem[0] == "a"
    assert [item for item in items if not rests_of(path, item)] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_each_row_of_a_table_of_conclusions_rests_on_a_finding(path: Path) -> None:
    assert [row for row in rows_of(prose_of(path)) if not rests_of(path, row)] == []


def test_the_tables_of_conclusions_are_found() -> None:
    rows = {path.stem: len(rows_of(prose_of(path))) for path in PAGES}
    with_rows = {name for name, count in rows.items() if count}
    assert {"07_cures", "15_thousands", "23_what_to_take", "is_this_you",
            "instructors"} <= with_rows  # fmt: skip
    assert rows["23_what_to_take"] >= 9  # what to take when, and the three cases
