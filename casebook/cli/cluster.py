"""Let several machines measure together, on Dask."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from casebook.cli.subcommands import add_subcommands
from casebook.errors import ServerFailed


def add_arguments(parser: ArgumentParser) -> None:
    """Add the subcommands and what they take."""
    add = add_subcommands(parser)
    host_help = "the address to listen at; another than the loopback needs the three keys"
    scheduling = add("scheduler", scheduler, "Run a scheduler, until Ctrl-C")
    scheduling.add_argument("--port", type=int, default=8786)
    working = add("worker", worker, "Let this machine measure for a scheduler, until Ctrl-C")
    working.add_argument("address", metavar="ADDRESS", help="such as tcp://127.0.0.1:8786")
    for subparser in (scheduling, working):
        subparser.add_argument("--host", default="127.0.0.1", help=host_help)
        _add_keys(subparser)


def add_address(parser: ArgumentParser) -> None:
    """Add what a command takes that can also run on each worker of a cluster."""
    on_help = "on each worker of a cluster: tcp://127.0.0.1:8786"
    parser.add_argument("--on", metavar="ADDRESS", help=on_help)
    _add_keys(parser)


def _add_keys(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--tls-ca", type=Path, metavar="PEM", help="the authority that a cluster's machines trust")
    add("--tls-cert", type=Path, metavar="PEM", help="the certificate that this machine shows")
    add("--tls-key", type=Path, metavar="PEM", help="and its key")


def keys(options: Namespace) -> Any:
    """Return the keys for a cluster that were given; None without any."""
    from casebook.cases.many import cluster

    return cluster.keys_of(options.tls_ca, options.tls_cert, options.tls_key)


def scheduler(options: Namespace) -> None:
    """Run a scheduler, until Ctrl-C."""
    from casebook.cases.many import cluster

    _check_exit(cluster.scheduler(options.host, options.port, keys(options)))


def worker(options: Namespace) -> None:
    """Run a worker, until Ctrl-C."""
    from casebook.cases.many import cluster

    _check_exit(cluster.worker(options.address, keys(options), options.host))


def _check_exit(code: int) -> None:
    if code:
        raise ServerFailed(f"it ended with exit code {code}; the lines above say why")
