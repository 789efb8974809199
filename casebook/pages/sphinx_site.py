"""The book's own Sphinx extension.

Diagrams in the page's colours, folds, marked sentences, accessible pages, and where they are
published.
"""

import html
import re
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

from casebook.charts import card
from casebook.errors import BookFailed, CasebookError
from casebook.pages import (
    address,
    chapter_scripts,
    folding,
    origin_notes,
    resting,
    upstream_page,
)
from casebook.pages.contents import Book, read

#: The folder of the diagrams, each of which is drawn once for both themes.
DIAGRAMS = "book/_static/diagrams"

#: The picture of the social card, within the site.
CARD = "_static/card.png"

SCRIPT_BUTTON = {
    "type": "link", "text": ".py", "icon": "fas fa-terminal", "label": "download-script-button",
    "tooltip": "Download as a script",
}  # fmt: skip


def put_diagrams_in(app: Sphinx, doctree: nodes.document, _page: str) -> None:
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
    registered = [listener for listeners in app.events.listeners.values() for listener in listeners]
    of_thebe = [
        listener
        for listener in registered
        if listener.handler.__module__.startswith("sphinx_thebe")
    ]
    for listener in of_thebe:
        app.disconnect(listener.id)
    if not of_thebe:
        raise ExtensionError("sphinx_thebe listens to nothing: is there still one to leave out?")
    app.registry.css_files = [file for file in app.registry.css_files if "thebe" not in file[0]]


def read_in_parallel(app: Sphinx) -> None:
    """Say of two extensions of Jupyter Book that pages may be read side by side.

    They do not say it themselves: one is for LaTeX, one numbers what has been read.
    """
    for name in ("sphinx_jupyterbook_latex", "sphinx_multitoc_numbering"):
        app.extensions[name].parallel_read_safe = True
        app.extensions[name].parallel_write_safe = True


def follow_address(app: Sphinx, config: Config) -> None:
    """Have the pages say where they are published.

    If that is nowhere, leave out the buttons that need a place. Pages ask for it by `{only}
    published`, and by `{{ start }}` for a link to Binder's page to start from.
    """
    root = Path(app.srcdir)
    if not address.of_repository(root):
        config.html_theme_options.pop("launch_buttons", None)
    start = f"[a page to start from]({link})" if (link := address.of_start(root)) else ""
    config.myst_substitutions = {**config.myst_substitutions, "start": start}
    site = address.of_site(root)
    if site:
        app.tags.add("published")
        config.html_baseurl = config.ogp_site_url = site
    config.ogp_site_name = config.html_title
    # One picture for all pages, in the place of one each with nothing but words.
    try:
        config.ogp_image_alt = card.draw(config.html_title).alt
    except CasebookError:
        if site:
            raise
        return  # a book of other stacks has no such picture
    config.ogp_image = f"{site}{CARD}"
    config.ogp_custom_meta_tags = [
        f'<meta property="og:image:width" content="{card.WIDTH}">',
        f'<meta property="og:image:height" content="{card.HEIGHT}">',
        '<meta name="twitter:card" content="summary_large_image">',
    ]


def find_card(app: Sphinx, _page: str, _template: str, context: dict, _doctree: Any) -> None:
    """Lead to the card from each page of a book that has no address yet, and name none."""
    if not app.config.html_baseurl and "metatags" in context:
        tags = re.sub(r'<meta property="og:url"[^>]*>\s*', "", context["metatags"])
        context["metatags"] = tags.replace(f'"{CARD}"', f'"{context["pathto"](CARD, 1)}"')


def take_outputs(app: Sphinx, page: str, source: list[str]) -> None:
    """Put what was executed in the place of a notebook, which has no outputs.

    Under its title it says what has changed upstream since; at its end, which releases of packages
    its findings are true of.
    """
    path, book = Path(app.env.doc2path(page)), Book(Path(app.srcdir))
    if path.suffix != ".ipynb":
        source[0] = with_note(source[0], origin_notes.while_written(book))
        return
    try:
        notebook = book.result(path)
    except BookFailed as error:
        raise ExtensionError(str(error)) from error
    if notebook.cells:
        notebook.cells[0].source = with_note(
            notebook.cells[0].source, origin_notes.while_written(book, path)
        )
    checks = upstream_page.load(book.root)
    if note := upstream_page.turned(checks, path.stem):
        notebook.cells.insert(1, nbformat.v4.new_markdown_cell(note))
    if note := upstream_page.releases(checks, path.stem):
        notebook.cells.append(nbformat.v4.new_markdown_cell(note))
    folding.choose(notebook)
    source[0] = nbformat.writes(notebook)


def say_origin(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Say at the foot of a page, once, whose measurements it shows, where and when.

    In a published book the captions, too, name the machine.
    """
    book, path = Book(Path(app.srcdir)), Path(app.env.doc2path(page))
    is_notebook = path.suffix == ".ipynb"
    note = origin_notes.of_chapter(book, path) if is_notebook else origin_notes.of_the_book(book)
    raw_nodes = list(doctree.findall(nodes.raw))
    captions = " ".join(node.astext() for node in raw_nodes)
    is_published = bool(address.of_site(book.root))
    for node in raw_nodes if is_published else ():
        caption = origin_notes.with_machine_name(node.astext())
        node.clear()
        node += nodes.Text(caption)
    if text := origin_notes.foot(note, captions, is_published):
        foot = f'<p class="cb-foot">{html.escape(text)}</p>'
        doctree.append(nodes.raw("", foot, format="html"))


def with_note(text: str, note: str) -> str:
    """Return a page with a note below its title; unchanged if there is no note."""
    title = re.search(r"^# .*$", text, re.MULTILINE)
    if not note or not title:
        return text
    return f"{text[: title.end()]}\n\n:::{{note}}\n{note}\n:::\n{text[title.end() :]}"


def name_entries(_app: Sphinx, env: Any) -> None:
    """Let Markdown links lead to a term and to an entry of the bibliography.

    As in `glossary.md#term-greenlet` and `bibliography.md#cite-rfc9113`: MyST knows the headings
    of a page only.
    """
    citations = env.get_domain("cite").citations
    entries = [(citation.bibliography_key.docname, citation.citation_id) for citation in citations]
    terms = env.get_domain("std").objects
    entries += [(page, id) for (kind, _), (page, id) in terms.items() if kind == "term"]
    for page, id in entries:
        env.metadata[page].setdefault("myst_slugs", {})[id] = (0, id, id)


def offer_script(app: Sphinx, page: str, _template: str, context: dict, _doctree: Any) -> None:
    """Write each chapter as a script too, and offer it beside the notebook."""
    path = Path(app.env.doc2path(page))
    if path.suffix != ".ipynb":
        return
    file = Path(app.outdir, "_sources", f"{page}.py")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(chapter_scripts.script_of(read(path), path), encoding="utf-8")
    groups = (
        button for button in context["header_buttons"] if button["label"] == "download-buttons"
    )
    address = context["pathto"](f"_sources/{page}.py", 1)
    for group in groups:
        group["buttons"].insert(1, SCRIPT_BUTTON | {"url": address})


def draw_card(app: Sphinx, exception: Exception | None) -> None:
    """Draw what is shown when a link to the book is shared."""
    if exception is None and app.config.ogp_image:
        card.write(Path(app.outdir, CARD), app.config.html_title)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register it all."""
    app.connect("config-inited", lambda app, _: leave_out_thebe(app), priority=0)
    app.connect("config-inited", follow_address, priority=0)
    app.setup_extension("sphinx.ext.githubpages")  # .nojekyll, without which Jekyll is asked
    app.setup_extension("sphinxext.opengraph")
    app.connect("html-page-context", find_card, priority=900)  # when the page has its tags
    app.connect("builder-inited", read_in_parallel)
    app.connect("source-read", take_outputs)
    app.connect("env-updated", name_entries)
    app.connect("doctree-resolved", put_diagrams_in)
    app.connect("doctree-resolved", say_origin)
    app.connect("html-page-context", offer_script, priority=900)  # when the theme has its buttons
    app.connect("build-finished", draw_card)
    folding.setup(app)
    resting.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
