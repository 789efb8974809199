"""From notebooks to pages, in one direction: prepare, execute, collect the records, render.

`build()` does all of it, and ends with a book whatever came out. If nothing has changed since the
last one (`last_build`), there is nothing to do; if running text alone has, its pages are written
again. Else:

0. if there is no book yet, it is written from the file of the machine that is most like this one,
   without measuring; then page by page the chapters of the story, or all of them, are measured here
   and take its place;
1. the stacks' environments are made, side by side, before anything is measured;
2. `execution` runs each notebook whose stamp (its code and everything that code can reach) has
   changed, and keeps the result where our extension of Sphinx finds it (`sphinx_site`);
3. `records` takes claims, comparisons, figures and profiles out of the executed notebooks;
4. `rendering` has Jupyter Book write the site, without executing anything, and checks its links;
   `resting` marks the sentences whose findings did not hold.
"""

import sys
from pathlib import Path

from casebook import places

# nbformat imports jsonschema, which compiles the grammars of this package for two seconds if it is
# installed. Notebooks have no address that would be checked by them.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def build(
    root: Path = places.ROOT,
    strict: bool = False,
    fresh: bool = False,
    file: Path | None = None,
    everything: bool = False,
) -> Path:
    """Bring the book under `root` up to date: see casebook.pages.building.build."""
    # Each chapter's kernel imports this room, and needs neither Sphinx nor what else builds.
    from casebook.pages import contents, last_build

    book = contents.Book(root)
    if not (fresh or file) and (former := last_build.read(book)):
        stamp = last_build.stamp(book, everything)
        changed = stamp.changed_pages(former.stamp)
        if changed is not None:
            if changed:
                from casebook.pages import rewriting

                rewriting.rewrite(book, changed, stamp, former.summary)
            else:
                last_build.print_summary(former.summary)
            return book.html / "index.html"
    from casebook.pages import building

    return building.build(root, strict, fresh, file, everything)
