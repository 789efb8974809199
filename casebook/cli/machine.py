"""Save what a machine measured as a file, and compare such files."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from casebook.cli import cluster
from casebook.cli.subcommands import add_subcommands
from casebook.errors import UsageError

#: What these files are called.
_NAME = "its name ends in .jsonl.xz"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the subcommands and what they take."""
    add = add_subcommands(parser)
    saving = add("save", save, "Write what this machine measured in its builds")
    saving.add_argument("file", type=Path, metavar="FILE", help=_NAME)
    complete_help = "measure first what no quick build does (some ten minutes)"
    saving.add_argument("--complete", action="store_true", help=complete_help)
    cluster.add_address(saving)
    comparing = add("compare", compare, "Lay machines side by side, the differences first")
    files_help = "files; `here`, `reference`, or names of machines in data/machines"
    comparing.add_argument("file", nargs="+", metavar="FILE", help=files_help)
    page_help = "write a sheet to print: what a class measured"
    comparing.add_argument("--page", type=Path, metavar="HTML", help=page_help)
    comparing.add_argument("--title", default="What our class measured", help="of that sheet")
    labs_help = "Measure what the labs' graders ask, for machines that cannot"
    measuring = add("labs", measure_for_labs, labs_help)
    measuring.add_argument("file", type=Path, metavar="FILE", help=_NAME)


def save(options: Namespace) -> None:
    """Write what this machine measured, or each worker of a cluster."""
    from casebook.laboratory import machine_files

    _check_name(options.file)
    if options.on:
        return _save_on(options)
    if options.complete:
        from casebook.cases import reference_run

        reference_run.complete()
    machine = _this_machine()
    size = machine_files.save(machine, options.file)
    print(
        f"{options.file}: {machine.label}; {len(machine.answers):,} answers, "
        f"{len(machine.findings)} findings, {size:,} bytes"
    )


def _save_on(options: Namespace) -> None:
    from casebook.cases.many import cluster as workers

    failed = []
    for worker, file, message in workers.save(options.on, cluster.keys(options), options.file):
        if file is None:
            failed.append(f"{worker}: {message}")
        else:
            print(f"{file}: {message}", flush=True)
    workers.all_came(failed)


def compare(options: Namespace) -> None:
    """Print how machines differ, or write the sheet of a class."""
    from casebook.classroom import certificate
    from casebook.findings import side_by_side

    windows = side_by_side.windows(_findings())
    machines = [side_by_side.judged_today(machine_of(name), windows) for name in options.file]
    if options.page:
        options.page.write_text(certificate.page(machines, options.title), encoding="utf-8")
        print(f"{options.page}: open it in a browser, and print it")
    else:
        print(side_by_side.text(machines))


def measure_for_labs(options: Namespace) -> None:
    """Measure what the graders of the labs ask, and write it."""
    from casebook.classroom import grading
    from casebook.laboratory import machine_files

    _check_name(options.file)
    answers = grading.measure_answers()
    about = machine_files.describe() | machine_files.steadiness(answers)
    size = machine_files.save(machine_files.Machine("here", about, answers), options.file)
    print(f"{options.file}: {len(answers)} answers to what the labs ask, {size:,} bytes")


def machine_of(name: str) -> Any:
    """Return the machine of a file, of one that comes with the book, or `here`: this one."""
    from casebook.laboratory import machine_files, reference

    if name == "here":
        return _this_machine()
    return machine_files.read(reference.file() if name == "reference" else file_of(name))


def file_of(name: str) -> Path:
    """Return a machine file, by its path, or by its name if it comes with the book."""
    from casebook.laboratory import machine_files

    by_name = {path.name.removesuffix(machine_files.SUFFIX): path for path in machine_files.files()}
    return by_name.get(name, Path(name)).absolute()


def _this_machine() -> Any:
    from casebook.laboratory import machine_files

    findings = (finding.as_json() for finding in _findings())
    return machine_files.of_this_machine(findings, _chapters())


def _chapters() -> dict[str, dict[str, float]]:
    """Return what each chapter took here when it measured most; empty before the first build."""
    from casebook.pages import timing
    from casebook.pages.contents import Book
    from casebook.places import ROOT

    return {stem: asdict(time) for stem, time in timing.read_measured(Book(ROOT)).items()}


def _findings() -> list[Any]:
    """Return the findings of the last build; empty before the first."""
    from casebook.pages import ledger
    from casebook.pages.contents import Book
    from casebook.places import ROOT

    folder = Book(ROOT).html
    return ledger.read(folder) if (folder / ledger.FINDINGS_FILE).exists() else []


def _check_name(file: Path) -> None:
    from casebook.laboratory import machine_files

    if not file.name.endswith(machine_files.SUFFIX):
        raise UsageError(f"{file.name}: a machine file's name ends in {machine_files.SUFFIX}")
