"""SnakeViz as one self-contained page per profile: for the book, and inside a notebook.

SnakeViz is a local server whose page also asks a content network for two scripts. Here its own
template is filled in and everything it refers to is put inside, so that the page works offline,
from a file, and in an output of JupyterLab.
"""

import html
import json
import os
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from pstats import Stats

from snakeviz.stats import json_stats, table_rows
from tornado.template import Template

from casebook import media, places
from casebook.errors import BookFailed, UsageError

#: SnakeViz's own page is made for a wide screen, and some of it is too pale to read.
STYLE = """<style>
  #snakeviz-text > a, .footer-link, .back a, input, .dataTables_wrapper .dataTables_info,
  .dataTables_wrapper .dataTables_filter { color: inherit !important; }
  #table_div, #chart { overflow-x: auto; }
  .back { margin: 0 0 2rem; text-align: center; font-family: monospace; }
  @media (max-width: 60rem) {
    body { padding: 0.5rem; }
    #snakeviz-text, #resetbuttons, .button-div, #sv-style-label, #sv-depth-label,
    #sv-cutoff-label, #sv-info-div, #sv-call-stack { position: static; display: inline-block; }
    button, select { font-size: 14px; padding: 5px 10px; }
  }
</style>
"""
WORKER_IMPORTS = re.compile(
    r"// Try loading JS from CDN.*?throw 'Could not load JS libraries in worker\.';\s*}\s*}", re.S
)


@dataclass(frozen=True)
class ProfilePage:
    """A profile to look into: in the book a link to its page, in JupyterLab the page itself.

    profile: a cProfile dump inside this project. Raises UsageError when it is not there.
    """

    profile: Path
    title: str

    def __post_init__(self) -> None:
        if not self.profile.exists():
            raise UsageError(f"No profile {self.file}; `make record` makes those of data/.")

    @property
    def name(self) -> str:
        return self.profile.stem

    @property
    def file(self) -> str:
        """The dump's path from the root of the project."""
        return self.profile.resolve().relative_to(places.ROOT).as_posix()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict:
        title = html.escape(self.title)
        if os.environ.get("CASEBOOK_BUILD"):
            shown = f'<p><a href="../profiles/{self.name}.html">{title}: open in SnakeViz</a></p>'
        else:
            page = html.escape(page_html(self.profile, self.title))
            shown = (
                f'<iframe srcdoc="{page}" title="{title}" width="100%" height="700"></iframe>'
                f"<p>The same in a terminal: <code>snakeviz {self.file}</code></p>"
            )
        record = {"name": self.name, "title": self.title, "file": self.file}
        return {"text/html": shown, "text/plain": self.title, media.PROFILE: record}


def write(profile: Path, folder: Path, name: str, title: str) -> Path:
    """Write the page of a cProfile dump as folder/name.html. Raises BookFailed."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{name}.html"
    back = '<p class="back"><a href="../index.html">Back to the book</a></p>'
    text = _replaced("<main>", page_html(profile, title), f"<main>{back}")
    page.write_text(text, encoding="utf-8")
    return page


def page_html(profile: Path, title: str) -> str:
    """SnakeViz's page for a cProfile dump, with all it needs inside and no absolute path.

    Raises BookFailed when the dump cannot be read or SnakeViz's page is not the one known here.
    """
    try:
        stats = Stats(str(profile))
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise BookFailed(f"The profile {profile} cannot be read: {error}") from error
    _shorten_paths(stats)
    template = Template(_packaged("templates", "viz.html").decode(), autoescape="xhtml_escape")
    page = template.generate(
        profile_name=title, table_rows=_script_json(table_rows(stats)),
        callees=_script_json(json_stats(stats)),
    ).decode()  # fmt: skip
    page = _replaced(r"<html>", page, '<html lang="en">')
    page = _replaced(r"<title>.*?</title>", page, f"<title>{html.escape(title)}</title>")
    page = _replaced(r"<body>", page, "<body><main>")
    page = _replaced(r"</body>", page, "</main></body>")
    page = _replaced(r'<link href="/static/([^"]+)" rel="stylesheet">', page, _inline_style)
    page = _replaced(r"""<script src=["']/static/([^"']+)["']></script>""", page, _inline_script)
    page = _replaced(r"</head>", page, f'<link rel="icon" href="data:,">{STYLE}</head>')
    libraries = "".join(_static(f"vendor/{name}.min.js") for name in ("immutable", "lodash"))
    worker = r'(<script id="hierarchy-worker"[^>]*>)'
    page = _replaced(worker, page, lambda match: f"{match[1]}var window=self;{libraries};")
    page = _replaced(WORKER_IMPORTS, page, "")
    return page


def _shorten_paths(stats: Stats) -> None:
    """Cut file names down to what follows site-packages or the standard library's folder."""

    def short(key: tuple[str, int, str]) -> tuple[str, int, str]:
        file = re.sub(r"^.*/(?:site-packages|python\d[\d.]*)/", "", key[0])
        return (Path(file).name if file.startswith("/") else file, key[1], key[2])

    stats.stats = {
        short(key): (*values[:4], {short(caller): counts for caller, counts in values[4].items()})
        for key, values in stats.stats.items()
    }


def _replaced(pattern: str | re.Pattern, text: str, replacement: object) -> str:
    """`text` with every match replaced, which must be there."""
    put = replacement if callable(replacement) else lambda match: replacement
    replaced, count = re.subn(pattern, put, text)
    if count == 0:
        raise BookFailed(
            f"SnakeViz's page no longer holds {pattern!r}: adapt "
            "casebook/pages/snakeviz_pages.py to it."
        )
    return replaced


def _inline_style(match: re.Match) -> str:
    # The style sheets' images are sort arrows, half of them missing from the package.
    return f"<style>{re.sub('url[(][^)]*[)]', 'none', _static(match[1]))}</style>"


def _inline_script(match: re.Match) -> str:
    return f"<script>{_static(match[1])}</script>"


def _static(name: str) -> str:
    return _packaged("static", name).decode().replace("</script", "<\\/script")


def _packaged(*parts: str) -> bytes:
    return resources.files("snakeviz").joinpath(*parts).read_bytes()


def _script_json(data: object) -> str:
    return json.dumps(data).replace("</", "<\\/")
