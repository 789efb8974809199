"""The built book as it is published: what `make publish-check` finds.

It looks at a small site in which one thing at a time is wrong.
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from here import run
from PIL import Image
from test_book import write, write_model

from casebook import places
from casebook.cases.fetching import explorer
from casebook.charts import card
from casebook.errors import BookFailed
from casebook.pages import address, build, chapter_scripts, contents, permanent, publishing

PUBLISHED = "https://owner.github.io/book/"
PAGE = """<!doctype html><html><head>
<link rel="canonical" href="{published}{name}">
<link rel="stylesheet" href="{up}_static/look.css">
<meta property="og:title" content="A page"><meta property="og:description" content="It says.">
<meta property="og:url" content="{published}{name}">
<meta property="og:image" content="{published}_images/card.png">
</head><body id="top">
<a href="{up}notebooks/one.html#here">one</a> <a href="{up}book/preface.html">preface</a>
<a href="https://example.org/elsewhere">another site</a> <a href="#here" id="here">here</a>
<img src="{up}_images/card.png" alt="">
</body></html>"""
INDEX = """<!doctype html><html><head>
<link rel="canonical" href="{published}book/preface.html">
<meta property="og:title" content="A book"><meta property="og:description" content="It says.">
<meta property="og:url" content="{published}book/preface.html">
<meta property="og:image" content="{published}_images/card.png">
</head><body><a href="book/preface.html">To the first page</a></body></html>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site with nothing wrong in it."""
    folder = tmp_path / "html"
    for name in ("book", "notebooks", "_static", "_images"):
        (folder / name).mkdir(parents=True)
    (folder / ".nojekyll").touch()
    (folder / "index.html").write_text(INDEX.format(published=PUBLISHED))
    for name in ("book/preface.html", "notebooks/one.html"):
        (folder / name).write_text(PAGE.format(published=PUBLISHED, name=name, up="../"))
    (folder / "search.html").write_text('<a href="book/preface.html">preface</a>')
    (folder / "_static" / "look.css").write_text("body { background: url(grain.png#x) }")
    for name in ("_static/grain.png", "_images/card.png"):
        Image.new("RGB", (1146, 600)).save(folder / name)
    return folder


def test_a_good_site_has_no_problems(site: Path) -> None:
    assert publishing.problems(site, PUBLISHED) == []


def test_a_site_without_an_address_is_looked_at_too(site: Path) -> None:
    assert publishing.problems(site, "") == []
    (site / "notebooks" / "one.html").unlink()
    assert "../notebooks/one.html#here does not exist" in publishing.problems(site, "")[0]


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(site: Path) -> None:
        text = (site / name).read_text()
        assert old in text
        (site / name).write_text(text.replace(old, new, 1))

    return change


def small_card(site: Path) -> None:
    Image.new("RGB", (120, 60)).save(site / "_images" / "card.png")


ONE = "notebooks/one.html"
LINK = 'href="../book/preface.html"'
FAULTS = {
    "a page is gone": (
        lambda site: (site / "book" / "preface.html").unlink(),
        "index.html: book/preface.html does not exist",
    ),
    "a picture is gone": (
        lambda site: (site / "_static" / "grain.png").unlink(),
        "_static/look.css: grain.png#x does not exist",
    ),
    "a style sheet is gone": (
        lambda site: (site / "_static" / "look.css").unlink(),
        f"{ONE}: ../_static/look.css does not exist",
    ),
    "the name is written in capitals": (
        edit(ONE, LINK, 'href="../book/Preface.html"'),
        f"{ONE}: ../book/Preface.html does not exist",
    ),
    "an anchor is gone": (
        edit(ONE, 'id="here"', 'id="there"'),
        f"{ONE}: #here has no such anchor",
    ),
    "a link from the root of the host": (
        edit(ONE, LINK, 'href="/book/preface.html"'),
        # Below the host's root /book/ is the whole book, and no longer the folder of this page.
        f"{ONE}: /book/preface.html does not exist",
    ),
    "a link out of the folder": (
        edit(ONE, LINK, 'href="../../book2/preface.html"'),
        f"{ONE}: ../../book2/preface.html leaves the folder in which the book is published",
    ),
    "a link to where it is published": (
        edit(ONE, LINK, f'href="{PUBLISHED}book/preface.html"'),
        f"{ONE}: {PUBLISHED}book/preface.html leads to the published site, also from a copy of it",
    ),
    "a link to this machine": (
        edit(ONE, LINK, 'href="http://127.0.0.1:8000/"'),
        f"{ONE}: http://127.0.0.1:8000/ is on the machine that built the book",
    ),
    "a link to a file": (
        edit(ONE, LINK, 'href="file:///home/somebody/preface.html"'),
        f"{ONE}: file:///home/somebody/preface.html is a file of the machine",
    ),
    "a script from another site": (
        edit(ONE, "</head>", '<script src="https://cdn.example/x.js"></script></head>'),
        f"{ONE}: https://cdn.example/x.js is loaded from another site",
    ),
    "a hidden file": (
        edit(ONE, LINK, 'href="../.hidden/notes.html"'),
        f"{ONE}: ../.hidden/notes.html is hidden, and is left out where a site is uploaded",
    ),
    "Jekyll is asked": (
        lambda site: (site / ".nojekyll").unlink(),
        ".nojekyll is missing, and without it Jekyll leaves _images, _static out",
    ),
    "no canonical address": (
        edit(ONE, 'rel="canonical"', 'rel="help"'),
        f"{ONE}: its canonical address is missing",
    ),
    "the canonical address of another page": (
        edit(ONE, f'canonical" href="{PUBLISHED}{ONE}', f'canonical" href="{PUBLISHED}index.html'),
        f"{ONE}: its canonical address is {PUBLISHED}index.html",
    ),
    "the index of another site": (
        edit("index.html", f'canonical" href="{PUBLISHED}', 'canonical" href="https://x.example/'),
        "index.html: its canonical address is https://x.example/book/preface.html",
    ),
    "search engines are sent away": (
        edit(ONE, "</head>", '<meta name="robots" content="noindex, follow"></head>'),
        f"{ONE}: tells search engines to leave it out (robots: noindex)",
    ),
    "so they are by robots.txt": (
        lambda site: (site / "robots.txt").write_text("User-agent: *\nDisallow: /\n"),
        "robots.txt tells search engines to leave the whole site out",
    ),
    "no card": (
        edit(ONE, "og:image", "og:picture"),
        f"{ONE}: its social card lacks og:image",
    ),
    "the card of another page": (
        edit(ONE, f'og:url" content="{PUBLISHED}', f'og:url" content="{PUBLISHED}old/'),
        f"{ONE}: its social card is that of {PUBLISHED}old/{ONE}",
    ),
    "the card's picture is gone": (
        edit(ONE, "_images/card.png", "_images/gone.png"),
        f"{ONE}: the picture of its social card is nowhere on the site",
    ),
    "the card's picture is small": (
        small_card,
        f"{ONE}: the picture of its social card is 120 x 60 points, too small",
    ),
    "the card's picture is a drawing": (
        lambda site: (site / "_images" / "card.png").write_text("<svg/>"),
        f"{ONE}: the picture of its social card is no PNG",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_found(site: Path, fault: str) -> None:
    plant, expected = FAULTS[fault]
    plant(site)
    found = publishing.problems(site, PUBLISHED)
    assert any(line.startswith(expected) for line in found), found


def test_a_folder_in_which_nothing_was_built(tmp_path: Path) -> None:
    [line] = publishing.problems(tmp_path, PUBLISHED)
    assert "`make book`" in line


@pytest.mark.parametrize(
    ("config", "repository", "site"),
    [
        ("repository: {url: ''}", "", ""),
        ("title: none", "", ""),
        (
            "repository: {url: 'https://github.com/Owner/slow.book/'}",
            "https://github.com/Owner/slow.book",
            "https://owner.github.io/slow.book/",
        ),
        (
            "repository: {url: https://github.com/Owner/owner.github.io.git}",
            "https://github.com/Owner/owner.github.io",
            "https://owner.github.io/",
        ),
        ("repository: {url: https://codeberg.org/o/b}", "https://codeberg.org/o/b", ""),
        (
            "repository: {url: https://codeberg.org/o/b}\nhtml: {baseurl: https://book.example}",
            "https://codeberg.org/o/b",
            "https://book.example/",
        ),
    ],
)
def test_one_line_says_where_all_is(
    tmp_path: Path, config: str, repository: str, site: str
) -> None:
    (tmp_path / "_config.yml").write_text(config)
    assert address.of_repository(tmp_path) == repository
    assert address.of_site(tmp_path) == site


# Addresses that stay


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a book whose list has a page, an anchor on it, and another page."""
    listed = "# What stays.\n\nnotebooks/one.html\nnotebooks/one.html#here\nbook/preface.html\n"
    (tmp_path / "book").mkdir()
    (tmp_path / permanent.LIST).write_text(listed)
    return tmp_path


def test_what_is_there_is_not_lost(root: Path, site: Path) -> None:
    assert permanent.find_lost(root, site) == []


def test_what_is_gone_is_named(root: Path, site: Path) -> None:
    edit(ONE, 'id="here"', 'id="there"')(site)
    (site / "book" / "preface.html").unlink()
    gone = [line.split()[1] for line in permanent.find_lost(root, site)]
    assert gone == [f"{ONE}#here", "book/preface.html"]


def test_a_page_that_moved_leads_on(root: Path, site: Path, browser) -> None:
    (site / "notebooks" / "one.html").rename(site / "notebooks" / "two.html")
    for file in site.rglob("*.html"):
        file.write_text(file.read_text().replace("one.html", "two.html"))
    listed = root / permanent.LIST
    moved = listed.read_text().replace(f"{ONE}\n", f"{ONE} -> notebooks/two.html#here\n")
    listed.write_text(moved.replace(f"{ONE}#here\n", f"{ONE}#here -> notebooks/two.html#here\n"))
    assert len(permanent.find_lost(root, site)) == 2
    permanent.lead_on(root, site)
    assert permanent.find_lost(root, site) == []
    assert publishing.problems(site, PUBLISHED) == []
    with browser.new_page() as tab:
        tab.goto((site / ONE).as_uri())
        tab.wait_for_url("**/notebooks/two.html#here")


def test_what_was_on_a_page_that_moved_is_led_to_as_well(root: Path, site: Path, browser) -> None:
    (site / "notebooks" / "one.html").rename(site / "notebooks" / "two.html")
    listed = root / permanent.LIST
    moved = listed.read_text().replace(f"{ONE}\n", f"{ONE} -> notebooks/two.html\n")
    listed.write_text(moved.replace(f"{ONE}#here\n", f"{ONE}#here -> notebooks/two.html#here\n"))
    permanent.lead_on(root, site)
    with browser.new_page() as tab:
        tab.goto((site / ONE).as_uri() + "#here")
        tab.wait_for_url("**/notebooks/two.html#here")


def test_what_moved_to_another_page_has_a_link_where_it_was(root: Path, site: Path) -> None:
    edit(ONE, 'id="here"', 'id="there"')(site)
    edit(ONE, 'href="#here"', 'href="#there"')(site)
    for name in ("book/preface.html", ONE):
        edit(name, "one.html#here", "one.html#there")(site)
    listed = root / permanent.LIST
    listed.write_text(listed.read_text().replace("#here\n", "#here -> book/preface.html#here\n"))
    permanent.lead_on(root, site)
    assert (
        '<p class="cb-moved" id="here"><a href="../book/preface.html#here">'
        in (site / ONE).read_text()
    )
    assert permanent.find_lost(root, site) == [] == publishing.problems(site, PUBLISHED)


def test_what_a_machine_file_has_no_answer_to_keeps_its_address(root: Path, site: Path) -> None:
    """Also what has moved there; a page that is gone altogether stays lost."""
    edit(ONE, 'id="here"', 'id="there"')(site)
    listed = root / permanent.LIST
    listed.write_text(listed.read_text() + f"book/old.html -> {ONE}#moved\nbook/gone.html\n")
    permanent.lead_on(root, site)
    assert len(permanent.find_lost(root, site)) == 3 and len(publishing.problems(site, "")) == 4
    permanent.say_why(root, site, "Not in the file.")
    [lost] = permanent.find_lost(root, site)
    assert "book/gone.html" in lost and publishing.problems(site, "") == []
    said = '<p><span id="here"></span><span id="moved"></span>Not in the file.</p>'
    assert said in (site / ONE).read_text()
    assert "Not in the file" not in (site / "book" / "preface.html").read_text()


# As Jupyter Book writes them


@pytest.fixture(scope="module")
def unpublished(tmp_path_factory) -> Path:
    """A book that is published nowhere, as ours is; its preface has a sentence for when it is."""
    root = tmp_path_factory.mktemp("unpublished") / "book"
    write_model(root)
    for name in ("one", "two"):
        write(root, name, "print('It is.')", prose="A card says this.")
    config = root / "_config.yml"
    config.write_text(config.read_text().replace(address.of_repository() or '""', '""'))
    with (root / "book" / "preface.md").open("a") as preface:
        preface.write("\n:::{only} published\nClick the rocket, or take {{ start }}.\n:::\n")
    build(root)
    return root


def test_nothing_is_offered_that_does_not_exist(unpublished: Path) -> None:
    site = unpublished / "_build" / "html"
    text = "".join(page.read_text() for page in site.rglob("*.html"))
    assert "mybinder" not in text and "rocket" not in text and "canonical" not in text
    assert (site / ".nojekyll").exists()
    assert publishing.problems(site, "") == []


@pytest.mark.slow
def test_pages_say_where_they_are_published(unpublished: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(unpublished, tmp_path / "book"))
    config = root / "_config.yml"
    config.write_text(config.read_text().replace('url: ""', "url: https://github.com/owner/book"))
    build(root)
    site = root / "_build" / "html"
    assert publishing.problems(site, PUBLISHED) == []
    preface = (site / "book" / "preface.html").read_text()
    start = "https://mybinder.org/v2/gh/owner/book/release?urlpath=lab/tree/start.ipynb"
    assert "Click the rocket, or take" in preface and f'href="{start}"' in preface
    chapter = (site / "notebooks" / "one.html").read_text()
    assert "https://mybinder.org/v2/gh/owner/book/release?urlpath=lab/tree/notebooks/one" in chapter
    # One picture stands for all of them, large.
    drawn = f'<meta property="og:image" content="{PUBLISHED}_static/card.png"'
    assert drawn in chapter and 'content="summary_large_image"' in chapter
    with Image.open(site / "_static" / "card.png") as picture:
        assert picture.size == (card.WIDTH, card.HEIGHT)
    # And under another address, nothing of it is right.
    found = publishing.problems(site, "https://owner.github.io/other/")
    assert any("its canonical address is" in line for line in found)


def test_the_card_shows_what_was_recorded_and_is_the_same_each_time(tmp_path: Path) -> None:
    drawn = card.draw("A book")
    known = {each.combination.parts: each for each in explorer.recorded()
             if (each.combination.python, each.scheme, each.n) == ("2.7", "https", 10)}  # fmt: skip
    shown = [known[parts] for parts in ((), ("pyopenssl",))]
    assert [each.verdict for each in shown] == ["concurrent", "serial"]
    for axes, each in zip(drawn.figure.axes, shown, strict=True):
        ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
        assert ends == pytest.approx(list(each.frame.groupby("page")["end_s"].max()))
        assert f"{each.wall_s:.2f} s" in drawn.alt
    # All its words have room.
    edge = drawn.figure.bbox
    for text in drawn.figure.texts:
        box = text.get_window_extent()
        assert box.x0 >= edge.x0 and box.x1 <= edge.x1, text.get_text()
    one, two = tmp_path / "one.png", tmp_path / "two.png"
    card.write(one, "A book")
    card.write(two, "A book")
    assert one.read_bytes() == two.read_bytes()


def test_the_archive_opens_from_a_folder_without_a_network(
    unpublished: Path, browser, tmp_path: Path
) -> None:
    file = tmp_path / "a-book.zip"
    assert publishing.pack(unpublished / "_build" / "html", file) == file.stat().st_size
    shutil.unpack_archive(file, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a-book.zip", "a-book"}
    complaints: list[str] = []
    with browser.new_context(offline=True) as context, context.new_page() as tab:
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on(
            "requestfailed", lambda request: complaints.append(f"{request.failure} {request.url}")
        )
        tab.goto((tmp_path / "a-book" / "index.html").as_uri())
        tab.wait_for_url("**/book/preface.html")
        tab.get_by_role("link", name="A chapter").first.click()
        tab.wait_for_url("**/notebooks/one.html")
        assert "It is." in tab.locator(".cell_output").inner_text()
        script = unquote(urlsplit(tab.locator("a[href$='one.py']").evaluate("it => it.href")).path)
    assert "print('It is.')" in Path(script).read_text()
    # What a page still asked for when the next one came is no loss.
    assert [each for each in complaints if "ERR_ABORTED" not in each] == []


def test_there_is_nothing_to_pack(tmp_path: Path) -> None:
    with pytest.raises(BookFailed, match="`make book` builds it"):
        publishing.pack(tmp_path, tmp_path / "book.zip")


# Chapters as scripts

AWAITS = "import asyncio\nasync def book(i):\n    await asyncio.sleep(0)\n    return i"


@pytest.mark.parametrize(
    "path", sorted(places.NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem
)
def test_each_chapter_is_a_script(path: Path) -> None:
    text = chapter_scripts.script_of(contents.read(path), path)
    compile(text, path.name, "exec")
    assert path.with_suffix(".py").name in text


def test_a_script_does_and_shows_what_the_notebook_does(tmp_path: Path) -> None:
    cells = [
        "from casebook import words\n6 * 7  # a product",
        "print('only once')",
        "'silent';",
        "text = 'as it is: '\n!echo {text}'shell'",
        AWAITS,
        "found = [await book(i) for i in (3, 4)]",
        "sum(\n    found\n)",
        "words.number(1.5)",
    ]
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_markdown_cell("# A *title*\n\nWords.\n\n- more")]
    notebook.cells += map(nbformat.v4.new_code_cell, cells)
    script = tmp_path / "chapter.py"
    script.write_text(chapter_scripts.script_of(notebook, tmp_path / "chapter.ipynb"))
    ipython = Path(sys.executable).with_name("ipython")
    # Unbuffered, so that a pipe gets the lines in the order in which a terminal would.
    env = os.environ | {"HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    done = run(ipython, "--quick", "--no-banner", script, env=env)
    said = [line for line in done.stdout.splitlines() if line]
    assert said == ["42", "only once", "as it is: shell", "7", "'1.50'"], done.stderr
