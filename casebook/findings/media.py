"""The media types under which a cell hands evidence to the book, beside what it displays.

A cell displays a bundle that holds, next to text/html or text/markdown, a record under one of
these. `casebook.pages.records` gathers them; the pages show only the rest.
"""

from collections.abc import Iterator, Mapping
from typing import Any

#: A finding.Finding
CLAIM = "application/vnd.casebook.claim+json"

#: A published.Comparison
COMPARISON = "application/vnd.casebook.comparison+json"

#: {name, html}: a figure that another page may include as _build/included/<name>.html
FIGURE = "application/vnd.casebook.figure+json"

#: {name, title}: the recorded profile of the stack of that name, shown as profiles/<name>.html
PROFILE = "application/vnd.casebook.profile+json"

#: {quotes}: a list of {key, release, licence, path, lines}: what a listing or a picture
#: quotes of somebody else's package (casebook/charts/quotes.py)
QUOTES = "application/vnd.casebook.quotes+json"

#: {why}: a cell that the machine file, from which the book is written, has no answer to
NOT_IN_FILE = "application/vnd.casebook.not-in-file+json"


def records(notebook: Mapping[str, Any], mime: str) -> Iterator[dict[str, Any]]:
    """Yield the records of one media type in an executed notebook, in its order."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if mime in output.get("data", {}):
                yield output["data"][mime]
