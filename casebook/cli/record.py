"""Make the reference run into data/."""

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    only_help = "only these; also: go, loading, bookstore, verdicts, explorer"
    parser.add_argument("--only", nargs="*", metavar="STACK", help=only_help)


def run(options: Namespace) -> None:
    """Measure what the reference run has, and draw the picture of the README."""
    from casebook.cases import reference_run
    from casebook.charts import picture

    reference_run.record(options.only)
    picture.write()
