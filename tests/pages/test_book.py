"""The pipeline from notebooks to pages, on a book of two chapters, with the real tools."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from here import alive, eventually

from casebook import places
from casebook.cases.fetching import trust
from casebook.errors import BookFailed, FindingsOtherwise
from casebook.findings import media
from casebook.laboratory import error_rates, machine_files
from casebook.pages import (
    accessibility,
    build,
    building,
    contents,
    execution,
    last_build,
    links,
    origin_notes,
    records,
    rendering,
    site,
    staleness,
    upstream_page,
)
from casebook.pages.contents import Book
from casebook.pages.records import Records
from casebook.pages.timing import Timing
from casebook.stacks import environments

FIGURE = "<svg role='img' aria-label='It.'></svg>"
#: Says that it ran, where no digest looks.
NOTE = "open('../ran.txt', 'a').write('{name}\\n');"
PAGES = ("notebooks/one", "notebooks/two", "book/claims", "book/published", "book/machines",
         "book/glossary", "book/bibliography")  # fmt: skip
TOC = "format: jb-book\nroot: book/preface\nchapters:\n" + "".join(
    f"- file: {page}\n" for page in PAGES
)
#: Makes the package importable in a chapter of the model, whose own is empty, and states findings.
FINDINGS = f"""
import casebook; casebook.__path__.append({str(places.PACKAGE)!r})
from casebook.findings.claims import claim
from casebook.findings.published import compare
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built book: a preface and two chapters, the first shows what its module and data hold."""
    root = tmp_path_factory.mktemp("model") / "book"
    write_model(root)
    build(root)
    assert ran(Book(root)) == ["one", "two"]
    return root


def write_model(root: Path) -> None:
    """Write that book, not yet built."""
    for folder in ("book", "casebook", "data", "notebooks"):
        (root / folder).mkdir(parents=True)
    shutil.copy(places.ROOT / "_config.yml", root)
    shutil.copytree(places.ROOT / "book" / "_static", root / "book" / "_static")
    (root / "book" / "references.bib").write_text("@misc{post, title={A post}, year={2019}}\n")
    for name in ("claims", "published", "machines"):
        included = f"```{{include}} ../_build/included/{name}.md\n```\n"
        (root / "book" / f"{name}.md").write_text(f"# {name}\n\n{included}")
    (root / "book" / "glossary.md").write_text(
        "# Glossary\n\n```{glossary}\nGreen thread\n  It takes turns.\n```\n"
    )
    (root / "book" / "bibliography.md").write_text("# Books\n\n```{bibliography}\n:all:\n```\n")
    (root / "book" / "preface.md").write_text("# Preface\n\nNothing yet.\n")
    (root / "_toc.yml").write_text(TOC)
    (root / "casebook" / "__init__.py").touch()
    (root / "casebook" / "answer.py").write_text("ANSWER = 'forty-two'\n")
    (root / "data" / "unit.txt").write_text("sheep")
    shown = "print('It is', ANSWER, open('../data/unit.txt').read())"
    write(root, "one", "from casebook.answer import ANSWER", shown)
    write(root, "two", "print('second')")


@pytest.fixture
def scratch(model: Path, tmp_path: Path) -> Book:
    """A copy of the built book, to change and build again."""
    return Book(shutil.copytree(model, tmp_path / "book"))


def write(root: Path, name: str, *cells: str, prose: str = "") -> Path:
    """Write a chapter, whose first cell notes that it runs."""
    notebook, path = nbformat.v4.new_notebook(), root / "notebooks" / f"{name}.ipynb"
    notebook.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "3"}
    notebook.cells = [nbformat.v4.new_markdown_cell(f"# A chapter\n\n{prose}")]
    notebook.cells += map(nbformat.v4.new_code_cell, [NOTE.format(name=name), *cells])
    nbformat.write(notebook, path)
    return path


def module(scratch: Book, text: str) -> None:
    """Change the module that the first chapter imports."""
    (scratch.root / "casebook" / "answer.py").write_text(text)


def ran(scratch: Book) -> list[str]:
    """The notebooks that have run since the last time this was asked, two at a time."""
    note = scratch.root / "ran.txt"
    names = sorted(note.read_text().split()) if note.exists() else []
    note.unlink(missing_ok=True)
    return names


def page(scratch: Book, name: str) -> str:
    return (scratch.html / "notebooks" / f"{name}.html").read_text()


def test_what_has_not_changed_is_neither_executed_nor_written_again(scratch: Book) -> None:
    first_page = scratch.html / "index.html"
    written = first_page.stat().st_mtime_ns
    assert "It is forty-two sheep" in page(scratch, "one")
    by_product = scratch.root / "casebook" / "__pycache__" / "answer.pyc"
    by_product.parent.mkdir(exist_ok=True)  # there, where Python writes bytecode
    by_product.write_bytes(b"x")
    build(scratch.root)
    assert ran(scratch) == []
    assert first_page.stat().st_mtime_ns == written
    (scratch.executed / "one.ipynb").unlink()  # what is gone is made again
    execution.execute(scratch)
    assert ran(scratch) == ["one"]


def test_a_build_after_which_nothing_changed_only_says_its_end_again(
    scratch: Book,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    runs, root = scratch.runs, scratch.root
    runs.mkdir(parents=True, exist_ok=True)
    (runs / "x.json").write_text("{}")
    build(root)
    said = capfd.readouterr().err
    with monkeypatch.context() as patched:
        patched.setattr(building, "build", lambda *_: pytest.fail("it looked at everything again"))
        assert build(root) == scratch.html / "index.html"
    again = capfd.readouterr().err
    assert said.endswith(again) and "the book is ready" in again
    former = last_build.read(scratch)
    assert former and former.summary == again.strip()

    def changed_pages(everything: bool = False) -> list[str] | None:
        return last_build.stamp(scratch, everything).changed_pages(former.stamp)

    for file in (root / "book" / "glossary.md", root / "_config.yml",
                 scratch.executed / "one.ipynb",
                 root / "data" / "unit.txt", runs / "x.json", scratch.html / "index.html",
                 scratch.build / "site.stamp"):  # fmt: skip
        file.rename(tmp_path / "away")
        with contextlib.suppress(BookFailed):  # a page without its file
            assert changed_pages() is None, file
        (tmp_path / "away").rename(file)
        assert changed_pages() == [], file
    for file in (scratch.executed / "one.ipynb", runs / "x.json"):
        text = file.read_bytes()
        file.write_bytes(text + b" ")
        assert changed_pages() is None, file
        last_build.keep(scratch, former.stamp, "the end")
        former = last_build.read(scratch)
        assert former and former.summary == "the end" and changed_pages() == []
    assert changed_pages(everything=True) is None
    monkeypatch.setattr(environments, "find_interpreter", lambda version: None)
    assert changed_pages() is None


def test_a_build_that_left_something_to_do_is_not_kept(scratch: Book) -> None:
    build(scratch.root)
    (scratch.root / "data" / "published.csv").write_text("id\nstage1-27\n")
    for _ in range(2):
        with pytest.raises(BookFailed, match="stage1-27"):
            build(scratch.root)
    assert not (scratch.build / "last_build.json").exists()


def test_no_page_keeps_an_old_number_when_a_module_changes(scratch: Book) -> None:
    module(scratch, "ANSWER = 'forty-three'\n")
    build(scratch.root)
    assert ran(scratch) == ["one", "two"]
    assert "forty-three sheep" in page(scratch, "one")
    everything = "".join(file.read_text() for file in scratch.html.rglob("*.html"))
    assert "forty-two" not in everything


@pytest.fixture(scope="module")
def written_again(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Book:
    """A copy of the built book that was written again after three changes.

    Its second chapter states a finding; then it has turned upstream, and the first
    chapter's prose has changed. This is done once for the tests of both.
    """
    again = Book(shutil.copytree(model, tmp_path_factory.mktemp("written again") / "book"))
    write(again.root, "two", FINDINGS, "claim('c', 'We count {value}.', 8, True)")
    execution.execute(again)
    assert ran(again) == ["two"]
    first = (again.root / "notebooks" / "one.ipynb").read_text()
    (again.root / "notebooks" / "one.ipynb").write_text(first.replace("# A chapter", "# A word."))
    answer = {"version": "2.1", "still": False, "counts": "8 of 8", "turned": "2.0"}
    finding = {"package": "sheep", "claim": "c", "chapter": "two", "says": "they are counted"}
    finding |= {"before": "", "true_from": "1.0", "true_to": "1.9", "turned": ""}
    finding |= {"answers": [answer]}
    (again.root / "book" / "upstream.md").write_text("# Upstream\n")
    (again.root / "_toc.yml").write_text(f"{TOC}- file: book/upstream\n")
    (again.root / upstream_page.KEPT).write_text(
        json.dumps({"asked": "2026-11-23", "findings": [finding]})
    )
    build(again.root)
    assert ran(again) == []
    return again


def test_a_chapter_whose_finding_has_turned_upstream_says_so_without_being_executed(
    written_again: Book,
) -> None:
    two = page(written_again, "two")
    assert "Since sheep 2.0 it is no longer true that they are counted" in two
    assert "True from 1.0 to 1.9, and perhaps before (not in 2.0)." in two
    assert "One release later" not in page(written_again, "one")


def test_prose_is_written_again_without_executing_anything(written_again: Book) -> None:
    assert "A word." in page(written_again, "one")
    assert "It is forty-two sheep" in page(written_again, "one")


def html_of(book: Book) -> dict[str, str]:
    """The pages of a site, by their names, without the digests of their style sheets.

    Themes lay some sheets down after the pages are written: what was not there had no digest.
    """
    pages = {path.relative_to(book.html).as_posix(): path for path in book.html.rglob("*.html")}
    return {name: re.sub(r"\.css\?v=\w+", ".css", path.read_text()) for name, path in pages.items()}


def test_a_sentence_writes_its_page_alone_and_the_site_is_as_if_all_were_written(
    scratch: Book, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (scratch.root / "book" / "permanent.txt").write_text(
        "notebooks/one.html#claim-old -> notebooks/two.html\n"
    )
    write(scratch.root, "two", "print('second')", prose="It was one sentence.")
    build(scratch.root)
    written: list[list[str] | None] = []
    write_site = site.write

    def noted(*arguments, **options) -> list[str]:
        written.append(options.get("only"))
        return write_site(*arguments, **options)

    monkeypatch.setattr(site, "write", noted)
    summary = capfd.readouterr().err.splitlines()[-3:]
    path = write(scratch.root, "two", "print('second')", prose="It is another sentence.")
    os.utime(path, (0, 0))  # the clock of another machine: its file is older than what was read
    build(scratch.root)
    said = capfd.readouterr().err.splitlines()
    assert said == ["writing again: notebooks/two", *summary[-len(said) + 1 :]]
    assert "It is another sentence." in page(scratch, "two")
    assert page(scratch, "one").count("What was here has moved.") == 1
    assert page(scratch, "one").count('role="navigation" aria-label="Book"') == 1
    build(scratch.root)
    assert written == [["notebooks/two"]]  # and then nothing is left to do
    quick = html_of(scratch)
    last_build.forget(scratch)
    build(scratch.root)
    assert written[1:] == [None]
    assert html_of(scratch) == quick


def test_what_is_wrong_with_a_sentence_fails_the_build_and_is_not_kept(
    scratch: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(scratch.root, "two", "print('second')", prose="It is another sentence.")
    write_site = site.write
    monkeypatch.setattr(site, "write", lambda *args, **rest: [*write_site(*args, **rest), "Wrong."])
    with pytest.raises(BookFailed, match=r"Wrong\.\nThe pages are there"):
        build(scratch.root)
    assert "It is another sentence." in page(scratch, "two")
    assert last_build.read(scratch) is None


def test_executes_only_the_notebook_that_changed_with_the_python_of_the_build(
    scratch: Book,
) -> None:
    asked = "import os, sys; print(sys.executable, os.environ['CASEBOOK_BUILD'])"
    write(scratch.root, "two", asked)
    chapters = execution.execute(scratch)
    assert ran(scratch) == ["two"]
    assert chapters[1].notebook.cells[-1].outputs[0].text == f"{sys.executable} 1\n"


def stale(scratch: Book) -> list[str]:
    """The notebooks that the next build would execute."""
    surroundings = staleness.of_surroundings(scratch)
    return [
        path.stem
        for path in scratch.notebooks()
        if not scratch.has_run(path, staleness.of_notebook(contents.read(path), surroundings))
    ]


@pytest.mark.parametrize("changed", ["data", "lock", "mode"])
def test_executes_all_when_what_they_may_read_changed(
    scratch: Book, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    assert stale(scratch) == []
    if changed == "data":
        (scratch.root / "data" / "unit.txt").write_text("goats")
    elif changed == "lock":
        (scratch.root / "requirements.txt").write_text("gevent==26.9.0\n")
    else:
        monkeypatch.setenv("CASEBOOK_MODE", "full")
    assert stale(scratch) == ["one", "two"]
    if changed == "data":  # and what is stale is executed
        execution.execute(scratch)
        assert ran(scratch) == ["one", "two"]
        assert stale(scratch) == []


def test_a_failing_cell_is_named_and_leaves_no_old_result(scratch: Book) -> None:
    module(scratch, "raise ValueError('no answer')\n")
    write(scratch.root, "two", "import os", "os._exit(9)")
    with pytest.raises(BookFailed) as failure:
        build(scratch.root)
    assert str(failure.value).startswith(
        "notebooks/one.ipynb, code cell 2 (from casebook.answer import ANSWER): "
        "ValueError: no answer"
    )
    assert re.search(r"two\.ipynb, code cell 3 \(os\._exit\(9\)\).*died", str(failure.value))
    assert "make fresh" in str(failure.value)
    # Both are shown as far as they got, and the next build tries again what has not changed.
    assert "no answer" in page(scratch, "one") and "It is forty-two" not in page(scratch, "one")
    assert "the kernel died" in page(scratch, "two") and "second" not in page(scratch, "two")
    ran(scratch)
    write(scratch.root, "two", "print('third')")
    first, second = execution.execute(scratch)
    assert ran(scratch) == ["one", "two"]
    assert "ValueError" in first.failure and second.failure == ""  # none holds another back
    assert second.notebook.cells[-1].outputs[0].text == "third\n"
    module(scratch, "ANSWER = 'forty-two'\n")
    execution.execute(scratch)
    assert ran(scratch) == ["one", "two"]


@pytest.mark.slow  # two books of its own
def test_a_chapter_whose_turn_is_to_come_has_a_page_that_says_so(scratch: Book) -> None:
    shutil.rmtree(scratch.build)
    ran(scratch)
    begun = execution.execute(scratch, only=scratch.notebooks()[:1])
    one, two = scratch.notebooks()
    assert ran(scratch) == ["one"] and [*map(scratch.is_waiting, (one, two))] == [False, True]
    rendering.render(scratch, begun, records.collect(scratch, begun), is_last=False)
    assert "turn has not come" in page(scratch, "two")
    assert "turn has not come" not in page(scratch, "one")
    assert not any(cell.get("outputs") for cell in begun[1].notebook.cells)
    assert "1 of its 2 chapters have no numbers" in origin_notes.while_written(scratch)
    # An interrupted build goes on from there, and nothing waits when it is done.
    build(scratch.root)
    assert "turn has not come" not in page(scratch, "two") and not scratch.is_waiting(two)
    assert ran(scratch) == ["two"]


def test_the_foot_of_a_published_page_names_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """To its readers "this machine" would be theirs; whoever built it reads that, and the name."""
    monkeypatch.setattr(machine_files, "processor", lambda: "Pear(R) Core(TM) 9 CPU @ 3.1 GHz")
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    origin_notes.own_machine.cache_clear()
    captions = (
        "Measured on this machine, 26 November 2026, 11:05 UTC. Recorded on a Plum, 2 cores, "
        "3 May 2026, not measured now. Measured on this machine, 27 November 2026, "
        "09:05 to 11:20 UTC."
    )
    recorded = "Recorded on a Plum, 2 cores, 3 May 2026."
    time = "26 November 2026 to 27 November 2026"
    assert origin_notes.of_captions(captions) == (
        f"Measured on this machine (Pear Core 9, 4 cores), {time}. {recorded}"
    )
    note = "Another machine measured it: AMD EPYC, 2 cores."
    elsewhere = "Measured on AMD EPYC, 2 cores, 3 July 2026."
    assert origin_notes.foot(note, elsewhere) == f"{note} Measured on 3 July 2026."
    assert origin_notes.foot("", elsewhere) == elsewhere
    assert origin_notes.of_captions(captions, is_published=True) == (
        f"Measured on Pear Core 9, 4 cores, {time}; your own machine's numbers come from "
        f"make book. {recorded}"
    )
    shown = origin_notes.with_machine_name(captions)
    assert "this machine" not in shown and shown.count("Measured on Pear Core 9, 4 cores") == 2
    origin_notes.own_machine.cache_clear()


@pytest.mark.nightly
@pytest.mark.breadth
def test_the_story_is_measured_and_the_laboratory_is_shown_from_a_file(scratch: Book) -> None:
    one, two = scratch.notebooks()
    (scratch.root / "book" / "story.txt").write_text("# What is told.\none\n")
    folder = scratch.root / "data" / "machines"
    folder.mkdir()
    answer = {"asked": ["x"], "answer": 1}
    machine = machine_files.Machine("m", {"processor": "A chip", "cores": 2}, [answer])
    machine_files.save(machine, folder / f"m{machine_files.SUFFIX}")

    def of_here() -> list[bool]:
        return [not scratch.machine_of(path) for path in (one, two)]

    shutil.rmtree(scratch.build)
    build(scratch.root)
    assert of_here() == [True, False]
    assert "A chip, 2 cores" in page(scratch, "two") and "A chip" not in page(scratch, "one")
    assert "Laboratory" in origin_notes.of_the_book(scratch)
    assert building.is_up_to_date(scratch)
    for name in ("one", "two"):  # measured here; shown from the file
        source = contents.read(scratch.root / "notebooks" / f"{name}.ipynb")
        write(scratch.root, name, "print('otherwise')")
        assert not building.is_up_to_date(scratch)
        nbformat.write(source, scratch.root / "notebooks" / f"{name}.ipynb")
        assert building.is_up_to_date(scratch)
    build(scratch.root, everything=True)
    assert of_here() == [True, True] and "A chip" not in page(scratch, "two")
    # What was measured here once stays so, also when it has to be measured again.
    write(scratch.root, "two", "print('third')")
    build(scratch.root)
    assert of_here() == [True, True] and "third" in page(scratch, "two")
    (scratch.root / "book" / "story.txt").write_text("three\n")
    with pytest.raises(BookFailed, match="names no chapter: three"):
        build(scratch.root)


@pytest.mark.parametrize("text", ["[]", '{"one": []}', '{"one": "x"}', "{"])
def test_a_damaged_file_of_times_keeps_no_book_away(tmp_path: Path, text: str) -> None:
    file = tmp_path / places.LOCAL_NAME / "timing.json"
    file.parent.mkdir()
    file.write_text(text)
    with Timing(Book(tmp_path), ["one"], 1) as times, times.chapter("one", tmp_path / "spans"):
        pass
    assert json.loads(file.read_text())["chapters"]["one"]["kernel_s"] >= 0


def test_two_chapters_are_executed_side_by_side(scratch: Book) -> None:
    meet = (
        "import time\nfrom pathlib import Path\nPath('../{name}.here').touch()\n"
        "began = time.monotonic()\n"
        "while not Path('../{other}.here').exists(): assert time.monotonic() < began + 300"
    )
    for name, other in (("one", "two"), ("two", "one")):
        write(scratch.root, name, meet.format(name=name, other=other))
    assert [chapter.failure for chapter in execution.execute(scratch)] == ["", ""]


def test_an_interrupt_leaves_no_kernel(scratch: Book) -> None:
    noted = "import os, time; open('../kernel.pid', 'w').write(str(os.getpid()))"
    write(scratch.root, "one", noted, "time.sleep(600)")
    code = (
        "import pathlib, signal, sys, casebook.pages as pages\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "pages.build(pathlib.Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, scratch.root]
    build = subprocess.Popen(command, cwd=places.ROOT, stderr=subprocess.PIPE, text=True)
    pid_file = scratch.root / "kernel.pid"
    assert eventually(lambda: pid_file.exists() and pid_file.read_text(), 400)
    build.send_signal(signal.SIGINT)
    _, said = build.communicate(timeout=120)
    assert build.returncode != 0
    assert "KeyboardInterrupt" in said
    assert eventually(lambda: not alive(int(pid_file.read_text())))


def test_claims_reach_their_page_and_their_file(scratch: Book) -> None:
    write(
        scratch.root,
        "one",
        FINDINGS + "from casebook.laboratory.decisions import Window, decide\n"
        "claim('first', 'It is so.', 1.0, True, 's')\n"
        "claim('second', 'It is {value}.', None, not_here='no Python 2.7')\n"
        "claim('third', 'It is {value}.', decide([1.0, 1.4] * 4, Window(low=1.1)))",
        "from IPython.display import display\n"
        f"figure = {{'name': 'matrix', 'html': {FIGURE!r}}}\n"
        f"display({{{media.FIGURE!r}: figure}}, raw=True)",
    )
    rows = scratch.root / "data" / "published.csv"
    rows.write_text("id,system,python,n,metric\ntalk-serial-3,requests,3.7,3,wall\n")
    write(scratch.root, "two", FINDINGS + "compare('talk-serial-3', 1.01)")
    (scratch.root / "book" / "preface.md").write_text(
        "# Preface\n\n```{raw} html\n:file: ../_build/included/matrix.html\n```\n"
    )
    build(scratch.root)
    listed = json.loads((scratch.html / "claims.json").read_text())
    assert [entry["id"] for entry in listed] == ["first", "second", "third"]
    assert listed[0] == {
        "id": "first", "statement": "It is so.", "value": 1.0, "unit": "s", "n": 0,
        "spread": None, "interval": None, "window": None, "decided": None,
        "correlation": None, "outcome": "holds", "holds": True,
        "because": "", "attempts": [], "source": "live", "stack": "", "on": "", "chapter": "one",
    }  # fmt: skip
    claims, published, preface = (
        (scratch.html / "book" / f"{name}.html").read_text()
        for name in ("claims", "published", "preface")
    )
    assert "<strong>not-here</strong>: no Python 2.7" in claims
    assert "3 claims in this build: 1 holds, 1 is undecided, 1 cannot be measured here." in claims
    assert "Decided on a clock: 1 of them." in claims and "so 0.05 of these might be" in claims
    simulated = sum(error_rates.wrong_sides().values())
    assert f"has {simulated:.2g} of them there; " in claims and simulated < 0.02
    assert "by -0.88, where independent rounds would show -0.12; in 0 by more than 0.5" in claims
    assert "1 to 1.4<br>asked: above 1.1<br>a round with the next: -0.88 (independent:" in claims
    assert 'href="../notebooks/one.html#claim-first"' in claims
    assert "requests, Python 3.7, n = 3, wall" in published and "1.01 s" in published
    assert FIGURE in preface
    # What is neither reproduced nor explained fails a strict build.
    with pytest.raises(FindingsOtherwise, match="talk-serial-3"):
        build(scratch.root, strict=True)


#: A claim that takes its value from a stored measurement, which comes out differently each time.
MEASURED = (
    FINDINGS
    + """
import pandas as pd
from casebook import places
from casebook.laboratory import measurements
from casebook.laboratory.decisions import level
from casebook.laboratory.rounds import until_decided
places.RUNS = places.ROOT.__class__("../.casebook/runs").resolve()
def stored(name, measure):
    return measurements.stored_or_new(measurements.Key(name, [name], {}), measure)
def count(path=places.RUNS.parent / "taken.txt"):
    number = len(path.read_text().split()) if path.exists() else 0
    path.open("a").write("x ")
    return number
"""
)


@pytest.mark.slow  # four books of its own
def test_a_finding_that_came_out_otherwise_has_a_second_attempt_and_the_book_is_there(
    scratch: Book, capsys
) -> None:
    write(
        scratch.root,
        "two",
        MEASURED,
        # The first eight rounds take 0.9, all later ones 2: a machine that was slow for a while.
        "def take(rounds):\n"
        "    found = [stored(f'round-{r}', lambda r=r: {'wall_s': 0.9 if r < 9"
        " else 2.0}) | {'repeat': r, 'stack': 'a'} for r in rounds]\n"
        "    return pd.DataFrame(found)\n"
        "asked = level('wall_s', above=1.0)\n"
        "frame = until_decided(take, [asked])\n"
        "claim('slow-for-a-while', 'It is {value}.', asked.decide(frame), runs=frame)",
        "first = pd.DataFrame([stored('a-count', lambda: {'n': count()})])\n"
        "claim('counted', 'There are {value}.', first['n'][0], first['n'][0] > 0, runs=first)",
        "other = pd.DataFrame([stored('kept', lambda: {'n': count()})])\n"
        "claim('of-the-others', 'It is {value}.', other['n'][0], other['n'][0] >= 0, runs=other)",
        "claim('never', 'One is {value}.', 2, False)",
    )

    def built() -> dict[str, dict]:
        build(scratch.root)
        claims = json.loads((scratch.html / "claims.json").read_text())
        return {each["id"]: each for each in claims}

    told = built()
    slow = told["slow-for-a-while"]
    assert (slow["outcome"], slow["n"]) == ("undecided", 16)  # all runs together decide
    assert [each["n"] for each in slow["attempts"]] == [8, 16]
    counted, other = told["counted"], told["of-the-others"]
    assert (counted["outcome"], counted["value"], other["value"]) == ("otherwise", 0, 1)
    said = capsys.readouterr().err
    assert "of 4 findings, 1 holds, 1 is undecided, 2 came out otherwise" in said
    assert "otherwise: _build/html/notebooks/two.html#claim-never" in said
    # The next build measures again what was counted, and nothing else.
    ran(scratch)
    told = built()
    assert ran(scratch) == ["two"]
    assert "came out otherwise before, so it is measured again: counted" in capsys.readouterr().err
    counted, other = told["counted"], told["of-the-others"]
    assert (counted["outcome"], counted["value"], other["value"]) == ("holds", 2, 1)
    assert told["slow-for-a-while"]["n"] == 16
    # What rests on no measurement stands until something changes, and only a strict build minds.
    assert built()["never"]["outcome"] == "otherwise" and ran(scratch) == []
    with pytest.raises(FindingsOtherwise, match=r"never \(two\): One is 2"):
        build(scratch.root, strict=True)
    assert scratch.html.exists()


def test_code_is_folded_by_its_kind_and_the_checks_in_one(scratch: Book) -> None:
    term = "[a term](../book/glossary.md#term-Green-thread)"
    post = "[a post](../book/bibliography.md#cite-post)"
    made = {
        FINDINGS: ["plumbing"],
        "print('drawn')": ["plumbing"],
        "claim('in-the-text', 'Two is {value}.', 2, True)": ["evidence"],
        "claim('good', 'Two is {value}.', 2, True); claim('bad', 'It is {value}.', 2, False)": [
            "evidence"
        ],
        "compare('talk-serial-3', 3.1)": ["evidence"],
    }
    path = write(scratch.root, "two", *made, prose=f"{term}, {post}")
    notebook = nbformat.read(path, as_version=4)
    for cell, tags in zip(notebook.cells[2:], made.values(), strict=True):
        cell.metadata.tags = [*tags, "hide-input"]
    heading = nbformat.v4.new_markdown_cell("## All checks of this chapter\n\nThe others.")
    notebook.cells.insert(-2, heading)
    nbformat.write(notebook, path)
    build(scratch.root)
    text, checks = page(scratch, "two").split('<details class="checks">')
    assert checks.startswith(
        "<summary>2 claims beside those above: 1 holds, 1 came out otherwise. "
        "1 published number: 1 is reproduced.</summary>"
    )
    # Neighbours have one fold, below what they show; a claim that holds is in it.
    story, measured = text.split("<summary>how this was measured</summary>")
    assert ">drawn\n" in story and "drawn" in measured
    assert 'id="claim-in-the-text"' in measured and "in-the-text" not in story
    assert checks.count("<summary>how this was measured</summary>") == 2
    assert 'href="../book/claims.html#claim-good"' in checks
    assert 'href="../book/published.html#published-talk-serial-3"' in checks
    assert 'href="../book/glossary.html#term-Green-thread"' in text
    assert 'href="../book/bibliography.html#cite-post"' in text
    back = (scratch.html / "book" / "claims.html").read_text()
    assert 'href="../notebooks/two.html#claim-good"' in back
    side = (scratch.html / "book" / "machines.html").read_text()
    assert 'href="claims.html#claim-good"' in side and "amd-epyc-2core" in side
    # A finding of others that this book does not state is there, and leads nowhere.
    assert "ten threads take" in side and "claim-load-threads-locks-apart" not in side


def test_a_theme_that_changed_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<div id="pst-primary-sidebar"></div>')
    [problem] = accessibility.amend(links.page_files(tmp_path))
    assert re.search(r"no page has .*search-button.*theme-switch", problem)


def test_fresh_measures_all_of_it_again(scratch: Book) -> None:
    stored = scratch.root / places.LOCAL_NAME / places.RUNS.name
    stored.mkdir(parents=True)
    (stored / "x.json").write_text("{}")
    build(scratch.root, fresh=True)
    assert ran(scratch) == ["one", "two"]
    assert not (stored / "x.json").exists()


def test_a_published_row_that_no_chapter_names_fails_the_build(scratch: Book) -> None:
    (scratch.root / "data" / "published.csv").write_text("id\nstage1-27\n")
    with pytest.raises(BookFailed, match=r"rows of data/published\.csv: stage1-27\."):
        build(scratch.root)


def test_an_id_that_is_used_twice_fails_the_build(scratch: Book) -> None:
    for name in ("one", "two"):
        write(scratch.root, name, FINDINGS + "claim('same', 'It is {value}.', 1, True)")
    with pytest.raises(BookFailed, match="claim same is made twice, in one and in two"):
        build(scratch.root)
    assert ran(scratch) == []  # before anything is measured


def test_what_sphinx_warns_of_fails_the_build(scratch: Book) -> None:
    (scratch.root / "book" / "preface.md").write_text(
        "# Preface\n\n"
        "[there](nowhere.md)\n"
        "[there](#no-such-heading)\n"
        "{glue:text}`../notebooks/one.ipynb::no-such-key:.1f`\n"
        "{cite}`nobody2019`\n"
        "{no-such-role}`x`\n"
    )
    gone = "[a term](../book/glossary.md#term-gone) [a post](../book/bibliography.md#cite-gone)"
    write(scratch.root, "two", prose=gone)
    with pytest.raises(BookFailed) as failure:
        build(scratch.root)
    message = str(failure.value)
    assert "book/preface.md:3: WARNING" in message
    named = "nowhere.md no-such-heading no-such-key nobody2019 no-such-role term-gone cite-gone"
    assert [name for name in named.split() if name not in message] == []
    assert str(scratch.root) not in message
    assert (scratch.html / "book" / "preface.html").exists()


def test_sphinx_executes_nothing(scratch: Book) -> None:
    write(scratch.root, "one", "print('not executed')")
    with pytest.raises(BookFailed, match=r"one\.ipynb has not been executed as it is now"):
        rendering.render(scratch, [], Records([], [], [], []))
    assert ran(scratch) == []


def test_links_are_checked_between_pages(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="sub/page.html#here">fine</a> <a href="sub/page.html#gone">no</a>'
        '<a href="https://example.org/">elsewhere</a> <a href="missing.html">no</a>'
        '<img src="data:image/png;base64,AA=="> <img src="picture.png">'
    )
    (tmp_path / "sub" / "page.html").write_text(
        '<p id="here"><a href="../index.html">fine</a><a href="#here">fine</a>'
        '<script src="https://cdn.example.org/x.js"></script>'
    )
    assert links.problems(tmp_path) == [
        "index.html: sub/page.html#gone has no such anchor",
        "index.html: missing.html does not exist",
        "index.html: picture.png does not exist",
        "sub/page.html: https://cdn.example.org/x.js is loaded from another site",
    ]


def test_what_is_required_and_missing_is_named(
    scratch: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEBOOK_REQUIRE", "no-such-server,1.9")
    with pytest.raises(BookFailed, match=r"asks for 1\.9, no-such-server"):
        build(scratch.root)
    assert ran(scratch) == []


def test_a_page_without_a_file_is_named(scratch: Book) -> None:
    (scratch.root / "_toc.yml").write_text(TOC + "- file: notebooks/three\n")
    with pytest.raises(BookFailed, match="names notebooks/three"):
        build(scratch.root)


@pytest.mark.slow  # a book of its own: as `fresh` above, but for the link
def test_what_this_machine_made_may_lie_behind_a_link(scratch: Book, monkeypatch, tmp_path) -> None:
    """A folder of another name, on a larger disk, say."""
    elsewhere, local = tmp_path / "on-a-larger-disk", scratch.root / places.LOCAL_NAME
    local.rename(elsewhere)
    local.symlink_to(elsewhere)
    (elsewhere / "runs").mkdir(exist_ok=True)
    (elsewhere / "runs" / "x.json").write_text("{}")
    monkeypatch.setattr(places, "LOCAL", elsewhere)
    build(scratch.root, fresh=True)
    assert not (elsewhere / "runs" / "x.json").exists()
    kept = json.loads((elsewhere / "timing.json").read_text())
    assert set(kept["chapters"]) == {"one", "two"}


def test_a_page_is_stale_when_a_key_is(scratch: Book, monkeypatch, tmp_path) -> None:
    """Certifi's certificates, and what an environment holds: keys see both."""
    before = staleness.of_surroundings(scratch)
    assert staleness.of_surroundings(scratch) == before
    fingerprint = environments.fingerprint
    with monkeypatch.context() as changed:
        changed.setattr(environments, "fingerprint", lambda stack: fingerprint(stack) + "!")
        assert staleness.of_surroundings(scratch) != before
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n")
    monkeypatch.setattr(trust.certifi, "where", lambda: str(bundle))
    assert staleness.of_surroundings(scratch) != before
