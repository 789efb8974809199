"""Run the lab server, or the bookstore, until Ctrl-C."""

from argparse import ArgumentParser, Namespace
from functools import partial

from casebook.errors import UsageError


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    add = parser.add_argument
    add("--port", type=int, default=0, help="default: one that is free")
    add("--plain", action="store_true", help="HTTP instead of HTTPS")
    add("--bookstore", action="store_true", help="the 3,000 books of the bookstore")
    add("--engine", help="of the bookstore: twisted (of today, the default), twisted-16.3, granian")
    add("--http1-only", action="store_true", help="the bookstore without HTTP/2")
    add("--delay", type=float, help="seconds before each book")


def run(options: Namespace) -> None:
    """Serve until Ctrl-C."""
    from casebook.cases.fetching import server

    bookstore_options = [
        name for name in ("engine", "delay", "http1_only") if getattr(options, name)
    ]
    if not options.bookstore:
        if bookstore_options:
            raise UsageError(f"--{bookstore_options[0].replace('_', '-')} is for --bookstore")
        server.serve(partial(server.start, "http" if options.plain else "https", options.port))
        return
    from casebook.cases.bookstore.store import open_store

    if options.plain:
        raise UsageError("the bookstore is served over TLS, by one of --engine")
    settings = {"delay_s": options.delay or 0.0, "port": options.port}
    engine = options.engine or "twisted"
    settings["http1_only"] = options.http1_only
    server.serve(partial(open_store, engine, **settings))
