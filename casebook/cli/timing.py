"""Show where the time of the last build went, in seconds."""

from argparse import ArgumentParser, Namespace

from casebook.cli import machine
from casebook.errors import RunFailed, UsageError


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    against_help = (
        "a machine file: exit with 1 if the chapters took a quarter longer than it lets expect"
    )
    parser.add_argument("--against", metavar="FILE", help=against_help)


def run(options: Namespace) -> None:
    """Print the times of the last build, and compare them with a machine file's."""
    from casebook import places
    from casebook.pages import timing
    from casebook.pages.contents import Book

    book = Book(places.ROOT)
    try:
        print(timing.table(book))
    except FileNotFoundError:
        raise UsageError("nothing was measured here yet: `make book` does") from None
    if options.against:
        other = machine.machine_of(options.against)
        expected = timing.on_this_machine(other)
        times = timing.growth(timing.read(book), expected)
        if times is None:
            raise UsageError(f"{other.name} does not say what its chapters took")
        line = f"{times:.2f} times what {other.name} lets expect of this processor"
        if times > timing.MOST_GROWTH:
            raise RunFailed(f"the chapters took {line}, above {timing.MOST_GROWTH}: see the table")
        print(f"the chapters took {line}")
