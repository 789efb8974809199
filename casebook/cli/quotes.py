"""Keep what the chapters quoted of packages, in data/quotes.json."""

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes: nothing."""


def run(_: Namespace) -> None:
    """Keep the lines that the executed chapters quote, with release and licence."""
    from casebook.charts import quotes

    print(quotes.keep())
