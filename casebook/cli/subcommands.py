"""Commands within a command, such as `machine save`."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable

Run = Callable[[Namespace], None]


def add_subcommands(parser: ArgumentParser) -> Callable[[str, Run | None, str], ArgumentParser]:
    """Return a function that adds a command: its name, what runs it, and its help.

    Nothing runs one that has subcommands itself.
    """
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Run | None, purpose: str) -> ArgumentParser:
        subparser = subparsers.add_parser(name, help=purpose, description=purpose)
        subparser.set_defaults(run=run)
        return subparser

    return add
