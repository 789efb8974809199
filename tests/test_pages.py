"""Every page of the built book in a browser: wide and on a phone, light and dark."""

import cProfile
import functools
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from casebook import book, environments, places, snakeviz_pages

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()
#: The last rule is one that axe counts as experimental. Style sheets are not fetched again.
AXE_RUN = """axe.run(document, {
    preload: false, rules: {'label-content-name-mismatch': {enabled: true}}
})"""
WIDE, PHONE = 1280, 390

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
#: No page of ours needs them, and Chromium would talk to its maker without.
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium: the machine's own, or the one that Playwright has."""
    with sync_playwright() as playwright:
        executable = next(filter(None, map(shutil.which, NAMES)), None)
        if executable is None and not Path(playwright.chromium.executable_path).exists():
            if "chromium" in environments.required():
                pytest.fail("CASEBOOK_REQUIRE asks for chromium, which is not on the PATH")
            pytest.skip("no Chromium here: install it, or run `playwright install chromium`")
        running = playwright.chromium.launch(executable_path=executable, args=list(QUIET))
        yield running
        running.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Path:
    """The folder of the built book, brought up to date first."""
    return book.build().parent


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the built book is served, with a slash at the end."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def pages_of(site: Path) -> list[str]:
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return [name for name in found if not name.startswith("_static/")]


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page(site: Path, address: str, browser: Browser, width: int, theme: str) -> None:
    """No sideways scrolling, no error in the console, nothing fetched elsewhere, no axe finding."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    tab = context.new_page()
    found: list[str] = []
    here = [""]

    def note(what: str) -> None:
        found.append(f"{here[0]}: {what}")

    tab.on("console", lambda said: said.type == "error" and note(f"console: {said.text}"))
    tab.on("pageerror", lambda error: note(f"script: {error}"))
    tab.on("response", lambda got: got.status >= 400 and note(f"{got.status} for {got.url}"))
    tab.on(
        "request",
        lambda asked: (
            asked.url.startswith((address, "data:", "blob:")) or note(f"asks {asked.url}")
        ),
    )
    for name in pages_of(site):
        if name == "index.html":  # leads on to the preface
            continue
        here[0] = name
        tab.goto(address + name, wait_until="load")
        wait_for_diagrams(tab)
        for finding in too_wide(tab):
            note(finding)
        # Both widths and both themes, each once. SnakeViz's pages are its own, with long tables
        # that axe would take minutes for.
        if (width == WIDE) == (theme == "light") and not name.startswith("profiles/"):
            for finding in inaccessible(tab):
                note(finding)
    context.close()
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def wait_for_diagrams(tab: Page) -> None:
    tab.wait_for_function(
        "[...document.querySelectorAll('pre.mermaid')].every(d => d.querySelector('svg'))"
    )


def too_wide(tab: Page) -> list[str]:
    width, window = tab.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    return [f"{width} px wide in a window of {window}"] if width > window else []


def inaccessible(tab: Page) -> list[str]:
    tab.evaluate(AXE)
    return [
        f"{violation['id']}, {len(violation['nodes'])} times: {node['html'][:150]}"
        for violation in tab.evaluate(AXE_RUN)["violations"]
        for node in violation["nodes"][:1]
    ]


def test_the_first_page_leads_to_the_preface(address: str, browser: Browser) -> None:
    tab = browser.new_page()
    tab.goto(address)
    tab.wait_for_url("**/book/preface.html")
    tab.close()


def test_a_diagram_follows_the_theme(site: Path, address: str, browser: Browser) -> None:
    with_diagram = [
        name for name in pages_of(site) if 'class="mermaid"' in (site / name).read_text()
    ]
    tab = browser.new_page(color_scheme="light")
    tab.goto(address + with_diagram[0])
    wait_for_diagrams(tab)
    light = tab.inner_html("pre.mermaid")
    tab.evaluate("document.documentElement.dataset.theme = 'dark'")
    tab.wait_for_function(
        "light => document.querySelector('pre.mermaid').innerHTML !== light", arg=light
    )
    tab.close()


def test_notebooks_can_be_downloaded_without_outputs(site: Path) -> None:
    names = [path.name for path in sorted(places.NOTEBOOKS.glob("*.ipynb"))]
    offered = sorted((site / "_sources" / "notebooks").glob("*.ipynb"))
    assert [path.name for path in offered] == names
    for path in offered:
        page = (site / "notebooks" / path.with_suffix(".html").name).read_text()
        assert f'href="../_sources/notebooks/{path.name}"' in page
        cells = json.loads(path.read_text())["cells"]
        assert not any(cell.get("outputs") for cell in cells)


def test_chapters_can_be_started_on_binder(site: Path) -> None:
    for path in places.NOTEBOOKS.glob("*.ipynb"):
        page = (site / "notebooks" / path.with_suffix(".html").name).read_text()
        assert f"urlpath=lab/tree/notebooks/{path.name}" in page


def test_claims_are_published_for_programs(site: Path) -> None:
    claims = json.loads((site / "claims.json").read_text())
    fields = {"id", "statement", "value", "unit", "n", "spread", "holds", "source", "stack"}
    for claim in claims:
        assert fields | {"because", "chapter"} == set(claim)
    assert len({claim["id"] for claim in claims}) == len(claims)


def test_no_page_names_the_machine_that_built_it(site: Path) -> None:
    for name in pages_of(site):
        assert str(places.ROOT) not in (site / name).read_text(), name


def test_a_profile_is_drawn_from_a_file_without_asking_anyone(
    tmp_path: Path, browser: Browser
) -> None:
    profile = tmp_path / "stage-9.prof"
    profiler = cProfile.Profile()
    profiler.runcall(json.dumps, [list(range(500))] * 200, indent=1)
    profiler.dump_stats(profile)
    page = snakeviz_pages.write(profile, tmp_path / "profiles", "stage-9", "Stage 9 <on> 3.7")
    asked, said = [], []
    tab = browser.new_page()
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(page.as_uri())
    tab.wait_for_selector("#chart svg rect")
    assert tab.title() == "Stage 9 <on> 3.7"
    assert "encoder.py" in tab.inner_text("#pstats-table")
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    assert said == []
    tab.close()
