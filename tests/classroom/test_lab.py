"""What `make lab` opens, in a real browser: the page to start from, and a chapter."""

import contextlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import psutil
import pytest
from here import eventually, run
from playwright.sync_api import Browser, Page, TimeoutError, expect

from casebook import cli, places
from casebook.laboratory import reservation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

#: Nothing here is about speed: a machine may be busy.
WITHIN_MS = 240_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a reader has: JupyterLab saves what it opens, so not in this checkout itself."""
    folder = tmp_path_factory.mktemp("lab")
    for name in ("notebooks", "book"):
        shutil.copytree(places.ROOT / name, folder / name)
    for name in ("start.ipynb", "jupyter_server_config.py"):
        shutil.copy(places.ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def opened(
    browser: Browser, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address that `make lab` has a browser open."""
    own = tmp_path_factory.mktemp("jupyter")
    with lab(folder, own, JUPYTER_CONFIG_DIR=f"{own}/config", JUPYTER_DATA_DIR=f"{own}/data",
             JUPYTER_RUNTIME_DIR=f"{own}/run", IPYTHONDIR=f"{own}/ipython") as address:  # fmt: skip
        yield address


def said_by_make() -> str:
    """The command of `make lab`."""
    return run("make", "--dry-run", "--no-print-directory", "lab").stdout.splitlines()[-1]


@contextlib.contextmanager
def lab(folder: Path, own: Path, line: str = "", **environ: str) -> Iterator[str]:
    """The address that a command has a browser open; its server is gone afterwards.

    folder: it is started there. own: for files of the test. line: the command, that of `make lab`
    if there is none. environ: variables that differ.
    """
    said = own / "opened"
    command = shlex.split(line or said_by_make())
    assert command[0].endswith("/bin/python") and command[1:3] == ["-m", "jupyterlab"]
    command[0] = sys.executable
    show = own / "browser"  # which only says what it was to open
    show.write_text(f"#!/bin/sh\necho \"$1\" > '{said}'\n")
    show.chmod(0o755)
    command += ["--port=0", f"--ServerApp.browser={show} %s"]
    command += ["--LabApp.expose_app_in_browser=True"]
    command += ["--allow-root"] * (os.geteuid() == 0)
    names = ("CASEBOOK_REQUIRE", "CASEBOOK_BUILD", "CASEBOOK_MODE")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    environ = kept | {"PYTHONPATH": str(places.ROOT)} | environ
    with open(own / "log", "w") as log:
        server = psutil.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)
    try:
        assert eventually(lambda: said.exists() or server.poll() is not None, seconds=240)
        assert eventually(lambda: said.exists() and said.read_text(), seconds=60), (
            own / "log"
        ).read_text()
        page = Path(said.read_text().strip().removeprefix("file://")).read_text()
        found = re.search(r'href="(http[^"]+)"', page)
        assert found, page
        yield found[1]
    finally:
        left = [server, *server.children(recursive=True)]
        for end in (psutil.Process.terminate, psutil.Process.kill):
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    end(process)
            _, left = psutil.wait_procs(left, timeout=20)
        assert not left


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    with browser.new_page(viewport={"width": 1400, "height": 2400}) as page:
        page.set_default_timeout(WITHIN_MS)
        expect.set_options(timeout=WITHIN_MS)
        yield page
    expect.set_options(timeout=5000)


def go(tab: Page, opened: str, name: str) -> None:
    """Open a notebook in a new workspace."""
    start, _, token = opened.partition("?")
    tab.goto(f"{start.partition('/lab/')[0]}/lab/tree/{name}?{token}&reset")
    expect(tab.get_by_role("tab", name=Path(name).name)).to_be_visible()
    expect(tab.locator(".jp-Notebook .jp-Cell").first).to_be_visible()


def test_it_opens_the_page_to_start_from_and_asks_nobody_outside(opened: str, tab: Page) -> None:
    assert "/lab/tree/start.ipynb?token=" in opened
    asked: set[str] = set()
    tab.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    tab.goto(opened)
    expect(tab.get_by_role("heading", name="Start here")).to_be_visible()
    expect(tab.get_by_role("link", name="chapter 4")).to_be_visible()
    assert asked - {""} == {urlsplit(opened).netloc}  # an empty one: data in the page itself
    # Nor is the reader asked whether she wants news.
    has, of = "name => jupyterapp.hasPlugin(name)", "@jupyterlab/apputils-extension"
    assert tab.evaluate(has, f"{of}:notification")
    assert not tab.evaluate(has, f"{of}:announcements")


#: The document that is shown, as JupyterLab itself knows it.
DOCUMENT = "jupyterapp.shell.currentWidget?.context"


def test_a_notebook_that_is_only_opened_is_saved_as_it_was(
    opened: str, tab: Page, folder: Path
) -> None:
    """JupyterLab saves it by itself when it knows the kernel: git shows no change then."""
    file = folder / "start.ipynb"
    before = file.stat().st_mtime_ns
    go(tab, opened, file.name)
    # A tab and an empty cell are there before the notebook is, and until then "it is read-only".
    # What it has learned of the kernel is what may not be in the file.
    tab.wait_for_function(
        f"() => {DOCUMENT}?.isReady && {DOCUMENT}.model.getMetadata('language_info')?.version"
    )
    # Whether this saves it or JupyterLab did, it is in the file when nothing is left to be saved.
    tab.evaluate(f"() => {{ {DOCUMENT}.save() }}")
    tab.wait_for_function(f"() => !{DOCUMENT}.model.dirty")
    assert file.stat().st_mtime_ns != before
    assert file.read_bytes() == (places.ROOT / file.name).read_bytes()


def test_a_chapter_opens_as_a_reader_expects(opened: str, tab: Page) -> None:
    go(tab, opened, "notebooks/04_five_stages.ipynb")
    diagram = tab.get_by_role("img", name="The layers of an HTTPS request")
    expect(diagram).to_be_visible()
    tab.wait_for_function("image => image.naturalWidth > 0", arg=diagram.element_handle())
    expect(tab.get_by_role("link", name="the talk").first).to_be_visible()
    expect(tab.get_by_role("link", name="stages").first).to_be_visible()
    guess = tab.locator("aside", has_text="Guess first")
    expect(guess).to_contain_text("something that the script never mentions?")
    # What is no mechanism is folded, and a reader can open it.
    folded = tab.locator(".jp-CodeCell .jp-Placeholder").first
    expect(folded).to_contain_text("import pandas as pd")
    assert not tab.get_by_text("import MissingInterpreter").count()
    folded.locator(".jp-MoreHorizIcon, button, .jp-Placeholder-content").first.click()
    expect(tab.get_by_text("import MissingInterpreter").first).to_be_visible()
    # Nothing of the markup is left to be read.
    text = tab.locator(".jp-Notebook").inner_text()
    assert "```" not in text.partition("grequests alone")[0] and "{cite" not in text


def run_in(opened: str, tab: Page, folder: Path, name: str, *cells: str) -> None:
    """Open a notebook of a reader's own with these cells, and run all of them."""
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    written.metadata = nbformat.read(places.ROOT / "start.ipynb", as_version=4).metadata
    nbformat.write(written, folder / f"{name}.ipynb")
    go(tab, opened, f"{name}.ipynb")
    # The indicator is idle before there is a kernel, too.
    expect(tab.get_by_role("button", name=re.compile(r"\| Idle$"))).to_be_visible()
    tab.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells') }")


def test_a_picture_can_be_stepped_through(opened: str, tab: Page, folder: Path) -> None:
    run_in(
        opened, tab, folder, "turns",
        "from casebook import charts, observe",
        'seen = observe("stage-2-injected-today", "turns", n=3, delay_s=0.1)\n'
        'charts.turns({"injected": seen})',
    )  # fmt: skip
    slider = tab.get_by_role("slider", name="Turn")
    expect(slider).to_be_visible()
    first = slider.get_attribute("aria-valuetext")
    tab.get_by_role("button", name="One turn back").click()
    expect(slider).not_to_have_attribute("aria-valuetext", first)
    slider.focus()
    tab.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", first)


def test_a_cell_that_falls_back_says_so_in_one_line(
    opened: str, tab: Page, folder: Path, tmp_path: Path
) -> None:
    run_in(
        opened, tab, folder, "fallback",
        "import os\n"
        "from casebook.stacks import interpreters\n"
        f'os.environ.update(PATH="/nowhere", HOME={str(tmp_path)!r})\n'
        'for name in ("PYENV_ROOT", "MAMBA_ROOT_PREFIX", "CONDA_PREFIX", "CASEBOOK_REQUIRE"):\n'
        "    os.environ.pop(name, None)\n"
        "interpreters.SYSTEM_CONDA = ()",
        "from casebook import analysis, measure, tables\n"
        'tables.show(analysis.summary(measure("stage-1-py37", n=10, repeats=1)), "Ten pages")',
    )  # fmt: skip
    output = tab.locator(".jp-OutputArea-output", has_text="Ten pages")
    expect(output).to_be_visible()
    assert output.inner_text().count("Recorded") == 1
    assert not tab.locator(".jp-OutputArea-output[data-mime-type*=error]").count()


def test_a_cell_that_waits_for_anothers_measurement_says_so(
    opened: str, tab: Page, folder: Path
) -> None:
    with reservation.exclusive():
        run_in(
            opened, tab, folder, "waits",
            "from casebook import measure",
            'len(measure("stage-1-today", n=2, repeats=1))',
        )  # fmt: skip
        said = tab.get_by_text("waiting: something else is being measured here")
        expect(said).to_be_visible()
        assert not tab.locator("[data-mime-type='application/vnd.jupyter.stderr']").count()  # red
    expect(tab.locator(".jp-OutputArea-executeResult", has_text="1")).to_be_visible()


def test_a_progress_bar_is_seen_and_leaves_nothing(opened: str, tab: Page, folder: Path) -> None:
    run_in(
        opened, tab, folder, "bar",
        "import time\n"
        "from pathlib import Path\n"
        "from casebook.laboratory.progress import Progress\n"
        'with Progress(2, "fetching") as progress:\n'
        '    while not Path("seen").exists():\n'
        "        time.sleep(0.1)\n"
        "    progress.step()\n"
        "for _ in range(60):\n"  # JupyterLab folds what comes after fifty outputs of a cell
        '    with Progress(2, "fetching") as progress:\n'
        "        progress.step()\n"
        '"done"',
    )  # fmt: skip
    outputs = tab.locator(".jp-OutputArea-output")
    expect(outputs).to_contain_text([re.compile(r"fetching: +0%\|.* 0/2 ")])
    (folder / "seen").touch()
    expect(outputs).to_have_text(["'done'"])  # the only one


def test_in_a_home_that_cannot_be_written_it_is_the_same(
    tab: Page, folder: Path, tmp_path: Path
) -> None:
    """What Jupyter, IPython and Matplotlib keep in a home is kept beside the notebooks then."""
    complaints: list[str] = []
    tab.on("response", lambda got: got.status >= 500 and complaints.append(got.url))
    with lab(folder, tmp_path, HOME="/dev/null/home") as address:
        run_in(
            address, tab, folder, "elsewhere",
            "import IPython, matplotlib\n"
            "print(matplotlib.get_configdir(), IPython.paths.get_ipython_dir())",
        )  # fmt: skip
        local = str(folder / places.LOCAL_NAME)
        expect(tab.locator(".jp-OutputArea-output")).to_have_text(
            [f"{local}/jupyter/mplconfigdir {local}/jupyter/ipythondir"]
        )
        # JupyterLab remembers what is open, and what it was asked to look like.
        kept = folder / places.LOCAL_NAME / "jupyter"
        assert eventually(lambda: list((kept / "workspaces").glob("*")), seconds=60)
        assert list((kept / "jupyter_runtime_dir").glob("kernel-*.json"))
    assert complaints == []


def test_the_copy_without_solutions_opens_by_the_command_that_is_printed(
    folder: Path, tab: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["course", "--exercises", str(tmp_path / "copy")]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    with lab(folder, tmp_path, line) as address:
        tab.goto(address)
        expect(tab.get_by_role("heading", name="Start here")).to_be_visible()
        expect(tab.locator("p", has_text="In a chapter, run one cell after")).to_be_visible()
        assert not tab.get_by_text("A solution is a bar").count()


def scroll_to(tab: Page, beginning: str) -> None:
    """Show the cell that begins with this."""
    tab.wait_for_function(f"() => {DOCUMENT}?.isReady")
    tab.evaluate(
        """(beginning) => {
            const notebook = jupyterapp.shell.currentWidget.content;
            const begins = (cell) => cell.model.sharedModel.getSource().startsWith(beginning);
            notebook.scrollToItem(notebook.widgets.findIndex(begins), "start");
        }""",
        beginning,
    )


#: Draws what a paragraph is folded in as JupyterLab first draws it, which it may do late.
REDRAW = """(paragraph) => {
    const part = paragraph.closest('details'), again = part.cloneNode(true);
    again.open = false;
    part.replaceWith(again);
}"""


def test_a_solution_is_one_bar_until_it_is_opened(opened: str, tab: Page) -> None:
    go(tab, opened, "notebooks/05_reading_the_profile.ipynb")
    bars = tab.get_by_role("button", name="Solution: try it first")
    expect(bars).to_have_count(7)
    scroll_to(tab, "```{exercise-start} A profiler of your own")
    expect(tab.get_by_text("(A profiler of your own)")).to_be_visible()
    sentence = tab.locator("p", has_text="A sampling profiler such as py-spy")
    expect(sentence).to_be_hidden()
    expect(tab.locator(".jp-CodeCell", has_text="WATCH = ").first).to_be_hidden()
    assert not tab.get_by_text("Start of Solution").locator("visible=true").count()

    def is_open() -> bool:
        """Click again if the click was lost: JupyterLab may draw the cell anew under it."""
        with contextlib.suppress(AssertionError, TimeoutError):
            if bars.count() == 7:
                bars.nth(3).click(timeout=5_000)
            expect(sentence).to_be_visible(timeout=5_000)
        return sentence.is_visible()

    assert eventually(is_open)
    assert not tab.get_by_text("Start of Solution").locator("visible=true").count()
    expect(tab.locator(".jp-CodeCell", has_text="WATCH = ").first).to_be_visible()
    tab.evaluate(REDRAW, sentence.element_handle())
    expect(sentence).to_be_visible()
    tab.get_by_role("button", name="▾ Solution").click()
    expect(sentence).to_be_hidden()


SOLVED = ("```{solution-start} ex-a\n```", "print('the ' + 'answer')", "```{solution-end}\n```")


def test_run_all_shows_nothing_of_a_solution(opened: str, tab: Page, folder: Path) -> None:
    """Later cells may need what it computes, so it runs; nobody sees it."""
    start, code, end = SOLVED
    cells = [
        nbformat.v4.new_markdown_cell(start),
        nbformat.v4.new_code_cell(
            code, metadata={"jupyter": {"source_hidden": True, "outputs_hidden": True}}
        ),
        nbformat.v4.new_markdown_cell(end),
        nbformat.v4.new_code_cell("print('after ' + 'it')"),
    ]
    written = nbformat.v4.new_notebook(cells=cells)
    written.metadata = nbformat.read(places.ROOT / "start.ipynb", as_version=4).metadata
    nbformat.write(written, folder / "solved.ipynb")
    go(tab, opened, "solved.ipynb")
    expect(tab.get_by_role("button", name=re.compile(r"\| Idle$"))).to_be_visible()
    expect(tab.get_by_role("button", name="Solution: try it first")).to_be_visible()
    tab.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells') }")
    expect(tab.get_by_text("after it")).to_be_visible()
    expect(tab.get_by_text("the answer")).to_be_hidden()
    tab.get_by_role("button", name="Solution: try it first").click()
    expect(tab.get_by_text("the answer")).to_be_visible()


def test_a_link_to_a_finding_that_has_not_run_leads_to_its_cell_and_says_so(
    opened: str, tab: Page
) -> None:
    go(tab, opened, "notebooks/05_reading_the_profile.ipynb")
    scroll_to(tab, "## What we learned")
    link = tab.get_by_role("link", name="One wait outside the loop stops everything")
    answer = tab.get_by_text("This finding is not there yet").first

    def answered() -> bool:
        """Click again: a click is lost if JupyterLab draws the cell anew under it."""
        with contextlib.suppress(AssertionError, TimeoutError):
            link.click(timeout=5_000)
            expect(answer).to_be_visible(timeout=5_000)
        return answer.is_visible()

    assert eventually(answered)
    source = "() => jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.getSource()"
    assert "claim(" in tab.evaluate(source)


def test_a_link_to_a_finding_that_rests_on_a_solution_says_so_in_the_copy_without_them(
    opened: str, tab: Page, folder: Path
) -> None:
    written = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("[Thirty of them](#claim-thirty).")]
    )
    written.metadata = nbformat.read(places.ROOT / "start.ipynb", as_version=4).metadata
    nbformat.write(written, folder / "linked.ipynb")
    go(tab, opened, "linked.ipynb")
    answer = tab.get_by_text("This finding is not in this copy: it rests on a solution.").first

    def answered() -> bool:
        with contextlib.suppress(AssertionError, TimeoutError):
            tab.get_by_role("link", name="Thirty of them").click(timeout=5_000)
            expect(answer).to_be_visible(timeout=5_000)
        return answer.is_visible()

    assert eventually(answered)


def test_a_guess_is_kept_in_the_notebook_and_shown_at_the_end(
    opened: str, tab: Page, folder: Path
) -> None:
    name = "notebooks/02_all_at_once.ipynb"
    go(tab, opened, name)
    guess = tab.get_by_role("textbox", name="Your guess:").first
    guess.fill("about one delay")
    guess.press("Tab")
    expect(tab.get_by_text("You guessed: about one delay")).to_have_count(1)
    tab.evaluate(f"() => {{ {DOCUMENT}.save() }}")
    tab.wait_for_function(f"() => !{DOCUMENT}.model.dirty")
    saved = nbformat.read(folder / name, as_version=4)
    assert [cell.metadata.guess for cell in saved.cells if "guess" in cell.metadata] == [
        "about one delay"
    ]
    go(tab, opened, name)
    expect(tab.get_by_role("textbox", name="Your guess:").first).to_have_value("about one delay")


def test_a_number_that_a_sentence_quotes_is_there_when_its_cell_has_run(
    opened: str, tab: Page, folder: Path
) -> None:
    cells = [
        nbformat.v4.new_markdown_cell(
            "It takes {glue:text}`a-b:.1f` times, {glue:text}`share:.0%` of {glue:text}`big:,.0f`, "
            "and there {glue:text}`../notebooks/15_thousands.ipynb::there:.1f`; not `a-b:.1f`."
        ),
        nbformat.v4.new_code_cell(
            "from casebook import claim\n"
            "for name, value in {'a-b': 2.25, 'share': 0.347, 'big': 12345.6}.items():\n"
            "    claim(name, 'It is {value}.', value=value, holds=True)"
        ),
    ]
    written = nbformat.v4.new_notebook(cells=cells)
    written.metadata = nbformat.read(places.ROOT / "start.ipynb", as_version=4).metadata
    nbformat.write(written, folder / "quotes.ipynb")
    go(tab, opened, "quotes.ipynb")
    text = tab.locator(".jp-MarkdownCell").first
    expect(text).to_contain_text("It takes … times, … of …, and there …; not a-b:.1f.")
    expect(tab.get_by_role("button", name=re.compile(r"\| Idle$"))).to_be_visible()
    tab.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells') }")
    expect(text).to_contain_text(
        re.compile(r"takes 2\.[23] times, 35% of 12,346, and there …; not a-b:\.1f\.")
    )


def test_while_all_cells_run_the_view_is_on_the_one_that_runs(
    opened: str, tab: Page, folder: Path
) -> None:
    waits = (
        "import time\n"
        "from pathlib import Path\n"
        "while not Path('go-on').exists():\n"
        "    time.sleep(0.1)"
    )
    long = "\n".join(f"print({line})" for line in range(120))
    run_in(opened, tab, folder, "follows", "print('first')", waits, *[long] * 3)
    expect(tab.get_by_text("go-on").first).to_be_in_viewport()
    (folder / "go-on").touch()
