"""Every page of the built book in a browser: wide and on a phone, light and dark."""

import ast
import functools
import io
import json
import re
import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import nbformat
import pytest
import yaml
from article import Article
from coloraide import Color
from here import BREADTH, Quiet, serving
from PIL import Image
from playwright.sync_api import Browser, Locator, Page

from casebook import pages, places
from casebook.charts import snakeviz
from casebook.findings import media
from casebook.findings.sentences import Sentence
from casebook.laboratory.decisions import HOLDS, NOT_HERE, OTHERWISE, UNDECIDED
from casebook.pages import address as addresses
from casebook.pages import (
    building,
    execution,
    folding,
    permanent,
    records,
    rendering,
    resting,
)
from casebook.pages.contents import Book
from casebook.pages.execution import Chapter

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()
#: All rules but that of contrasts, on everything; the last is one that axe counts as experimental.
#: Contrasts, which axe takes minutes for on a long page, on one text of each look: the same colour
#: and size before the same grounds. Style sheets are not fetched again, and what is as it should be
#: is not described, which took most of the time on the longest page.
AXE_RUN = """(async () => {
    const rules = {'color-contrast': {enabled: false},
                   'label-content-name-mismatch': {enabled: true}};
    const all = await axe.run(document, {preload: false, rules, resultTypes: ['violations']});
    const looks = new Map();
    for (const node of document.body.querySelectorAll('*')) {
        const says = [...node.childNodes].some(one => one.nodeType === 3 && one.data.trim());
        if (!node.checkVisibility() || !(says || node.matches('input, select'))) continue;
        const {color, fontSize, fontWeight, textShadow} = getComputedStyle(node);
        const look = [color, fontSize, fontWeight, textShadow];
        for (let behind = node; behind; behind = behind.parentElement) {
            const {backgroundColor, backgroundImage, opacity} = getComputedStyle(behind);
            if (backgroundColor !== 'rgba(0, 0, 0, 0)') look.push(backgroundColor);
            if (backgroundImage !== 'none') look.push(backgroundImage);
            if (opacity !== '1') look.push(opacity);
        }
        if (!looks.has(look.join())) looks.set(look.join(), node);
    }
    const include = [...looks.values()];
    if (!include.length) return all.violations;
    const contrasts = await axe.run({include}, {preload: false, runOnly: ['color-contrast']});
    return [...all.violations, ...contrasts.violations];
})()"""
WIDE, PHONE = 1280, 390

DIAGRAMS = places.ROOT / "book" / "_static" / "diagrams"
LAYERS = sorted(DIAGRAMS.glob("layers-*.svg"))
CHAPTERS = sorted(places.NOTEBOOKS.glob("[0-9]*.ipynb"))
#: What is lit, where it is too much to be named.
MANY = ("all of them", "everything below your script")
#: Leaves of a diagram its words and boxes; of the lit ones there may be more than ground.
NO_LINES = ".diagram.diagram.diagram { --line: none } .diagram.diagram.diagram .lit { fill: none }"
#: The words of a diagram that have no room: [text, what is in its way].
CROWDED = """(() => {
    const boxes = selector => [...document.querySelectorAll(selector)].map(
        node => ({node, ...node.getBoundingClientRect().toJSON()}));
    const meet = (a, b) =>
        a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const within = (a, b) =>
        a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
    const found = [];
    const texts = boxes('text');
    for (const text of texts) {
        const say = what => found.push([text.node.textContent, what]);
        if (!within(text, boxes('svg')[0])) say('the edge');
        for (const box of boxes('rect')) if (meet(text, box) && !within(text, box)) say('a box');
        for (const other of texts) if (other !== text && meet(text, other)) say('other words');
        for (const way of document.querySelectorAll('path.way, path.cut')) {
            const matrix = way.getScreenCTM();
            for (let at = 0; at <= way.getTotalLength(); at += 1) {
                const point = way.getPointAtLength(at).matrixTransform(matrix);
                const spot = {left: point.x, right: point.x, top: point.y, bottom: point.y};
                if (meet(text, spot)) { say('a line'); break; }
            }
        }
    }
    return found;
})()"""

#: Opens all that can be opened, and names what then has to be scrolled sideways, but for code. A
#: few pixels are left: on another machine a number may be a digit longer.
SIDEWAYS = """(() => {
    document.documentElement.dataset.view = 'checking';
    for (const fold of document.querySelectorAll('details')) fold.open = true;
    for (const box of document.querySelectorAll('.toggle-hidden'))
        box.classList.remove('toggle-hidden');
    const over = node => node.scrollWidth - node.clientWidth;
    return [...document.querySelectorAll('article *')].filter(node =>
        node.clientWidth > 1 && over(node) > 12 && node.checkVisibility()
        && getComputedStyle(node).overflowX !== 'visible' && !node.closest('pre, .highlight')
    ).map(node => `${over(node)} px to scroll: ${node.textContent.trim().slice(0, 80)}`);
})()"""

#: A sheet of paper inside its margins, of the smaller size of the two: pixels, 96 to an inch.
SHEET = {"width": 740, "height": 940}
#: What paper would cut off, or leave an empty page before, since it has to be on one and is higher.
ON_PAPER = """(() => {
    const found = [], {innerWidth: width, innerHeight: height} = window;
    for (const node of document.querySelectorAll('article *')) {
        if (!node.checkVisibility() || node.closest('svg *')) continue;
        const style = getComputedStyle(node), box = node.getBoundingClientRect();
        const says = `${node.localName}.${node.className} ${node.textContent.trim().slice(0, 60)}`;
        if (/auto|scroll/.test(style.overflowX + style.overflowY)) found.push(`scrolls: ${says}`);
        if (box.right > width + 1 && style.position !== 'absolute') found.push(`cut: ${says}`);
        if (style.breakInside === 'avoid' && box.height > height) found.push(`high: ${says}`);
    }
    return found;
})()"""

#: What a browser says before and after it prints.
PRINTED = "dispatchEvent(new Event('{}'))"
#: The ids of some nodes.
IDS = "nodes => nodes.map(node => node.id)"


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A page in the browser, wide and light."""
    with browser.new_page(viewport={"width": WIDE, "height": 900}, color_scheme="light") as page:
        yield page


@pytest.fixture(scope="module")
def site(pytestconfig: pytest.Config) -> Path:
    """The folder of the built book, brought up to date first.

    Where every chapter has run as it is, the pages alone are written anew. Where one has not,
    `make test-all` builds the book, and `make test`, which executes no chapter, skips.
    """
    book = Book(places.ROOT)
    if not building.is_up_to_date(book):
        if "not slow" in pytestconfig.getoption("markexpr"):
            pytest.skip("there is no built book of these files: `make book`, or `make test-all`")
        return pages.build().parent
    chapters = execution.chapters(book)
    first_page, problems = rendering.render(book, chapters, records.collect(book, chapters))
    assert problems == []
    return first_page.parent


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the built book is served, with a slash at the end."""
    with serving(functools.partial(Quiet, directory=str(site))) as url:
        yield url + "/"


def pages_of(site: Path) -> list[str]:
    """The pages by their names, but for those that only lead on to where a page is today."""
    moved = {
        line.partition(" -> ")[0]
        for line in (places.ROOT / permanent.LIST).read_text().splitlines()
        if "->" in line
    }
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return [name for name in found if not name.startswith("_static/") and name not in moved]


def chapters_of(site: Path) -> list[tuple[Path, Path]]:
    """Each notebook, and its page."""
    paths = sorted(places.NOTEBOOKS.glob("*.ipynb"))
    return [(path, site / "notebooks" / path.with_suffix(".html").name) for path in paths]


def test_no_cell_lacks_an_answer(site: Path) -> None:
    """Neither of the story, measured here, nor of the laboratory, from a machine's file."""
    executed = sorted(site.with_name("executed").glob("*.ipynb"))
    assert len(executed) == len(chapters_of(site))
    for path in executed:
        assert execution.not_in_file(nbformat.read(path, as_version=4)) == [], path.stem


#: Each width and each theme once, with axe; the two other pairs are for the night.
LOOKS = [
    (WIDE, "light"),
    (PHONE, "dark"),
    *(pytest.param(*look, marks=BREADTH) for look in [(WIDE, "dark"), (PHONE, "light")]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_every_page(site: Path, address: str, browser: Browser, width: int, theme: str) -> None:
    """No page scrolls sideways, reports an error, fetches anything elsewhere or has an axe finding.

    On a phone no box and no fold scrolls sideways.
    """
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    found = troubles(tab, address)
    for name in pages_of(site):
        if name == "index.html":  # leads on to the preface
            continue
        tab.goto(address + name, wait_until="load")
        seen = too_wide(tab)
        # SnakeViz's pages are its own, with long tables that axe would take minutes for.
        if (width == WIDE) == (theme == "light") and not name.startswith("profiles/"):
            seen += inaccessible(tab)
        if width == PHONE:
            seen += tab.evaluate(SIDEWAYS)
        found += [f"{name}: {each}" for each in seen]
    tab.close()
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def troubles(tab: Page, own: str = "file:") -> list[str]:
    """What a tab complains of from now on, or fetches from elsewhere."""
    found: list[str] = []

    def note(what: str) -> None:
        found.append(f"{tab.url}: {what}")

    tab.on("console", lambda said: said.type == "error" and note(f"console: {said.text}"))
    tab.on("pageerror", lambda error: note(f"script: {error}"))
    tab.on("response", lambda got: got.status >= 400 and note(f"{got.status} for {got.url}"))
    home = (own, "data:", "blob:")
    tab.on("request", lambda asked: asked.url.startswith(home) or note(f"asks {asked.url}"))
    return found


def too_wide(tab: Page) -> list[str]:
    width, window = tab.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    return [f"{width} px wide in a window of {window}"] if width > window else []


def inaccessible(tab: Page) -> list[str]:
    tab.evaluate(AXE)
    return [
        f"{violation['id']}, {len(violation['nodes'])} times: {node['html'][:150]}"
        for violation in tab.evaluate(AXE_RUN)
        for node in violation["nodes"][:1]
    ]


def test_the_first_page_leads_to_the_preface(address: str, tab: Page) -> None:
    tab.goto(address)
    tab.wait_for_url("**/book/preface.html")


def test_a_page_says_what_each_chapter_is_about() -> None:
    """The first table is the story's, the second the laboratory's; no chapter is left out."""
    page = (places.ROOT / "book" / "how_to_read.md").read_text()
    tables = page.split("| chapters | you will know |\n|---|---|\n")[1:]
    rows = [re.findall(r"(?m)^\| ([\d, to]+) \|", table.partition("\n\n")[0]) for table in tables]
    numbers = [[number for row in each for number in numbers_of(row)] for each in rows]
    contents = yaml.safe_load((places.ROOT / "_toc.yml").read_text())
    story, *laboratory = (len(p["chapters"]) for p in contents["parts"] if p.get("numbered"))
    last = story + sum(laboratory)
    assert numbers == [[*range(1, story + 1)], [*range(story + 1, last + 1)]]


def numbers_of(row: str) -> list[int]:
    """Return the chapters that a row names: "1 to 4", "5, 6"."""
    first, *others = map(int, re.findall(r"\d+", row))
    return [*range(first, others[0] + 1)] if " to " in row else [first, *others]


def test_each_diagram_is_described_in_its_chapter() -> None:
    """JupyterLab shows the alternative text, the pages have the description in the drawing."""
    shown = [image for path in places.NOTEBOOKS.glob("*.ipynb") for image in diagrams_in(path)]
    described = []
    for path in DIAGRAMS.glob("*.svg"):
        drawing = ElementTree.parse(path).getroot()
        assert drawing.findtext("{*}title") and drawing.findtext("{*}desc"), path.name
        if path not in LAYERS:  # of which the chapters say in their own words what is lit
            described.append((drawing.findtext("{*}desc"), path.name))
    assert sorted(image for image in shown if DIAGRAMS / image[1] not in LAYERS) == sorted(
        described
    )
    assert len(described) >= 5


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_each_chapter_opens_with_its_layers_which_say_what_is_lit(path: Path) -> None:
    drawing = DIAGRAMS / f"layers-{path.stem[:2]}.svg"
    if not drawing.exists() and is_about_something_else(path):
        return  # the layers between a script and a server mean nothing there
    ((alt, name),) = [each for each in diagrams_in(path) if DIAGRAMS / each[1] in LAYERS]
    assert name == drawing.name and len(alt) > 30
    lit = re.findall(r'class="lit".*\n.*?>(.*)</text>', drawing.read_text(encoding="utf-8"))
    _, named = ElementTree.parse(drawing).findtext("{*}title").split("lit: ")
    assert named in MANY or sorted(re.split(", | and ", named)) == sorted(lit)


def test_all_layers_are_drawn_in_one_style() -> None:
    styles = {re.search(r"(?s)<style>.*?</style>", path.read_text())[0] for path in LAYERS}
    assert len(LAYERS) > 20 and len(styles) == 1


def is_about_something_else(path: Path) -> bool:
    """Whether a chapter is of a case that has nothing to do with the first one."""
    named = re.findall(r"from casebook\.cases import ([\w, ]+)", path.read_text(encoding="utf-8"))
    cases = [places.PACKAGE / "cases" / name for name in ", ".join(named).split(", ") if name]
    modules = [module.read_text(encoding="utf-8") for case in cases for module in case.glob("*.py")]
    return bool(modules) and not any("casebook.cases.fetching" in each for each in modules)


def diagrams_in(path: Path) -> list[tuple[str, str]]:
    """Alternative text and file name of each diagram in a chapter."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.findall(r"!\[(.*?)\]\(\.\./book/_static/diagrams/(.*?)\)", prose)


@pytest.mark.parametrize("path", sorted(DIAGRAMS.glob("*.svg")), ids=lambda path: path.stem)
def test_the_words_of_a_diagram_have_room(path: Path, tab: Page) -> None:
    """None leaves the drawing or its box, and none lies on another or on an arrow.

    The same holds where the other diagrams of a page bring their own rules.
    """
    drawings = [each.read_text(encoding="utf-8") for each in DIAGRAMS.glob("*.svg")]
    for rules in {re.findall("<style>.*?</style>", each, re.S)[0] for each in drawings}:
        tab.set_content(path.read_text(encoding="utf-8") + rules)
        assert tab.evaluate(CROWDED) == []
    words = tab.locator("text").all_inner_texts()
    assert len(words) >= 5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_diagrams_as_images_follow_the_theme(theme: str, tab: Page, tmp_path: Path) -> None:
    """As in JupyterLab, which says its theme as the colour scheme of its page."""
    other = {"light": "dark", "dark": "light"}[theme]
    images = ""
    for path in DIAGRAMS.glob("*.svg"):
        (tmp_path / path.name).write_text(
            path.read_text().replace("</style>", NO_LINES + "</style>")
        )
        images += f'<p><img src="{path.name}"></p>'
    (tmp_path / "page.html").write_text(f'<html style="color-scheme: {theme}">{images}')
    tab.emulate_media(color_scheme=other)
    tab.goto((tmp_path / "page.html").as_uri())
    for image in tab.locator("img").all():
        assert_drawn(image, theme)


@pytest.mark.nightly
@pytest.mark.breadth
def test_diagrams_follow_the_switch_also_in_a_folder(site: Path, tab: Page) -> None:
    """In both themes, one chapter wide and the next on a phone."""
    for number, (path, page) in enumerate(chapters_of(site)):
        wanted = len(diagrams_in(path))
        if wanted == 0:
            continue
        tab.goto(page.as_uri())
        tab.add_style_tag(content=NO_LINES)
        drawn = tab.locator(".bd-article .diagram[role=img]")
        assert drawn.count() == wanted, path.name
        seen = tab.locator(".bd-article .diagram[role=img]:not(details *)").all()
        assert seen, path.name  # a fold may have more
        tab.set_viewport_size({"width": (WIDE, PHONE)[number % 2], "height": 900})
        for theme in ("light", "dark"):
            tab.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
            for diagram in seen:
                assert_drawn(diagram, theme)


def assert_drawn(shown: Locator, theme: str) -> None:
    """Most of a diagram without lines is the ground of the theme, and its words can be read."""
    picture = Image.open(io.BytesIO(shown.screenshot())).convert("RGB")
    counts = {
        "#{:02x}{:02x}{:02x}".format(*colour): count
        for count, colour in picture.getcolors(maxcolors=picture.width * picture.height)
    }
    ground = max(counts, key=counts.__getitem__)
    assert Color(ground).contrast({"light": "white", "dark": "black"}[theme]) < 2
    words = sum(count for colour, count in counts.items() if Color(colour).contrast(ground) > 4.5)
    assert words / sum(counts.values()) > 0.005


@pytest.mark.slow
def test_marks_and_folds_work_from_a_folder(site: Path, tab: Page) -> None:
    """A fold opens for whoever comes to what is in it.

    A mark leads to its row of the ledger, and that leads back: from a claim and from a published
    row, since all marks are made alike (and all links are looked at when the book is built). So it
    ends with the chapter in which both were followed.
    """
    followed = set()
    for _, page in chapters_of(site):
        tab.goto(page.as_uri())
        folded = tab.locator("details.checks .cb-finding[id]")
        if not folded.count():
            continue
        kinds = {name.partition("-")[0]: name for name in folded.evaluate_all(IDS)}
        name = kinds[min(kinds.keys() - followed, default=min(kinds))]
        assert not tab.locator(f"#{name}").is_visible()
        tab.goto(f"{page.as_uri()}#{name}")
        tab.reload()
        assert tab.locator(f"#{name}").is_visible()
        if name.partition("-")[0] in followed:
            continue
        followed.add(name.partition("-")[0])
        tab.locator(f"#{name} .cb-mark").click()
        tab.wait_for_url(re.compile(rf"book/(claims|published)\.html#{name}$"))
        row = tab.locator(f"tr:has(#{name})")
        assert row.is_visible()
        row.get_by_role("link").last.click()
        tab.wait_for_url(f"{page.as_uri()}#{name}")
        assert tab.locator(f"#{name}").is_visible()
        if followed == {"claim", "published"}:
            break
    assert followed == {"claim", "published"}


#: The findings, folds and captions of a page as they can be seen, but for solutions,
#: which a script folds, and for the explorer, which it draws anew.
SEEN = """[...document.querySelectorAll('.cb-finding, summary, figcaption')]
    .filter(node => !node.closest('.admonition, .explorer'))
    .map(node => node.checkVisibility() ? node.innerText : '')"""
#: What is there for those who check, and not for those who read.
QUIET = (
    "article :is(section.checks, .checking, figure .cb-source, .cb-data, figcaption > .cb-finding, "
    ".cb-run > details.fold > :not(summary), .cb-not-here)"
)
#: What a link can lead to.
LINKED = "article :is(section, .cb-finding)[id]"
#: The code that a page shows, but for a solution's.
CODE = """[...document.querySelectorAll('article .cell_input')]
    .filter(node => node.checkVisibility() && !node.closest('.solution'))
    .map(node => node.innerText)"""


def test_reading_and_checking_are_one_switch_which_every_page_remembers(
    site: Path, browser: Browser, tab: Page
) -> None:
    """A page is read at first, as it is without a script; checked, so is the next, from a folder.

    By keyboard, wide and on a phone.
    """
    plain = browser.new_page(java_script_enabled=False, viewport={"width": WIDE, "height": 900})
    switch, hidden = tab.get_by_role("switch", name="checking"), 0
    for number, (_, page) in enumerate(chapters_of(site)[:8]):
        tab.set_viewport_size({"width": (WIDE, PHONE)[number % 2], "height": 900})
        plain.set_viewport_size(tab.viewport_size)
        for each in (tab, plain):
            each.goto(page.as_uri())
        ids = [each.locator(LINKED).evaluate_all(IDS) for each in (tab, plain)]
        assert ids[0] == ids[1]
        quiet = tab.locator(QUIET)
        if number == 0:
            assert switch.get_attribute("aria-checked") == "false"
        else:  # as it was left on the page before
            assert switch.get_attribute("aria-checked") == "true"
            assert quiet.locator("visible=true").count() > 10
            switch.press("Space")
        assert not quiet.locator("visible=true").count()
        assert tab.evaluate(SEEN) == plain.evaluate(SEEN) and too_wide(tab) == []
        assert tab.get_by_text("how this was measured").locator("visible=true").count()
        tab.get_by_text("how this was measured").first.press("Enter")  # one click away
        assert quiet.locator("visible=true").count()
        if number == 1:
            assert inaccessible(tab) == []
        hidden += quiet.count()
        switch.focus()
        switch.press("Space")
        assert quiet.locator("visible=true").count() > 10
    assert hidden > 150
    plain.close()


def test_a_guess_is_kept_and_met_again_where_the_chapter_says_what_came_out(
    site: Path, tab: Page
) -> None:
    """On its own page alone, after a reload as well, and as it was typed."""
    story = {path.stem for path in Book(places.ROOT).story()}
    pages = [page for path, page in chapters_of(site) if path.stem in story]
    entry, again = tab.locator(".guess input"), tab.locator(".guess-again")
    for number, page in enumerate(pages):
        tab.goto(page.as_uri())
        assert entry.count() == 1 and not again.is_visible(), page.name
        entry.fill(f"<b>{number}</b> & more")
    for number, page in enumerate(pages):
        tab.goto(page.as_uri())
        assert again.inner_text() == f"You guessed: <b>{number}</b> & more"
        assert again.evaluate("node => node.closest('section').id") == "what-we-learned"
        entry.fill(" ")
        assert not again.is_visible()
    assert len(pages) == 12


def test_what_is_read_calls_no_instrument_of_the_book(site: Path, tab: Page) -> None:
    """In no chapter of the story; every page of it has code, in the text or quoted."""
    story = {path.stem for path in Book(places.ROOT).story()}
    shown = 0
    for path, page in chapters_of(site):
        if path.stem not in story:
            continue
        tab.goto(page.as_uri())
        instruments = folding.instruments_of(nbformat.read(path, as_version=4))
        assert {"claim"} <= instruments
        for code in tab.evaluate(CODE):
            names = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
            assert not names & instruments, f"{path.stem}:\n{code}"
            shown += 1
    assert shown > 15


def test_a_link_to_a_finding_shows_it_to_a_reader(site: Path, browser: Browser) -> None:
    """Wherever it is: folded below a picture, and among the checks; without a script, too."""
    page = site / "notebooks" / "02_all_at_once.html"
    for scripts in (True, False):
        tab = browser.new_page(java_script_enabled=scripts)
        for name in ("laptop-times-slower", "laptop-serial"):
            tab.goto("about:blank")
            tab.goto(f"{page.as_uri()}#claim-{name}")
            tab.locator(f"#claim-{name}").wait_for(state="visible")
        tab.close()


def test_what_came_out_otherwise_or_is_undecided_is_read(tmp_path: Path) -> None:
    shown = {"✓": "holds", "–": "not here", "?": "undecided", "✗": "otherwise"}
    for sign, outcome in shown.items():
        html = Sentence("claim", "a", "So it is.", sign, outcome, "live", "").html
        assert folding.is_quiet(html) == (outcome in ("holds", "not here"))
    assert not folding.is_quiet('<figure class="cb cb-figure"></figure>')


def test_printing_opens_the_checks(site: Path, tab: Page) -> None:
    folded = [page for _, page in chapters_of(site) if 'class="checks"' in page.read_text()]
    tab.goto(folded[0].as_uri())
    checks = tab.locator("details.checks")
    tab.evaluate(PRINTED.format("beforeprint"))
    assert not checks.evaluate("fold => fold.open")  # it is read
    tab.get_by_role("switch").click()
    for event, is_open in (("beforeprint", True), ("afterprint", False)):
        tab.evaluate(PRINTED.format(event))
        assert checks.evaluate("fold => fold.open") == is_open


def test_paper_is_light_and_has_nothing_to_click(site: Path, tab: Page) -> None:
    tab.emulate_media(color_scheme="dark")
    tab.goto((site / "notebooks" / "04_five_stages.html").as_uri())
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(ground)
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    tab.emulate_media(media="print", color_scheme="dark")
    tab.wait_for_function(f"{ground} === 'rgb(255, 255, 255)'")  # it fades
    for gone in (".bd-header-article", ".prev-next-footer", ".copybtn", "details.fold"):
        assert tab.locator(gone).count() and not tab.locator(gone).first.is_visible(), gone
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    tab.emulate_media(media="screen")
    tab.wait_for_function(f"{ground} === '{dark}'")


@pytest.mark.nightly
@pytest.mark.breadth
def test_paper_cuts_nothing_off_and_leaves_no_page_empty(site: Path, browser: Browser) -> None:
    tab = browser.new_page(viewport=SHEET)
    found = []
    for name in pages_of(site):
        if name == "index.html" or name.startswith("profiles/"):
            continue
        tab.emulate_media(media="screen")
        tab.goto((site / name).as_uri())
        tab.evaluate(PRINTED.format("beforeprint"))
        tab.emulate_media(media="print")
        found += [f"{name}: {each}" for each in tab.evaluate(ON_PAPER)]
    tab.close()
    assert not found, "\n".join(found)


def test_no_address_that_was_published_is_lost(site: Path) -> None:
    assert permanent.find_lost(places.ROOT, site) == []


#: What people type, and a page that they should find besides the one on symptoms.
TYPED = {
    "requests slow https": "The curious case of slow HTTPS in Python",
    "PyOpenSSLContext": "6. Who patched whom",
    "load_verify_locations slow": "13. What one load costs",
    "grequests slow": "The curious case of slow HTTPS in Python",
    "gevent blocked": "6. Who patched whom",
    "create_default_context slow": "10. The cure",
}


@pytest.mark.parametrize("typed", TYPED)
def test_search_finds_what_people_type(site: Path, tab: Page, typed: str) -> None:
    """From a folder too. The page that goes from symptoms to what to do comes first."""
    tab.goto(f"{(site / 'search.html').as_uri()}?q={quote(typed)}")
    tab.wait_for_function(
        "document.querySelector('p.search-summary')?.textContent.includes('matching')"
    )
    found = tab.locator("ul.search li > a").all_inner_texts()
    assert found[0] == "Is this you?"
    assert TYPED[typed] in found


def test_chapters_can_be_downloaded_and_where_published_started_on_binder(
    site: Path,
) -> None:
    offered = site / "_sources" / "notebooks"
    assert {path.name for path in offered.glob("*.ipynb")} == {
        path.name for path, _ in chapters_of(site)
    }
    for path, page in chapters_of(site):
        text = page.read_text()
        assert f'href="../_sources/notebooks/{path.name}"' in text
        script = path.with_suffix(".py").name
        assert f'href="../_sources/notebooks/{script}"' in text
        compile((offered / script).read_text(), script, "exec")
        offers = f"urlpath=lab/tree/notebooks/{path.name}" in text
        assert offers == bool(addresses.of_repository())
        cells = json.loads((offered / path.name).read_text())["cells"]
        assert not any(cell.get("outputs") for cell in cells)


#: What is read from a clock: units of claims, and columns that a claim's cell may name.
CLOCKS = {"s", "ms", "µs", "MB", "MiB", "times", "delays", "times a delay"}
CLOCKED = re.compile(
    r"\b(\w*(wall|cpu|user|sys|stall|poll|own)_m?s|at_s|t_s|peak_rss\w*|peak_mb"
    r"|effective_concurrency)\b"
)
COUNTS = "a ratio of counts, the same in each run"
WHO_CAME_FIRST = "books counted before the slow one, which is held for a set time"
TRIED = "of the recorded runs with a known answer: what came out, all of them counted"
#: Claims that have such a unit, or stand in such a cell, and rest on a count all the same.
COUNTED = {
    "load-instructions": COUNTS,
    "load-locks": COUNTS,
    "both-curl-cffi-loads": COUNTS,
    "slow-streams-do-not-wait": "frames of one connection, in the order in which they came",
    "slow-place": WHO_CAME_FIRST,
    "quic-ends": "frames of one visit, in the order in which they came",
    "distance-in-flight": "bytes and messages of two visits; no window comes back sooner than a "
    "round trip later",
    "slow-control": "each book in the place in which it was asked for",
    "method-verdicts-wrong": TRIED,
    "method-serial-bound": TRIED,
    "method-margin": TRIED,
    "method-verdicts-here": "verdicts, in the words that the server's count decides",
    "method-cannot-tell": "the verdict of made-up numbers",
    "weight-by-openssl": "memory, which is counted: bytes that OpenSSL has asked malloc for",
    "weight-threads-keep": "memory, which is counted: pages that the process still has",
    "quic-amplification": "bytes of a handshake, over those that the client began with",
    "weight-of-a-thousand": "memory, which is counted: bytes that malloc has handed out",
}
COUNTED |= dict.fromkeys(
    ["slow-in-order", "slow-six-connections", "slow-two-loops", "slow-as-completed",
     "slow-one-connection", "slow-six-books"], WHO_CAME_FIRST,
)  # fmt: skip


def test_no_claim_on_a_clock_is_decided_by_a_bare_condition(site: Path) -> None:
    """Its window is stated, and an interval decides; the exceptions are those of COUNTED.

    What this machine cannot measure is decided by nothing.
    """
    cells: set[str] = set()
    for path in places.NOTEBOOKS.glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code" and CLOCKED.search(cell.source):
                cells.update(re.findall(r"""claim\(\s*["']([a-z0-9-]+)["']""", cell.source))
    claims = json.loads((site / "claims.json").read_text())
    decided = {claim["id"] for claim in claims if claim["outcome"] != NOT_HERE}
    bare = {claim["id"] for claim in claims if claim["window"] is None} & decided
    on_a_clock = {claim["id"] for claim in claims if claim["unit"] in CLOCKS} | cells
    assert bare & on_a_clock == set(COUNTED) & decided
    assert set(COUNTED) <= {claim["id"] for claim in claims}
    assert all(c["interval"] for c in claims if c["window"] and c["outcome"] in (HOLDS, OTHERWISE))


def test_no_page_names_the_machine_that_built_it(site: Path) -> None:
    for name in pages_of(site):
        assert str(places.ROOT) not in (site / name).read_text(), name


def test_a_profile_is_drawn_from_a_file_without_asking_anyone(
    profile: Path, tmp_path: Path, tab: Page
) -> None:
    page = snakeviz.write(profile, tmp_path / "profiles", "stage-9", "Stage 9 <on> 3.7")
    said = troubles(tab)
    tab.on("console", lambda message: said.append(message.text))
    tab.goto(page.as_uri())
    tab.wait_for_selector("#chart svg rect")
    assert tab.title() == "Stage 9 <on> 3.7"
    assert "encoder.py" in tab.inner_text("#pstats-table")
    assert said == []


#: What stands at the top of each page of a book that shows another machine (pages/origin_notes.py).
NOTE = """<div class="admonition note"><p class="admonition-title">Note</p><p>The measurements in
this book are those of another machine: of <strong>Intel(R) Xeon(R) Processor, 2 cores, OpenSSL
3.0.19</strong>.</p></div>"""


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_is_this_you_is_printed_on_one_sheet(site: Path, tab: Page, paper: str) -> None:
    """In the book of another machine too, which says so in a note."""
    tab.goto((site / "book" / "is_this_you.html").as_uri())
    if not tab.locator("article .admonition.note").count():
        tab.evaluate("note => document.querySelector('article h1').outerHTML += note", NOTE)
    printed = tab.pdf(format=paper)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1


#: Findings of the book on which sentences of several pages rest, and what they are turned to.
TURNED = {
    "threads-load-each": OTHERWISE,
    "load-openssl-30-slowest": UNDECIDED,
    "both-injected-greenlets": NOT_HERE,
}


@pytest.mark.nightly
@pytest.mark.breadth
def test_no_page_of_the_book_states_what_its_own_finding_denies(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Three findings of the built book are turned round, and its pages written from that."""
    before = resting.listed(Book(places.ROOT))
    left_out = shutil.ignore_patterns(".*", "html", "jupyter_execute", "dist", "tests")
    book = Book(shutil.copytree(places.ROOT, tmp_path / "book", ignore=left_out))
    chapters = []
    for path in book.notebooks():
        chapter = book.result(path)
        for record in media.records(chapter, media.CLAIM):
            if outcome := TURNED.get(record["id"]):
                record |= {"outcome": outcome, "because": "it was turned round"}
        nbformat.write(chapter, book.executed / path.name)
        chapters.append(Chapter(path.stem, chapter))
    found = records.collect(book, chapters)
    _, problems = rendering.render(book, chapters, found)
    assert problems == []

    outcomes = {finding.id: finding.outcome for finding in found.findings}
    after = resting.listed(book)
    dependent = [each for each in after if TURNED.keys() & {*each.claims}]
    pages = {each.page: Article(book.html / f"{each.page}.html").text for each in dependent}
    with capsys.disabled():
        for each in dependent:
            print(f"\n{each.page}: {each.text}\n  -> {each.shown}", end="")
    assert len(pages) >= 4 and {id for each in dependent for id in each.claims} >= TURNED.keys()
    for each in dependent:
        said = [words for id in each.claims if outcomes[id] != HOLDS
                for words in resting.MARKS[outcomes[id]]]  # fmt: skip
        assert each.shown and each.shown in pages[each.page]
        assert any(words in each.shown for words in said)
    # All others are as they were.
    for was, now in zip(before, after, strict=True):
        assert now == was or now in dependent
    listed = json.loads((site / "claims.json").read_text())
    held = {record["id"] for record in listed if record["outcome"] == HOLDS}
    assert all(bool(each.shown) != (held >= {*each.claims}) for each in before)
