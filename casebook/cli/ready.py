"""Say, on the evening before a lesson, whether this machine is ready."""

from argparse import ArgumentParser, Namespace

from casebook.errors import CasebookError


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    chapters_help = "numbers, like 1 2 3; default: all"
    parser.add_argument("chapter", nargs="*", metavar="CHAPTER", help=chapters_help)


def run(options: Namespace) -> None:
    """Print what is ready, line by line; raises CasebookError if something is not."""
    from casebook import places
    from casebook.classroom import ready
    from casebook.pages.contents import Book

    book = Book(places.ROOT)
    missing = 0
    for is_ready, line in ready.lines(ready.chapters(book, options.chapter)):
        print(line, flush=True)
        missing += not is_ready
    if missing:
        raise CasebookError(f"{missing} not ready: the lines above say why.")
