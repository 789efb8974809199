"""Builds the book: casebook.pages says in what order."""

import ast
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from casebook import places, stacks
from casebook.cases.bookstore import line
from casebook.errors import BookFailed, CasebookError, FindingsOtherwise
from casebook.findings import published
from casebook.laboratory import machine_files
from casebook.laboratory.decisions import OTHERWISE, UNDECIDED
from casebook.laboratory.progress import Progress
from casebook.pages import (
    execution,
    last_build,
    ledger,
    records,
    rendering,
    resting,
    statements,
    timing,
)
from casebook.pages.contents import Book, code_cells, read, tree
from casebook.pages.refreshing import Refreshing
from casebook.stacks import environments, pythons

#: How many chapters are written before the first pages, on a fresh clone.
FIRST = 3
#: How finely machine files are told apart by the findings that they lack: in twentieths.
PARTS = 20


def build(
    root: Path = places.ROOT,
    strict: bool = False,
    fresh: bool = False,
    file: Path | None = None,
    everything: bool = False,
) -> Path:
    """Bring the book under `root` up to date; returns the first page.

    Measures the story (book/story.txt), and of the laboratory what was measured here before, and
    new chapters; the rest of the laboratory is written from the file of the machine most like this
    one.

    Parameters:
        root: of the book.
        strict: raise FindingsOtherwise when a finding came out otherwise.
        fresh: measure again, whatever is stored.
        file: write the book of this machine file, and measure nothing. A chapter with a cell that
            it has no answer to shows the first of the other machines that have all of it.
        everything: measure the whole laboratory, too.

    The pages are written in any case. Then BookFailed is raised if a chapter did not run to its
    end, a page is not as it should be, a row of data/published.csv is compared with in no chapter,
    or, in a strict build, a cell has no answer in the machine's file. Tells its progress on
    standard error.
    """
    book = Book(root)
    last_build.forget(book)
    if file:
        return _write_from(book, file)
    _check_required()
    _check_ids(book)
    if fresh:
        for folder in (book.executed, book.runs):
            shutil.rmtree(folder, ignore_errors=True)
    nearest = _most_alike(book)
    if nearest and not strict and not _is_there(book):  # nobody waits to read a strict build
        _write_first_pages(book, nearest)
    chapters = _measure(book, _to_measure(book, nearest, everything))
    collected = records.collect(book, chapters)
    first_page, problems = rendering.render(book, chapters, collected)
    # Only now: the page of comparisons shows an author what is missing.
    problems = problems or _not_compared(book, collected)
    holes = _holes(chapters)
    if strict:
        problems = [*problems, *holes]
    summary = _summary(book, collected, first_page)
    last_build.print_summary(summary)
    if problems:
        advice = " `make book` tries again what failed; `make fresh` measures all of it again."
        raise last_build.failure(problems, advice)
    lines = _otherwise(collected)
    if not lines and not holes:
        last_build.keep(book, last_build.stamp(book, everything), summary)
    if strict and lines:
        raise FindingsOtherwise(
            f"{len(lines)} findings came out otherwise:\n" + "\n".join(lines) + "\n"
            "`make book STRICT=1` measures again what was counted; `make fresh STRICT=1`, all."
        )
    return first_page


def is_up_to_date(book: Book) -> bool:
    """Say whether a build would execute nothing.

    Then every chapter has run as it is, on this machine or from the machine file that stands in for
    it.
    """
    nearest = _most_alike(book)
    measured_here = _to_measure(book, nearest)
    other_paths = [path for path in book.notebooks() if path not in measured_here]
    return not execution.stale_notebooks(book, measured_here) and not (
        other_paths and execution.stale_notebooks(book, other_paths, _whole_builds(book))
    )


def _to_measure(book: Book, nearest: Path | None, everything: bool = False) -> list[Path]:
    """Return the notebooks that this machine measures.

    They are the story, what of the laboratory it has measured before, and chapters that the nearest
    machine did not have when its file was written. Without such a file, or with `everything`, all.
    """
    story = book.story()
    if everything or nearest is None:
        return book.notebooks()
    known = machine_files.read_kept(nearest).chapters

    def is_of_here(path: Path) -> bool:
        executed = (book.executed / path.name).exists()
        return executed and not book.machine_of(path) and not book.is_waiting(path)

    def is_new(path: Path) -> bool:
        return bool(known) and path.stem not in known  # older files do not say

    return [p for p in book.notebooks() if p in story or is_of_here(p) or is_new(p)]


def _is_there(book: Book) -> bool:
    """Say whether there are pages in which each chapter has its numbers.

    They are missing where the last build was interrupted.
    """
    has_pages = (book.html / "index.html").exists()
    return has_pages and not any(map(book.is_waiting, book.notebooks()))


def _write_first_pages(book: Book, nearest: Path) -> None:
    """Write the book of a machine like this one, to be read while this one is measured."""
    try:
        _write_from(book, nearest, first=FIRST)
    except CasebookError as error:  # this machine's own is still to come
        print(f"casebook: {error}", file=sys.stderr, flush=True)
    print("now this machine is measured: a page shows it when it is loaded again",
          file=sys.stderr, flush=True)  # fmt: skip


def _measure(book: Book, chosen: list[Path]) -> list[execution.Chapter]:
    """Execute the chosen notebooks here, and the others from the machines most like this one."""
    unmeasured = [path for path in book.notebooks() if path not in chosen]
    if unmeasured:
        execution.execute(book, _whole_builds(book), only=unmeasured)
    if not execution.stale_notebooks(book, chosen):
        return execution.chapters(book)
    if book.root == places.ROOT:
        _prepare(chosen)
    with Refreshing(book) as pages:
        return execution.execute(
            book, chapter_done=pages.chapter_done, only=chosen, expected=_expected_times(book)
        )


def _expected_times(book: Book) -> dict[str, timing.ChapterTime]:
    """Return what the chapters may take here, by the most alike of the machines that noted it."""
    for path in _by_likeness(book):
        machine = machine_files.read_kept(path)
        if machine.chapters:
            return timing.on_this_machine(machine)
    return {}


def _not_compared(book: Book, collected: records.Records) -> list[str]:
    """Return, as a problem, the rows of data/published.csv that no chapter compares itself with."""
    compared = {comparison.id for comparison in collected.comparisons}
    missing = [row for row in book.published() if row not in compared]
    return [
        "No chapter compares itself with these rows of data/published.csv: "
        f"{', '.join(missing)}. Call published.compare for each, at least to say why not."
    ] * bool(missing)


def _write_from(book: Book, file: Path, first: int | None = None) -> Path:
    """Write the book of a machine file.

    Parameters:
        book: where it is written.
        file: of the machine.
        first: after this many chapters, write the pages once, for a reader who waits.

    Returns the first page. Raises MachineFileRefused, and BookFailed as `build`.
    """
    machine = machine_files.read_kept(file)
    others = [path for path in _whole_builds(book) if path.resolve() != file.resolve()]
    print(f"writing the book of {machine.label}, from {file.name}: this measures nothing",
          file=sys.stderr, flush=True)  # fmt: skip
    if first and not (book.html / "index.html").exists():
        first_chapters = execution.execute(book, [file, *others], only=book.notebooks()[:first])
        first_page, _ = rendering.render(
            book, first_chapters, records.collect(book, first_chapters, machine), is_last=False
        )
        print(f"the first {first} chapters can be read: {first_page.relative_to(book.root)}; the "
              "others follow", file=sys.stderr, flush=True)  # fmt: skip
    chapters = execution.execute(book, [file, *others])
    collected = records.collect(book, chapters, machine)
    first_page, problems = rendering.render(book, chapters, collected)
    last_build.print_summary(_summary(book, collected, first_page))
    files = {path.stem: book.machine_file_of(path) for path in book.notebooks()}
    if elsewhere := [stem for stem, name in files.items() if name != file.name]:
        print(f"chapters that {file.name} cannot answer whole, which show another machine's: "
              f"{', '.join(elsewhere)}", file=sys.stderr, flush=True)  # fmt: skip
    if missing := sum(len(execution.not_in_file(chapter.notebook)) for chapter in chapters):
        print(f"cells that {file.name} has no answer to, and that say so: {missing}",
              file=sys.stderr, flush=True)  # fmt: skip
    if problems:
        raise last_build.failure(problems)
    return first_page


def _most_alike(book: Book) -> Path | None:
    """Choose the file of the machine that is most like this one; None if there is no file."""
    return next(iter(_by_likeness(book)), None)


def _whole_builds(book: Book) -> list[Path]:
    """Return the files of machines that have built a book, the one most like this one first."""
    files = _by_likeness(book)
    return [path for path in files if machine_files.read_kept(path).findings] or files[:1]


def _by_likeness(book: Book) -> list[Path]:
    """Return the machine files, the one of the machine most like this one first.

    A whole build comes before the reference run, which answers what no quick build asks; a file
    that also says what statements of chapters saw before one of the time when that was not kept;
    and one that knows today's findings before one that lacks another twentieth of them, whose
    pages would have holes. Of two machines that are equally like this one, the first is that of the
    same processor, of the same maker, or whose file says what each chapter took.
    """
    processor = machine_files.processor()
    files = sorted((book.root / "data" / "machines").glob(f"*{machine_files.SUFFIX}"))
    cells = (cell for path in book.notebooks() for cell in code_cells(read(path)))
    ids = {id for cell in cells for id, _ in statements.claims_in(tree(cell).body)}

    def rank(path: Path) -> tuple[Any, ...]:
        machine = machine_files.read_kept(path)
        questions = (answer.get("asked") or [""] for answer in machine.answers)
        return (
            not machine.findings,
            all(question[0] != statements.KIND for question in questions),
            PARTS * len(ids - machine.findings.keys()) // max(1, len(ids)),
            machine_files.unlikeness(machine.about),
            machine.about.get("processor") != processor,
            machine.about.get("processor", "").split()[:1] != processor.split()[:1],
            not machine.chapters,
        )

    return sorted(files, key=rank)


def _holes(chapters: Iterable[execution.Chapter]) -> list[str]:
    """Return a line for each chapter with cells that its machine file has no answer to.

    What such a cell does not state is missing elsewhere, so that Sphinx's complaints do not count.
    """
    numbers = {chapter.stem: len(execution.not_in_file(chapter.notebook)) for chapter in chapters}
    return [
        f"{stem}: {number} cells that its machine file has no answer to, so no link was checked "
        "(`make book ALL=1` measures it; data/README.md says how the file is renewed)"
        for stem, number in numbers.items()
        if number
    ]


def _otherwise(collected: records.Records) -> list[str]:
    """Return the findings of this machine that fail a strict build, a line each."""
    findings = execution.otherwise(collected.findings)
    rows = [row for row in collected.comparisons if published.UNEXPLAINED in row.why]
    return [
        *(f"{finding.id} ({finding.chapter}): {finding.statement}" for finding in findings),
        *(f"{row.id} ({row.chapter}): published {row.published}, here "
          f"{row.measured_text}, and no reason is given" for row in rows),
    ]  # fmt: skip


def _check_required() -> None:
    """Raise BookFailed if something that CASEBOOK_REQUIRE names is not on this machine.

    For a line, MissingInterpreter.
    """
    required = environments.required()
    if line.LINE in required:
        line.not_here()
    missing = [
        name
        for name in sorted(required - {line.LINE})
        if not (environments.find_interpreter if name[0].isdigit() else shutil.which)(name)
    ]
    if missing:
        raise BookFailed(
            f"CASEBOOK_REQUIRE asks for {', '.join(missing)}, which this machine does not have. "
            "Install it, or leave it out of CASEBOOK_REQUIRE."
        )


def _check_ids(book: Book) -> None:
    """Raise BookFailed, before anything is measured, if two chapters use one id.

    An id is that of a claim, or of a published number that a chapter compares itself with.
    """
    chapters: dict[tuple[str, str], list[str]] = {}
    for path in book.notebooks():
        cells = [tree(cell) for cell in code_cells(read(path))]
        for key in sorted({key for cell in cells for key in _ids_in(cell)}):
            chapters.setdefault(key, []).append(path.stem)
    lines = [
        records.made_twice(kind, id, stems)
        for (kind, id), stems in chapters.items()
        if len(stems) > 1
    ]
    if lines:
        raise BookFailed("\n".join(lines))


def _ids_in(cell: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield what a cell states or compares, as (kind, id), where the code says its id."""
    kinds = {"claim": "claim", "compare": "comparison"}
    for node in ast.walk(cell):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            if name in kinds:
                yield kinds[name], str(node.args[0].value)


def _prepare(chosen: Collection[Path]) -> None:
    """Make the environments that these chapters ask for and that can run here, side by side."""
    final_states = ("ready", "no interpreter")
    if line := pythons.offer():
        print(line, file=sys.stderr, flush=True)
    named_stacks = _named_in(chosen)
    todo = [
        stack for stack in named_stacks if environments.status(stack)["state"] not in final_states
    ]
    if not todo:
        return
    with Progress(len(todo), "making environments", "environment") as progress:
        try:
            environments.ensure_all(todo, progress.print_line, progress.step)
        except CasebookError as error:
            # The chapters that need it will say so; the others can go on.
            print(f"casebook: {error}", file=sys.stderr, flush=True)


def _named_in(chosen: Collection[Path]) -> list[stacks.Stack]:
    """Return the stacks that these chapters name; all of them for the whole book.

    What a chapter asks for in another way, it makes itself.
    """
    if len(chosen) == len(Book(places.ROOT).notebooks()):
        return stacks.of_chapters()
    code = "\n".join(cell.source for path in chosen for cell in code_cells(read(path)))
    return [stack for stack in stacks.of_chapters() if f'"{stack.name}"' in code]


def _summary(book: Book, collected: records.Records, first_page: Path) -> str:
    """Return the last lines of a build: how findings came out, and where the others are.

    The others are those that do not hold.
    """
    lines = []
    for finding in collected.findings:
        if finding.outcome in (OTHERWISE, UNDECIDED):
            page = f"{book.html.relative_to(book.root)}/notebooks/{finding.chapter}.html"
            lines.append(f"  {finding.outcome}: {page}#claim-{finding.id}")
    if collected.findings:
        outcomes = ledger.came_out(finding.outcome for finding in collected.findings)
        lines.append(f"of {len(collected.findings)} findings, {outcomes}")
    # Sphinx may have ended before it wrote the list; that is among the problems then.
    sentences = resting.listed(book) if (book.html / resting.LISTED).exists() else []
    if marked := sum(bool(sentence.shown) for sentence in sentences):
        lines.append(
            f"sentences that rest on what did not hold, and say so: {marked} "
            "(`python -m casebook rests --marked` lists them)"
        )
    lines.append(f"the book is ready: {first_page.relative_to(book.root)}")
    return "\n".join(lines)
