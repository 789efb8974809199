"""The book's own Sphinx extension: diagrams in the page's colours, no Thebe, accessible pages."""

import re
from pathlib import Path

import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

#: The folder of the diagrams, each of which is drawn once for both themes.
DIAGRAMS = "book/_static/diagrams"

#: What the axe checker finds in pages as the theme, docutils and pandas write them, each cured.
MENDS = (
    # empty-table-header: the corner above row names heads nothing.
    (re.compile(r"<th\b([^>]*)>(?:\s|&nbsp;|<p></p>)*</th>"), r"<td\1></td>"),
    # region: the book's title in the sidebar is in no landmark.
    (
        re.compile(r'<div id="pst-primary-sidebar"'),
        '<div id="pst-primary-sidebar" role="navigation" aria-label="Book"',
    ),
    # label-content-name-mismatch: the button also shows its key, "Search Ctrl+K".
    (
        re.compile(r'(<button class="btn search-button-field[^>]*?) aria-label="Search"'),
        r"\1",
    ),
    # label-content-name-mismatch: what folds a cell says "Show code cell output" itself.
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    # aria-deprecated-role, aria-required-children: a bibliography is a list.
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
    # label-content-name-mismatch: titles of the icons count as text of the "Color mode" button.
    (re.compile(r'(<i class="theme-switch [^>]*?) title="[^"]*"'), r"\1"),
)


def put_diagrams_in(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put the drawings themselves in the place of images of `book/_static/diagrams`.

    So they take the colours of the page's theme, as casebook.css says, also when the reader
    switches it, and bring their titles and descriptions.
    """
    for image in list(doctree.findall(nodes.image)):
        path = Path(app.srcdir, image["uri"])
        if path.parent == Path(app.srcdir, DIAGRAMS):
            drawing = path.read_text(encoding="utf-8")
            image.replace_self(nodes.raw("", drawing, format="html"))


def leave_out_thebe(app: Sphinx) -> None:
    """Keep Thebe off the pages: it loads from a content network and logs an error on each page.

    Jupyter Book always activates the extension and has no setting against it.
    """
    for name, listeners in app.events.listeners.items():
        app.events.listeners[name] = [
            listener
            for listener in listeners
            if not listener.handler.__module__.startswith("sphinx_thebe")
        ]
    app.registry.css_files = [file for file in app.registry.css_files if "thebe" not in file[0]]


def refuse_to_execute(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Stop before MyST-NB would execute a notebook, which it does when the cache has no result."""
    cache = get_cache(env.mystnb_config.execution_cache_path)
    for page in pages:
        path = Path(env.doc2path(page))
        if path.suffix != ".ipynb":
            continue
        try:
            cache.match_cache_notebook(nbformat.read(path, as_version=4))
        except KeyError:
            raise ExtensionError(
                f"{page} has not been executed, and Sphinx must not do it: "
                "`python -m casebook book` executes what is stale and then writes the pages"
            ) from None


def mend_pages(app: Sphinx, exception: Exception | None) -> None:
    """Apply MENDS to every page that was written."""
    if exception is not None:
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for pattern, replacement in MENDS:
            text = pattern.sub(replacement, text)
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", lambda app, config: leave_out_thebe(app), priority=0)
    app.connect("env-before-read-docs", refuse_to_execute)
    app.connect("doctree-resolved", put_diagrams_in)
    app.connect("build-finished", mend_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
