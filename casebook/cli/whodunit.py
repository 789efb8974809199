"""Write a program with one culprit or none, and judge who says who did it."""

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from casebook.cli.subcommands import add_subcommands


def add_arguments(parser: ArgumentParser) -> None:
    """Add the subcommands and what they take."""
    add = add_subcommands(parser)
    case = add("new", write_case, "Write a student's case and program")
    case.add_argument("--seed", required=True, metavar="NAME", help="the student's name")
    case.add_argument("--secret", type=Path, metavar="FILE", help="a secret, to draw the culprits")
    case.add_argument("--into", type=Path, default=Path("whodunit"), metavar="FOLDER")
    running = add(
        "run", run_department, "run a department, counted by the server, and keep the run"
    )
    running.add_argument("folder", type=Path, metavar="FOLDER")
    running.add_argument("department", metavar="pages|ledger|shelf|notices")
    running.add_argument("--n", type=int, default=10, help="pages")
    running.add_argument("--scheme", choices=("https", "http"), default="https")
    accusation = add("answer", accuse, "Accuse, with runs as evidence")
    accusation.add_argument("folder", type=Path, metavar="FOLDER")
    accusation.add_argument("--culprit", required=True)
    accusation.add_argument("--evidence", nargs="+", default=[], metavar="ID", help="ids of runs")
    marking = add("mark", mark, "Judge all answers below a folder")
    marking.add_argument("folder", type=Path, metavar="FOLDER")
    marking.add_argument("--secret", type=Path, metavar="FILE")
    marking.add_argument("--page", type=Path, metavar="HTML", help="write a sheet for the wall")


def write_case(options: Namespace) -> None:
    """Write a student's case and program."""
    from casebook.classroom import whodunit

    folder = whodunit.new(options.seed, options.into, whodunit.secret_of(options.secret))
    print(f"{folder}: read case.md")


def run_department(options: Namespace) -> None:
    """Run a department, and print what the server counted."""
    from casebook.classroom import whodunit

    result = whodunit.run(options.folder, options.department, options.n, options.scheme)
    print(json.dumps({"id": result.id, **asdict(result), "shows": result.shows}, indent=2))


def accuse(options: Namespace) -> None:
    """Keep an accusation with its evidence."""
    from casebook.classroom import whodunit

    print(whodunit.answer(options.folder, options.culprit, options.evidence))


def mark(options: Namespace) -> None:
    """Judge all answers below a folder, on the terminal or as a sheet."""
    from casebook.classroom import whodunit

    marks = whodunit.mark(options.folder, whodunit.secret_of(options.secret))
    print(whodunit.marks_text(marks))
    if options.page:
        options.page.write_text(whodunit.marks_page(marks), encoding="utf-8")
        print(f"{options.page}: open it in a browser, and print it")
