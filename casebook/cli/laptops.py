"""Pack one archive for laptops that have no network."""

from argparse import ArgumentParser, Namespace
from pathlib import Path


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    file_help = "such as ../class.tar.gz"
    parser.add_argument("file", type=Path, metavar="FILE", help=file_help)


def run(options: Namespace) -> None:
    """Pack the archive, and say what is in it."""
    from casebook.classroom import laptops

    print(laptops.pack(options.file))
