"""The article's loop, and one that takes whatever is complete: a chapter prints both and runs both.

    bookstore.loops.side_by_side()
    bookstore.arrivals("two-loops", n=100, order=["asked", "completed"])    # what each did

They are functions of clients/two_loops.py, over one HTTP/2 connection of the bare client.
"""

import ast
from html import escape

from IPython.display import HTML

from casebook.cases.bookstore import readers

SCRIPT = readers.SCRIPTS / "two_loops.py"

#: The functions, and what each is called.
LOOPS = {"in_order": "in the order asked", "as_completed": "as completed"}


def source(loop: str) -> str:
    """Return the code of one of LOOPS, as it runs."""
    text = SCRIPT.read_text(encoding="utf-8")
    return ast.get_source_segment(text, readers.function(SCRIPT, loop)) or ""


def side_by_side() -> HTML:
    """Show both loops side by side, under each other on a phone; lines that differ stand out."""
    codes = {loop: source(loop).splitlines() for loop in LOOPS}
    shared = set.intersection(*map(set, codes.values()))
    columns = "".join(
        '<figure style="flex:1 1 21rem;min-width:0;margin:0">'
        '<figcaption style="color:inherit;font:inherit;font-weight:600;text-align:start">'
        f"{escape(LOOPS[loop])}</figcaption>"
        f'<pre tabindex="0" role="group" aria-label="{escape(LOOPS[loop])}" '
        'style="overflow-x:auto;font-size:.62em;line-height:1.5;padding:.8em .5em"><code>'
        + "\n".join(_line(line, line in shared) for line in lines)
        + "</code></pre></figure>"
        for loop, lines in codes.items()
    )
    return HTML(f'<div class="cb" style="display:flex;flex-wrap:wrap;gap:1rem">{columns}</div>')


def _line(line: str, shared: bool) -> str:
    return escape(line) if shared else f"<strong>{escape(line)}</strong>"
