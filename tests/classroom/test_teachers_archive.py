"""The teacher's archive: slides that need nothing from outside, and answers that are on no page."""

import re
import shutil
from html import unescape

import nbformat
import pytest
from here import needs

from casebook import places
from casebook.classroom import archive, grading, solutions
from casebook.errors import BookFailed
from casebook.pages.contents import Book

NOTEBOOK = places.NOTEBOOKS / "21_one_slow_book.ipynb"


class OneChapter(Book):
    """A book of one chapter, which was not executed."""

    def notebooks(self):
        return [NOTEBOOK]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The archive, of one chapter as it is in git."""
    into = tmp_path_factory.mktemp("teacher") / "teacher"
    archive.write(into, OneChapter(into.parent))
    return into


@needs("npm")
def test_slides_are_shown_from_a_folder_with_nothing_from_outside(made, browser):
    asked, errors = [], []
    seen = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"}
    with browser.new_context(offline=True, **seen) as context:
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((made / "slides" / f"{NOTEBOOK.stem}.html").as_uri())
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        assert page.evaluate("Reveal.getTotalSlides()") >= 10
        first = page.inner_text("section.present").casefold()
        assert "one slow book" in first and "you need chapter" in first
        # The slides are white, and so are the pictures on them.
        assert (
            page.evaluate("getComputedStyle(document.querySelector('img')).colorScheme") == "light"
        )
        page.keyboard.press("ArrowRight")
        page.wait_for_function("Reveal.getIndices().h === 1")
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert any(url.endswith("reveal.js/dist/reveal.js") for url in asked)


#: What scrolls on the slide that is shown, and the lowest point of its text.
SCROLLS = """() => [...Reveal.getCurrentSlide().querySelectorAll('*')].filter(element => {
    const style = getComputedStyle(element);
    return /auto|scroll/.test(style.overflowY) && element.scrollHeight > element.clientHeight;
}).map(element => `${element.tagName} ${element.className}`)"""
LOWEST = """() => Math.max(...[...Reveal.getCurrentSlide().querySelectorAll('*')].map(
    element => element.getBoundingClientRect().bottom))"""


@needs("npm")
def test_nothing_on_a_slide_scrolls_or_is_cut_off(made, browser):
    """A long program is drawn smaller, and so is a long title."""
    cell = nbformat.v4.new_code_cell("listing")
    lines = "\n".join(f"line {number}{' and on' * 40 * (number == 3)}" for number in range(160))
    listing = {"text/html": f"<pre><code>{lines}</code></pre>"}
    cell.outputs = [nbformat.v4.new_output("display_data", data=listing)]
    title = nbformat.v4.new_markdown_cell(f"# A title {'that goes on ' * 12}")
    cells = [title, nbformat.v4.new_markdown_cell("A sentence."), cell]
    file = made / "slides" / "long.html"
    file.write_text(archive.slides_of(nbformat.v4.new_notebook(cells=cells)), encoding="utf-8")
    with browser.new_page(viewport={"width": 1280, "height": 720}) as page:
        page.goto(file.as_uri())
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        seen = ""
        for number in range(page.evaluate("Reveal.getTotalSlides()")):
            page.evaluate("number => Reveal.slide(number)", number)
            seen += page.evaluate("Reveal.getCurrentSlide().innerText")
            assert page.evaluate(SCROLLS) == []
            assert page.evaluate(LOWEST) <= 720
        assert "A title" in seen and "line 159" in seen


@needs("npm")
def test_the_archive_has_all_labs_and_all_answers(made):
    for lab in grading.LABS:
        assert (made / "answers" / lab / "right.py").exists()
        assert (made / "labs" / lab / "answer.py").exists()
    assert made.with_suffix(".zip").exists()


def test_the_index_names_chapters_by_their_numbers_and_the_evidence_without():
    titles = {"03_monkeys": "Monkeys", "a_doctor": "How often is it right?", "20_x": "<b>"}
    index = archive.index(titles)
    named = re.findall(r'<a href="slides/(\w+)\.html">(.*?)</a>', index)
    assert named == [
        ("03_monkeys", "3 Monkeys"),
        ("a_doctor", "How often is it right?"),
        ("20_x", "20 &lt;b&gt;"),
    ]


@needs("npm")
def test_the_index_leads_to_all_of_it(made):
    index = (made / "index.html").read_text()
    links = re.findall(r'href="([^"]+)"', index)
    assert f"slides/{NOTEBOOK.stem}.html" in links and len(links) > 10
    assert [link for link in links if not (made / link).exists()] == []
    solved = (made / "answers" / "exercises.html").read_text()
    assert solved.count("<strong>Solution</strong>") == NOTEBOOK.read_text().count(
        "{solution-start}"
    )
    words = " ".join(unescape(re.sub(r"<[^>]+>", "", solved)).split())
    assert "21 One slow book" in words
    for cells in solutions.cells_of(nbformat.read(NOTEBOOK, as_version=4)):
        code = next(cell.source for cell in cells if cell.cell_type == "code")
        assert " ".join(code.split()) in words
    assert "{solution" not in solved and "{exercise" not in solved and 'src="http' not in solved
    cases = sorted((made / "whodunit" / "class").iterdir())
    key = (made / "whodunit" / "culprits.txt").read_text().splitlines()
    assert [case.name for case in cases] == [line.split()[0] for line in key]
    assert len({line.split()[1] for line in key}) > 3


@needs("npm")
def test_the_teachers_pages_are_read_in_a_browser_and_their_links_lead_somewhere(made):
    pages = [made / "instructors.html", made / "whodunit.html", *made.glob("lab_*.html")]
    assert len(pages) == 2 + len(grading.LABS) and not [*made.glob("*.md")]
    for page in pages:
        text = page.read_text()
        links = [link for link in re.findall(r'href="([^"]+)"', text) if ":" not in link]
        assert [link for link in links if not (made / link).exists()] == []
        assert "<h1" in text and "](" not in text and ":::" not in text
    text = pages[0].read_text()
    assert "<table" in text and f"slides/{NOTEBOOK.stem}.html" in text
    words = " ".join(re.sub(r"<[^>]+>", "", text).split())
    assert "whodunit.html" in text and "-m casebook ready 1 2 3" in words


def test_outputs_are_those_of_the_last_build_and_no_others(tmp_path):
    book = OneChapter(tmp_path)
    saved = nbformat.read(NOTEBOOK, as_version=4)
    next(cell for cell in saved.cells if cell.cell_type == "code").outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="making environment"),
        nbformat.v4.new_output("stream", text="of the build"),
    ]
    assert not any(cell.get("outputs") for cell in archive.built(book, NOTEBOOK).cells)
    book.executed.mkdir(parents=True)
    nbformat.write(saved, book.executed / NOTEBOOK.name)
    outputs = [each for cell in archive.built(book, NOTEBOOK).cells
               for each in cell.get("outputs", [])]  # fmt: skip
    assert [each.text for each in outputs] == ["of the build"]


def test_a_profile_has_a_slide_of_its_own_that_loads_when_it_is_shown():
    shown = nbformat.v4.new_code_cell("…", metadata={"tags": ["plumbing", "hide-input"]})
    record = {archive.media.PROFILE: {"name": "stage-2-py37", "title": "Slow"}}
    shown.outputs = [nbformat.v4.new_output("display_data", data=record)] * 2
    text = archive.slides_of(nbformat.v4.new_notebook(cells=[shown]))
    assert text.count('<iframe data-src="../profiles/stage-2-py37.html"') == 2
    assert len(re.findall(r"<section[^>]*><section", text)) == 2


def test_slides_stop_before_the_solutions_and_outputs_stand_without_folded_code():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if "evidence" in cell.metadata.get("tags", []):
            cell.outputs = [nbformat.v4.new_output("stream", text="what was decided")]
    text = archive.slides_of(notebook)
    assert "what was decided" in text and "had = before_the_slow" not in text
    assert "solution-start" not in text and "{admonition}" not in text
    assert "bookstore.loops.side_by_side" in nbformat.read(NOTEBOOK, as_version=4).cells[4].source


def test_slides_end_at_a_heading_inside_a_cell_but_for_profiles():
    cell = nbformat.v4.new_code_cell("…", metadata={"tags": ["plumbing", "hide-input"]})
    record = {archive.media.PROFILE: {"name": "stage-2-py37", "title": "A & B"}}
    cell.outputs = [nbformat.v4.new_output("display_data", data=record)]
    texts = ("# A lock", "## What we learned\nMuch.\n\n## Exercises\nWhose?", "It is hers.")
    cells = [*map(nbformat.v4.new_markdown_cell, texts), cell, nbformat.v4.new_code_cell("hers()")]
    text = archive.slides_of(nbformat.v4.new_notebook(cells=cells))
    assert "Much." in text and "A &amp; B</p>" in text
    assert not [word for word in ("Exercises", "Whose", "hers") if word in text]


def test_slides_have_no_link_to_a_page_of_the_book_and_no_role():
    link = '<a class="cb-mark" href="../book/claims.html#claim-a" title="8 rounds">holds</a>'
    found = nbformat.v4.new_code_cell("claim(…)", metadata={"tags": ["evidence", "hide-input"]})
    found.outputs = [nbformat.v4.new_output("display_data", data={"text/html": link})]
    words = "# A\n\nTake {download}`doctor.py <../doctor.py>`.\n\n```{raw} html\n:file: a.html\n```"
    cells = [nbformat.v4.new_markdown_cell(words), found]
    text = archive.slides_of(nbformat.v4.new_notebook(cells=cells))
    assert '<a class="cb-mark" title="8 rounds">holds</a>' in text
    assert "Take <code>doctor.py</code>." in text
    assert not [word for word in ("claims.html", "{download}", "{raw}", "a.html") if word in text]


def test_a_title_and_a_finding_do_not_stand_alone():
    found = nbformat.v4.new_code_cell("claim(…)", metadata={"tags": ["evidence", "hide-input"]})
    found.outputs = [nbformat.v4.new_output("stream", text="It is the lock.")]
    cells = [*map(nbformat.v4.new_markdown_cell, ("# A lock", "Whose?")), found]
    cells.append(nbformat.v4.new_markdown_cell("So take the lock away."))
    text = archive.slides_of(nbformat.v4.new_notebook(cells=cells))
    _, first, second = re.split(r"<section[^>]*><section[^>]*>", text)
    assert "A lock" in first and "Whose?" in first
    assert "It is the lock." in second and "So take the lock away." in second


def test_another_package_than_that_one_is_refused(monkeypatch, tmp_path):
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho changed > reveal.js-4.6.1.tgz\n")
    npm.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(npm))
    with pytest.raises(BookFailed, match="digest differs"):
        archive.package()


def test_no_answer_is_on_a_page():
    pages = [*places.ROOT.glob("book/*.md"), *grading.folder("x").parent.glob("*/*")]
    text = "".join(
        page.read_text(encoding="utf-8")
        for page in pages
        if page.is_file() and page.suffix in (".md", ".py")
    )
    for answer in ('SINCE = "archive"', "extract_from_urllib3()\n\n\nBECAUSE", "slow[lanes - 1]"):
        assert answer not in text
