"""Execute what changed, decide the claims, write the pages."""

import signal
from argparse import ArgumentParser, Namespace
from pathlib import Path

from casebook.cli import machine
from casebook.errors import UsageError


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    add = parser.add_argument
    add("--strict", action="store_true", help="exit with 1 if a finding comes out otherwise")
    add("--all", action="store_true", dest="everything",
        help="measure the whole laboratory, not only the story")  # fmt: skip
    add("--fresh", action="store_true", help="measure again, whatever is stored")
    add("--machine", metavar="FILE", help="write the book of this machine file; measure nothing")
    add("--program", type=Path, metavar="FILE", help="a report of doctor.py run --json, for a page")


def run(options: Namespace) -> None:
    """Build the book of this machine, or of a machine file."""
    from casebook import pages, places
    from casebook.pages import program_report

    # SIGTERM leaves no kernel behind either, nor does an interrupt that a shell ignores for its
    # background jobs.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if options.machine and (options.strict or options.fresh or options.everything):
        excluded = "--strict, --fresh and --all"
        raise UsageError(f"--machine writes what was measured there: leave out {excluded}")
    program_report.keep(places.ROOT, options.program)
    file = machine.file_of(options.machine) if options.machine else None
    pages.build(
        strict=options.strict, fresh=options.fresh, file=file, everything=options.everything
    )
