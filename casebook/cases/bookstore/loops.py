"""The article's loop, and one that takes whatever is complete: both to be read, and both run.

    beside()                                # the two functions side by side
    seen = arrivals(n=100, slow=one_slow())

They are functions of clients/two_loops.py, over one HTTP/2 connection of the bare client.
"""

import ast
from html import escape

import pandas as pd
from IPython.display import HTML

from casebook.cases.bookstore import readers, visits
from casebook.errors import UsageError

SCRIPT = readers.SCRIPTS / "two_loops.py"

#: The functions, and what each is called.
LOOPS = {"in_order": "in the order asked", "as_completed": "as completed"}

#: Twisted allows so many streams at a time on a connection.
MOST = 100


def source(loop: str) -> str:
    """The code of one of LOOPS, as it runs."""
    text = SCRIPT.read_text(encoding="utf-8")
    return ast.get_source_segment(text, readers.function(SCRIPT, loop)) or ""


def beside() -> HTML:
    """Both loops side by side, under each other on a phone; lines that differ stand out."""
    codes = {loop: source(loop).splitlines() for loop in LOOPS}
    shared = set.intersection(*map(set, codes.values()))
    columns = "".join(
        '<figure style="flex:1 1 19rem;min-width:0;margin:0">'
        f"<figcaption>{escape(LOOPS[loop])}</figcaption>"
        f'<pre tabindex="0" role="group" aria-label="{escape(LOOPS[loop])}" '
        'style="overflow-x:auto;font-size:.68em;line-height:1.5;padding:.8em"><code>'
        + "\n".join(_line(line, line in shared) for line in lines)
        + "</code></pre></figure>"
        for loop, lines in codes.items()
    )
    return HTML(f'<div class="cb" style="display:flex;flex-wrap:wrap;gap:1rem">{columns}</div>')


def _line(line: str, shared: bool) -> str:
    return escape(line) if shared else f"<strong>{escape(line)}</strong>"


def arrivals(n: int = MOST, slow: dict[str, float] | None = None) -> pd.DataFrame:
    """When each loop took each of n books: one row a book and loop.

    slow: {id: seconds}, see visits.one_slow. Columns: loop (in words), book, position (its place
    among those asked for, from 1), arrived (its place among those taken), at_s (seconds since the
    visit began), slow (whether it is a slow one), source, measured_at. Raises as visits.arrivals.
    """
    if not 1 <= n <= MOST:
        raise UsageError(f"n is {n}; choose 1 to {MOST}")
    orders = dict(zip(("asked", "completed"), LOOPS.values(), strict=True))
    seen = visits.arrivals("two-loops", n=n, order=orders, slow=slow)
    seen = seen.assign(loop=seen["order"].map(orders), slow=seen["book"].isin(slow or {}))
    columns = ["loop", "book", "position", "arrived", "at_s", "slow", "source", "measured_at"]
    return seen[columns]
