"""The command line, `python -m casebook COMMAND`: a module of this folder for each command.

A module's docstring says what the command does, `add_arguments` what it takes, and `run` does it;
or it has subcommands, each with a function of its own. What a command needs is imported when it
runs, so that the help is there at once.
"""

import errno
import os
import select
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from casebook.cli import (
    book,
    cluster,
    course,
    grade,
    laptops,
    machine,
    measure,
    quotes,
    ready,
    record,
    rests,
    serve,
    stacks,
    timing,
    whodunit,
)  # fmt: skip
from casebook.cli.subcommands import add_subcommands
from casebook.errors import CasebookError, UsageError

#: All commands, in the order of the help.
COMMANDS = (
    serve, stacks, measure, machine, cluster, grade, course, ready, laptops, whodunit, record,
    book, timing, quotes, rests,
)  # fmt: skip

#: The system's errors for a disk that takes no more: full, over its quota, read-only, too large.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


def skip_grammars() -> None:
    """Keep jsonschema, which nbformat imports, from making 38 grammars of addresses, for seconds.

    It does without, and no schema of a notebook asks for an address.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m casebook", description="The instruments of the book.")
    add = add_subcommands(parser)
    for module in COMMANDS:
        name, purpose = module.__name__.rpartition(".")[2], (module.__doc__ or "").rstrip(".")
        subparser = add(name, getattr(module, "run", None), purpose)
        module.add_arguments(subparser)
    return parser


def _reader_has_left() -> bool:
    """Return whether nobody reads our output any more. If so, the rest of it goes nowhere."""
    output = select.poll()
    output.register(sys.stdout, 0)  # asks for nothing: errors are reported anyway
    if not output.poll(0):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at its end
    return True


def _is_named(filename: object, options: Namespace) -> bool:
    """Return whether the command line names this file, its folder, or what it is a draft of."""
    if not isinstance(filename, str):
        return False
    names = [value for value in vars(options).values() if isinstance(value, str | Path) and value]
    return any(os.path.abspath(filename).startswith(os.path.abspath(name)) for name in names)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit status.

    It is 0, 1 (it failed), 2 (wrong usage) or 3 (a submission was not graded completely).

    As in a shell: 130 after Ctrl-C, 141 if nobody reads the output to its end (`| head`).
    """
    skip_grammars()
    try:
        options = _parser().parse_args(arguments)
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_has_left():
            raise
        return 141
    except CasebookError as error:
        print(f"casebook: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if error.errno in NO_ROOM:
            advice, status = ": make room, then run the same command again.", 1
        elif _is_named(error.filename, options):
            advice, status = "", UsageError.exit_code
        else:
            raise
        name = f" ({error.filename})" if error.filename else ""
        print(f"casebook: {error.strerror}{name}{advice}", file=sys.stderr)
        return status
    except KeyboardInterrupt:
        return 130
    return 0
