"""The command line: serve, stacks, measure, record, book."""

import argparse
import contextlib
import json
import os
import select
import sys
from dataclasses import asdict

from casebook.errors import CasebookError, UsageError


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--n is {text!r}; give whole numbers, like 3,5,10") from None


def _serve(options) -> None:
    if options.bookstore:
        return _serve_bookstore(options)
    given = [name for name in ("engine", "delay", "http1_only") if getattr(options, name)]
    if given:
        raise UsageError(f"--{given[0].replace('_', '-')} is for --bookstore")
    from casebook import server

    server.serve(
        port=options.port,
        scheme="http" if options.plain else "https",
        engine=options.server or "lab",
    )


def _serve_bookstore(options) -> None:
    from casebook.cases.bookstore.store import open_store
    from casebook.server import foreground

    if options.plain or options.server:
        raise UsageError("the bookstore is served over TLS, by one of --engine")
    foreground.run(
        lambda: open_store(
            options.engine or "twisted",
            http1_only=options.http1_only,
            delay_s=options.delay or 0.0,
            port=options.port,
        )
    )


def _stacks(options) -> None:
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


def _target(options):
    from casebook.runs.bench import Target, lab_server

    if options.url is None:
        return lab_server(options.scheme, options.server)
    return contextlib.nullcontext(Target(options.url.rstrip("/"), options.ca_file))


def _measure(options) -> None:
    from casebook import stacks
    from casebook.runs import analysis
    from casebook.runs.measure import check_parameters, measure_runs

    # Refuse what cannot be measured before anything is started.
    for name in options.stack:
        stacks.get(name)
    scheme = options.scheme
    if options.url:
        scheme, colon, _ = options.url.partition("://")
        if not colon:
            raise UsageError(f"--url is {options.url!r}; it starts with https:// or http://")
    sizes = _sizes(options.n) if options.n else None
    wanted = {"client": options.client, "scheme": scheme, "trust": options.trust}
    check_parameters(sizes or [1], options.delay or 0, options.repeats or 1, **wanted)
    with _target(options) as target:
        measured = measure_runs(
            options.stack,
            n=sizes,
            delay_s=options.delay,
            repeats=options.repeats,
            **wanted,
            target=target,
        )
    if options.json:
        for run in measured:
            print(json.dumps(asdict(run)))
        return
    from casebook.runs.runs import frame

    table = analysis.summary(frame(measured)).drop(columns=["scheme", "source"])
    print(table.round(3).to_string(index=False))


def _record(options) -> None:
    from casebook.cases import reference_run
    from casebook.charts import picture

    reference_run.record(options.only)
    picture.write()


def _book(options) -> None:
    from casebook import pages

    pages.build(strict=options.strict, fresh=options.fresh)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m casebook", description="The instruments of the book."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="run the lab server, or the bookstore, until Ctrl-C")
    serve.add_argument("--port", type=int, default=0, help="default: one that is free")
    serve.add_argument("--plain", action="store_true", help="HTTP instead of HTTPS")
    serve.add_argument("--server", choices=("lab", "go-httpbin"), help="default: lab")
    serve.add_argument("--bookstore", action="store_true", help="the books of the third part")
    serve.add_argument(
        "--engine",
        choices=("twisted", "twisted-16.3", "granian"),
        help="what serves the bookstore; default: twisted, of today",
    )
    serve.add_argument("--http1-only", action="store_true", help="the bookstore without HTTP/2")
    serve.add_argument("--delay", type=float, help="seconds before each book")
    serve.set_defaults(do=_serve)

    stacks = commands.add_parser("stacks", help="what can be run here, and what is missing")
    stacks.add_argument("--json", action="store_true")
    stacks.set_defaults(do=_stacks)

    measure = commands.add_parser("measure", help="measure stacks against the lab server")
    measure.add_argument("stack", nargs="+", metavar="STACK")
    measure.add_argument("--n", help="pages per run, like 3,5,10")
    measure.add_argument("--delay", type=float, help="seconds before each response")
    measure.add_argument("--scheme", choices=("https", "http"), default="https")
    measure.add_argument("--repeats", type=int)
    measure.add_argument("--client", help="who fetches; default: the stack's own, mostly grequests")
    measure.add_argument(
        "--trust", default="authority", help="what it trusts: see casebook/runs/trust.py"
    )
    measure.add_argument("--server", choices=("lab", "go-httpbin"), default="lab")
    measure.add_argument("--url", help="another server that has a /delay/ endpoint")
    measure.add_argument("--ca-file", help="the certificate authority of --url, as PEM")
    measure.add_argument("--json", action="store_true", help="one JSON object per run")
    measure.set_defaults(do=_measure)

    record = commands.add_parser("record", help="make the reference run into data/")
    record.add_argument(
        "--only", nargs="*", metavar="STACK", help="only these; also: go, loading, bookstore"
    )
    record.set_defaults(do=_record)

    book = commands.add_parser("book", help="execute what changed, decide claims, render")
    book.add_argument(
        "--strict", action="store_true", help="exit with 1 when a finding comes out otherwise"
    )
    book.add_argument("--fresh", action="store_true", help="measure everything again")
    book.set_defaults(do=_book)
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
