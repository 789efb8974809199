"""The command line: serve, stacks, measure, record, book."""

import json
import os
import select
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from casebook.errors import CasebookError, UsageError


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--n is {text!r}; give whole numbers, like 3,5,10") from None


def _serve(options: Namespace) -> None:
    from casebook import server

    given = [name for name in ("engine", "delay", "http1_only") if getattr(options, name)]
    if not options.bookstore:
        if given:
            raise UsageError(f"--{given[0].replace('_', '-')} is for --bookstore")
        server.serve(partial(server.start, "http" if options.plain else "https", options.port))
        return
    from casebook.cases.bookstore.store import open_store

    if options.plain:
        raise UsageError("the bookstore is served over TLS, by one of --engine")
    how = {"delay_s": options.delay or 0.0, "port": options.port}
    engine = options.engine or "twisted"
    server.serve(partial(open_store, engine, options.http1_only, **how))


def _stacks(options: Namespace) -> None:
    from casebook import stacks
    from casebook.stacks import environments

    states = [environments.status(stack) for stack in stacks.load().values()]
    if options.json:
        print(json.dumps(states, indent=2))
        return
    width = max(len(state["name"]) for state in states)
    for state in states:
        print(
            f"{state['name']:<{width}}  {state['state']:<14} "
            f"{state['interpreter'] or '-':<8} {' > '.join(state['steps'])}"
            + (f"  + {state['patch']}" if state["patch"] else "")
        )
        print(f"{'':<{width}}  {state['about']}")


def _measure(options: Namespace) -> None:
    from casebook import server
    from casebook.runs import analysis
    from casebook.runs.measure import measure_runs
    from casebook.runs.run_record import frame

    scheme, target = options.scheme, None
    if options.url:
        scheme, colon, _ = options.url.partition("://")
        if not colon:
            raise UsageError(f"--url is {options.url!r}; it starts with https:// or http://")
        target = server.Server(options.url.rstrip("/"), options.ca_file)
    measured = measure_runs(
        options.stack,
        n=options.n,
        delay_s=options.delay,
        repeats=options.repeats,
        client=options.client,
        scheme=scheme,
        trust=options.trust,
        target=target,
    )
    if options.json:
        for run in measured:
            print(json.dumps(asdict(run)))
        return
    table = analysis.summary(frame(measured)).drop(columns=["scheme", "source"])
    print(table.round(3).to_string(index=False))


def _record(options: Namespace) -> None:
    from casebook.cases import reference_run
    from casebook.charts import picture

    reference_run.record(options.only)
    picture.write()


def _book(options: Namespace) -> None:
    from casebook import pages

    # No kernel is left by SIGTERM either, nor by an interrupt that a shell has ignored for what it
    # starts in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    pages.build(strict=options.strict, fresh=options.fresh)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m casebook", description="The instruments of the book.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    switch: dict[str, Any] = {"action": "store_true"}

    def command(name: str, do: Callable[[Namespace], None], what_for: str) -> Callable[..., Any]:
        made = commands.add_parser(name, help=what_for)
        made.set_defaults(do=do)
        return made.add_argument

    add = command("serve", _serve, "run the lab server, or the bookstore, until Ctrl-C")
    add("--port", type=int, default=0, help="default: one that is free")
    add("--plain", **switch, help="HTTP instead of HTTPS")
    add("--bookstore", **switch, help="the books of the third part")
    add("--engine", help="of the bookstore: twisted (of today, the default), twisted-16.3, granian")
    add("--http1-only", **switch, help="the bookstore without HTTP/2")
    add("--delay", type=float, help="seconds before each book")

    add = command("stacks", _stacks, "what can be run here, and what is missing")
    add("--json", **switch)

    add = command("measure", _measure, "measure stacks against the lab server")
    add("stack", nargs="+", metavar="STACK")
    add("--n", type=_sizes, help="pages per run, like 3,5,10")
    add("--delay", type=float, help="seconds before each response")
    add("--scheme", choices=("https", "http"), default="https")
    add("--repeats", type=int)
    add("--client", help="who fetches; default: the stack's own, mostly grequests")
    add("--trust", default="authority", help="what it trusts: see casebook/runs/trust.py")
    add("--url", help="another server that has a /delay/ endpoint")
    add("--ca-file", type=Path, help="the certificate authority of --url, as PEM")
    add("--json", **switch, help="one JSON object per run")

    add = command("record", _record, "make the reference run into data/")
    also = "only these; also: go, loading, bookstore, verdicts, explorer"
    add("--only", nargs="*", metavar="STACK", help=also)

    add = command("book", _book, "execute what changed, decide claims, render")
    add("--strict", **switch, help="exit with 1 when a finding comes out otherwise")
    add("--fresh", **switch, help="measure everything again")
    return parser


def _reader_has_left() -> bool:
    """Whether nobody reads our output any more. If so, what is left of it goes nowhere."""
    output = select.poll()
    output.register(sys.stdout, 0)  # asks for nothing: an error is told in any case
    if not output.poll(0):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at its end
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status: 0, 1 (it failed) or 2 (it was asked wrongly).

    As a shell tells it: 130 after Ctrl-C, 141 when nobody reads the output to its end (`| head`).
    """
    try:
        options = _parser().parse_args(arguments)
        options.do(options)
        sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_has_left():
            raise
        return 141
    except CasebookError as error:
        print(f"casebook: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0
