"""SnakeViz as one self-contained page per profile: for the book, and inside a notebook.

SnakeViz is a local server whose page asks for its scripts and style sheets. Here its own template
is filled in and all of that is put inside, so that the page works from a file, and in an output
of JupyterLab. It opens where the time is: what greenlets do hangs under the event loop and not
under the function that started them, which SnakeViz would open.
"""

import html
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from pstats import Stats
from typing import Any

from snakeviz.stats import json_stats, table_rows
from tornado.template import Template

from casebook.cases.fetching.observations import Observation, as_stats
from casebook.colours import rules
from casebook.errors import BookFailed
from casebook.findings import media

#: A line of a profile: file, line, function.
Line = tuple[str, int, str]

READING = (
    "Each bar is a function, as wide as the time spent in it and in what it called, which is "
    "drawn below it. The picture begins with <code>{root}</code>, the highest function that holds "
    'the time{torn}. The longest own time is in <a href="#table_div">the first row of the '
    "table</a>: <code>{longest}</code>, {own_s:.2f} of {total_s:.2f} s. Click it to see it alone."
)
#: Where most of the time hangs below something, and where it does not.
HELD = "; what greenlets do does not hang below the function that started them"
TORN = (
    "; there is hardly more to draw: a greenlet that waits is left in the middle of a function, "
    "and the profiler loses who called it"
)


@dataclass(frozen=True)
class ProfilePage:
    """A recorded profile to look into: in the book a link to its page, in JupyterLab the page.

    Parameters:
        profile: of the reference machine (profiles.recorded), which the build finds again by the
            name of its stack.
        title: what the page and the link to it are called.
    """

    profile: Observation
    title: str

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict:
        name, title = self.profile.stack, html.escape(self.title)
        if os.environ.get("CASEBOOK_BUILD"):
            shown = f'<p><a href="../profiles/{name}.html">{title}: open in SnakeViz</a></p>'
        else:
            page = html.escape(page_html(self.profile, self.title))
            shown = f'<iframe srcdoc="{page}" title="{title}" width="100%" height="700"></iframe>'
        record = {"name": name, "title": self.title}
        return {"text/html": shown, "text/plain": self.title, media.PROFILE: record}


def write(profile: Path | Observation, folder: Path, name: str, title: str) -> Path:
    """Write the page of a profile as folder/name.html. Raises BookFailed as `page_html`."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{name}.html"
    back = '<p><a href="../index.html">Back to the book</a></p>'
    page.write_text(page_html(profile, title, back), encoding="utf-8")
    return page


class _Observed:
    """What pstats.Stats takes in the place of a profiler that is running."""

    def __init__(self, observation: Observation):
        self.stats = as_stats(observation)

    def create_stats(self) -> None:
        """It has them."""


def page_html(profile: Path | Observation, title: str, top: str = "") -> str:
    """Fill in SnakeViz's page for a profile, with all it needs inside and no absolute path.

    Parameters:
        profile: an observed one, or a cProfile dump of the reader's own.
        title: of the page.
        top: HTML to begin with.

    Raises BookFailed when a dump cannot be read or SnakeViz's page is not the one known here.
    """
    try:
        read: Any = str(profile) if isinstance(profile, Path) else _Observed(profile)
        stats: Any = Stats(read)  # its tables have no stubs
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise BookFailed(f"The profile {profile} cannot be read: {error}") from error
    _shorten_paths(stats)
    way = way_to_the_time(stats)
    longest, root = way[0], way[-1]
    said = {"root": html.escape(root[2]), "longest": html.escape(longest[2])}
    said |= {"own_s": stats.stats[longest][2], "total_s": stats.total_tt}
    read = READING.format(torn=HELD if way[2:] else TORN, **said)
    page = Template(_packaged("templates/viz.html"), autoescape="xhtml_escape").generate(
        profile_name=title,
        table_rows=_script_json(table_rows(stats)),
        callees=_script_json(json_stats(stats)),
    )
    changes = {
        "<title>.*?</title>": f"<title>{html.escape(title)}</title>",
        "<body>": f'<body><main><div class="reading">{top}<p>{read}</p></div>',
        r"sv_find_root\(profile_data\)": _script_json("{}:{}({})".format(*root)),
    }
    text = page.decode()
    for pattern, put in (changes | INSIDE).items():
        made = put if callable(put) else lambda at, put=put: put
        text, count = re.subn(pattern, made, text, flags=re.S)
        if count == 0:
            raise BookFailed(
                f"SnakeViz's page no longer holds {pattern!r}: adapt "
                "casebook/charts/snakeviz.py to it."
            )
    return text


def way_to_the_time(stats: Any) -> list[Line]:
    """The function with the longest own time, its caller, and so on up to where the time is held:
    as far as most of a function's time came from one caller. stats: pstats.Stats."""
    lines = stats.stats
    way = [max(lines, key=lambda line: lines[line][2])]
    while callers := {each: of[3] for each, of in lines[way[-1]][4].items() if each not in way}:
        up = max(callers, key=callers.__getitem__)
        if callers[up] < lines[way[-1]][3] / 2:
            break
        way.append(up)
    return way


def _shorten_paths(stats: Any) -> None:
    """Cut file names down to what follows site-packages or the standard library's folder."""

    def short(line: Line) -> Line:
        file = re.sub(r"^.*/(?:site-packages|python\d[\d.]*)/", "", line[0])
        return (Path(file).name if file.startswith("/") else file, line[1], line[2])

    stats.stats = {
        short(line): (*values[:4], {short(caller): counts for caller, counts in values[4].items()})
        for line, values in stats.stats.items()
    }


def _packaged(name: str) -> str:
    return resources.files("snakeviz").joinpath(name).read_text(encoding="utf-8")


def _static(name: str) -> str:
    return _packaged(f"static/{name}").replace("</script", "<\\/script")


def _script_json(data: object) -> str:
    return json.dumps(data).replace("</", "<\\/")


#: What every page needs, by what it takes the place of.
INSIDE: dict[str, str | Callable[[re.Match], str]] = {
    "<html>": '<html lang="en">',
    "</body>": "</main></body>",
    # The style sheets' images are sort arrows, half of them missing from the package.
    '<link href="/static/([^"]+)" rel="stylesheet">': (
        lambda at: f"<style>{re.sub('url[(][^)]*[)]', 'none', _static(at[1]))}</style>"
    ),
    """<script src=["']/static/([^"']+)["']></script>""": (
        lambda at: f"<script>{_static(at[1])}</script>"
    ),
    "</head>": f'<link rel="icon" href="data:,"><style>{rules("snakeviz")}</style></head>',
    # The script of the worker otherwise asks a content network for its libraries.
    '(<script id="hierarchy-worker"[^>]*>)': lambda at: (
        f"{at[1]}var window=self;{_static('vendor/immutable.min.js')}"
        f"{_static('vendor/lodash.min.js')};"
    ),
    r"// Try loading JS from CDN.*?throw 'Could not load JS libraries.*?';\s*}\s*}": "",
}
