"""The page that JupyterLab and Binder open first."""

import math
import re
from pathlib import Path

import nbformat
import pytest
from here import run
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from casebook import places
from casebook.laboratory import machine_files
from casebook.pages import start
from casebook.pages.contents import Book, code_cells, read

START = places.ROOT / "start.ipynb"


def test_its_cells_bring_a_verdict_and_the_chapters(tmp_path: Path) -> None:
    """As a reader runs them, in a kernel of their own: one is serial, the other is not."""
    notebook = read(START)
    # Sockets in a folder: a port that was free may be taken a moment later.
    kernel = AsyncKernelManager(transport="ipc", connection_file=str(tmp_path / "kernel.json"))
    there = {"metadata": {"path": str(places.ROOT)}}
    NotebookClient(notebook, km=kernel, resources=there, timeout=300).execute()
    first, second = (
        next(output for output in cell.outputs if output.output_type == "execute_result")
        for cell in code_cells(notebook)
    )
    said = first.data["text/plain"]
    assert said.count("serial") == said.count("concurrent") == 1, said
    assert "Measured on this machine" in said
    assert "4 Five stages" in second.data["text/plain"]


def test_it_has_no_outputs_and_its_links_lead_to_files() -> None:
    notebook = nbformat.read(START, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.outputs for cell in code_cells(notebook))
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 4 and all((places.ROOT / each).is_file() for each in links)


def test_every_chapter_is_listed_in_order_and_most_say_how_long_they_take() -> None:
    html = start.chapters().html
    paths = [path.relative_to(places.ROOT).as_posix() for path in Book(places.ROOT).notebooks()]
    assert re.findall(r'<a href="([^"]+)">', html) == paths
    numbered = [path for path in paths if Path(path).name[0].isdigit()]
    told = re.findall(r'<a href="([^"]+)">(?:(?!<a ).)*?<td[^>]*>\d+ minutes', html, re.DOTALL)
    further = ["notebooks/a_doctor.ipynb", "notebooks/a_verdicts_under_load.ipynb"]
    assert told == [*numbered, *further], (
        "a chapter's first prose ends with how long it takes: *20 minutes.*"
    )


def test_the_instructors_page_says_the_same_minutes() -> None:
    told = re.findall(
        r"/(\d+)_\w+\.ipynb\">(?:(?!<a ).)*?<td[^>]*>(\d+) minutes", start.chapters().html
    )
    page = (places.ROOT / "book" / "instructors.md").read_text()
    _, said = page.split("| chapters | minutes for each |\n|---|---|\n")
    rows = re.findall(r"(?m)^\| ([\d, to]+) \| (\d+) \|$", said.partition("\n\n")[0])
    found = {}
    for chapters, minutes in rows:
        for part in chapters.split(", "):
            first, _, last = part.partition(" to ")
            found |= dict.fromkeys(range(int(first), int(last or first) + 1), minutes)
    assert found == {int(number): minutes for number, minutes in told} and len(found) > 20


def test_the_instructors_page_has_the_minutes_of_measuring_of_the_machine_file() -> None:
    machine = machine_files.read(places.DATA / "machines" / "intel-xeon-2core.jsonl.xz")
    measuring = {
        int(stem[:2]): (chapter["clock_s"] + chapter["counting_s"]) / 60
        for stem, chapter in machine.chapters.items()
        if stem[0].isdigit()
    }
    longer = {number: math.ceil(each) for number, each in measuring.items() if each > 1}
    page = (places.ROOT / "book" / "instructors.md").read_text()
    _, table = page.split("| chapters | minutes of measuring |\n|---|---|\n")
    rows = re.findall(r"(?m)^\| ([\d, ]+) \| (\d+) \|$", table.partition("\n\n")[0])
    assert longer == {
        int(number): int(minutes) for chapters, minutes in rows for number in chapters.split(", ")
    }


@pytest.mark.usefixtures("no_old_pythons")
def test_what_a_missing_python_leaves_out_is_said() -> None:
    pattern = r'<a href="notebooks/(\w+)\.ipynb">.*?<td[^>]*>[^<]*</td><td[^>]*>([^<]*)</td>'
    rows = dict(re.findall(pattern, start.chapters().html))
    assert rows["04_five_stages"] == "all but Python 2.7 and 3.7, which is recorded"
    assert rows["01_one_at_a_time"] == "all but Python 3.7, which is recorded"
    assert rows["10_the_cure"] == "all"


def test_it_is_what_make_lab_opens() -> None:
    done = run("make", "--dry-run", "lab")
    assert re.search(rf"jupyterlab .* {START.name}\s*$", done.stdout)
