"""The article's loop, and one that takes whatever is complete: both to be read, and both run.

    beside()                                # the two functions side by side
    seen = arrivals(n=100, slow=one_slow())

They are functions of clients/two_loops.py, over one HTTP/2 connection of the bare client.
"""

import ast
import json
from html import escape

import pandas as pd
from IPython.display import HTML

from casebook import stacks
from casebook.cases.bookstore import readers, stock, store
from casebook.errors import UsageError, VisitFailed
from casebook.runs import measurements
from casebook.stacks import environments, scripts
from casebook.words import LIVE

SCRIPT = readers.SCRIPTS / "two_loops.py"

#: The functions, and what each is called.
LOOPS = {"in_order": "in the order asked", "as_completed": "as completed"}

#: Twisted allows so many streams at a time on a connection.
MOST = 100

_STACK, _LONGEST_S = "h2-today", 60


def source(loop: str) -> str:
    """The code of one of LOOPS, as it runs."""
    text = SCRIPT.read_text(encoding="utf-8")
    found = next(
        each
        for each in ast.parse(text).body
        if isinstance(each, ast.FunctionDef) and each.name == loop
    )
    return ast.get_source_segment(text, found) or ""


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
    first request), slow (whether it is a slow one), source, measured_at. Raises UsageError, and
    VisitFailed when a book did not come.
    """
    if not 1 <= n <= MOST:
        raise UsageError(f"n is {n}; choose 1 to {MOST}")
    slow = slow or {}
    with store.open_store(slow=slow) as place:
        rows = [row for loop in LOOPS for row in _rows(loop, place, n, slow)]
    return pd.DataFrame(rows).assign(source=LIVE, measured_at=measurements.now())


def _rows(loop: str, place: store.Store, n: int, slow: dict[str, float]) -> list[dict]:
    ids = list(stock.ids()[:n])
    spec = {"url": place.url, "ca_file": str(place.ca_file), "loop": loop}
    answer = scripts.ask(
        environments.ensure(stacks.get(_STACK)), SCRIPT,
        spec | {"paths": [f"/book?id={book}" for book in ids]}, _LONGEST_S,
        called=LOOPS[loop], advice="Try fewer books.", failed=VisitFailed,
    )  # fmt: skip
    if answer["failure"]:
        raise VisitFailed(f"{LOOPS[loop]}: {answer['failure']}. Nothing was recorded.")
    books, taken = stock.books(), [path.partition("=")[2] for path, _ in answer["taken"]]
    if sorted(taken) != sorted(ids) or [books[each] for each in taken] != [
        json.loads(body) for body in answer["bodies"]
    ]:
        raise VisitFailed(f"{LOOPS[loop]}: not every book came whole. Nothing was recorded.")
    return [
        {
            "loop": LOOPS[loop],
            "book": book,
            "position": ids.index(book) + 1,
            "arrived": arrived,
            "at_s": at_s,
            "slow": book in slow,
        }
        for arrived, (book, (_, at_s)) in enumerate(zip(taken, answer["taken"], strict=True), 1)
    ]
