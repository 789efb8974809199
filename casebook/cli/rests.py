"""List the sentences of the built book that rest on findings."""

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    add = parser.add_argument
    add("--marked", action="store_true",
        help="only those whose finding did not hold on this machine")  # fmt: skip
    add("--reach", action="store_true",
        help="only those that say more than their finding was measured on")  # fmt: skip


def run(options: Namespace) -> None:
    """Print these sentences, each with the ids of its findings."""
    from casebook import places
    from casebook.pages import resting
    from casebook.pages.contents import Book

    book = Book(places.ROOT)
    if options.reach:
        for sentence, layers in resting.too_wide(book):
            reason = f"speaks of {', '.join(layers)}, and rests on {', '.join(sentence.claims)}"
            print(f"{sentence.page}: {sentence.text}\n    {reason}")
        return
    for sentence in resting.listed(book):
        if sentence.shown or not options.marked:
            print(f"{sentence.page}: {sentence.text}\n    rests on {', '.join(sentence.claims)}")
            if sentence.shown:
                print(f"    shown here: {sentence.shown}")
