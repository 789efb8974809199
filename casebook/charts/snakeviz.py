"""SnakeViz as one self-contained page per profile: for the book, and inside a notebook.

SnakeViz is a local server whose page asks for its scripts and style sheets. Here its own template
is filled in and all of that is put inside, so that the page works from a file, and in an output
of JupyterLab. It opens where the time is: what greenlets do hangs under the event loop and not
under the function that started them, which SnakeViz would open.
"""

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from pstats import Stats
from typing import Any

from snakeviz.stats import json_stats, table_rows
from tornado.template import Template

from casebook import build
from casebook.cases.fetching.observations import Observation, as_stats
from casebook.colours import rules
from casebook.errors import BookFailed
from casebook.findings import media
from casebook.mistakes import for_readers

#: A line of a profile: file, line, function.
Line = tuple[str, int, str]

READING = (
    "Each bar is a function, as wide as the time spent in it and in what it called, which is "
    "drawn below it. The picture begins with <code>{root}</code>, the highest function that holds "
    'the time{torn}. The longest own time is in <a href="#table_div">the first row of the '
    "table</a>: <code>{longest}</code>, {own_s:.2f} of {total_s:.2f} s. Click it to see it alone."
)
#: If most of the time hangs below something, and if it does not.
HELD = "; what greenlets do does not hang below the function that started them"
TORN = (
    "; there is hardly more to draw: a greenlet that waits is left in the middle of a function, "
    "and the profiler loses who called it"
)


@for_readers
@dataclass(frozen=True)
class ProfilePage:
    """A recorded profile to look into: in the book a link to its page, in JupyterLab the page.

    Parameters:
        profile: of the reference machine (recorded_profile), which the build finds again by the
            name of its stack.
        title: what the page and the link to it are called.
    """

    profile: Observation
    title: str

    def _repr_mimebundle_(self, **_: object) -> dict:
        name, title = self.profile.stack, html.escape(self.title)
        if build.in_build():
            body = f'<p><a href="../profiles/{name}.html">{title}: open in SnakeViz</a></p>'
        else:
            page = html.escape(page_html(self.profile, self.title))
            body = f"<p>{title}</p>"
            body += f'<iframe srcdoc="{page}" title="{title}" width="100%" height="700"></iframe>'
        record = {"name": name, "title": self.title}
        return {"text/html": body, "text/plain": self.title, media.PROFILE: record}


def write(profile: Path | Observation, folder: Path, name: str, title: str) -> Path:
    """Write the page of a profile as folder/name.html. Raises BookFailed as `page_html`."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{name}.html"
    back = '<p><a href="../index.html">Back to the book</a></p>'
    page.write_text(page_html(profile, title, back), encoding="utf-8")
    return page


class _Observed:
    """What pstats.Stats accepts in place of a running profiler."""

    def __init__(self, observation: Observation):
        self.stats = as_stats(observation)

    def create_stats(self) -> None:
        """Do nothing: the statistics are there already."""


def page_html(profile: Path | Observation, title: str, top: str = "") -> str:
    """Fill in SnakeViz's page for a profile, with all it needs inside and no absolute path.

    Parameters:
        profile: an observed one, or a cProfile dump of the reader's own.
        title: of the page.
        top: HTML to begin with.

    Raises BookFailed if a dump cannot be read or SnakeViz's page is not the one known here.
    """
    try:
        reading: Any = str(profile) if isinstance(profile, Path) else _Observed(profile)
        stats: Any = Stats(reading)  # its tables have no stubs
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise BookFailed(f"The profile {profile} cannot be read: {error}") from error
    _shorten_paths(stats)
    chain = way_to_the_time(stats)
    longest, root = chain[0], chain[-1]
    fields = {"root": html.escape(root[2]), "longest": html.escape(longest[2])}
    fields |= {"own_s": stats.stats[longest][2], "total_s": stats.total_tt}
    reading = READING.format(torn=HELD if chain[2:] else TORN, **fields)
    page = Template(_packaged("templates/viz.html"), autoescape="xhtml_escape").generate(
        profile_name=title,
        table_rows=_script_json(table_rows(stats)),
        callees=_script_json(json_stats(stats)),
    )
    changes = {
        "<title>.*?</title>": f"<title>{html.escape(title)}</title>",
        "<body>": f'<body><main><div class="reading">{top}<p>{reading}</p></div>',
        r"sv_find_root\(profile_data\)": _script_json("{}:{}({})".format(*root)),
    }
    text = page.decode()
    for pattern, replacement in (changes | INSIDE).items():
        function = replacement if callable(replacement) else lambda _, fixed=replacement: fixed
        text, count = re.subn(pattern, function, text, flags=re.S)
        if count == 0:
            raise BookFailed(
                f"SnakeViz's page no longer holds {pattern!r}: adapt "
                "casebook/charts/snakeviz.py to it."
            )
    return text


def way_to_the_time(stats: Any) -> list[Line]:
    """Return the function with the longest own time, its caller, and so on to the holder.

    It goes as far as most of a function's time came from one caller. stats: pstats.Stats.
    """
    lines = stats.stats
    chain = [max(lines, key=lambda line: lines[line][2])]
    while callers := {
        caller: timings[3] for caller, timings in lines[chain[-1]][4].items() if caller not in chain
    }:
        up = max(callers, key=callers.__getitem__)
        if callers[up] < lines[chain[-1]][3] / 2:
            break
        chain.append(up)
    return chain


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


#: What every page needs, by the pattern that it replaces.
INSIDE: dict[str, str | Callable[[re.Match], str]] = {
    "<html>": '<html lang="en">',
    "</body>": "</main></body>",
    # The style sheets' images are sort arrows, half of them missing from the package.
    '<link href="/static/([^"]+)" rel="stylesheet">': (
        lambda match: f"<style>{re.sub('url[(][^)]*[)]', 'none', _static(match[1]))}</style>"
    ),
    """<script src=["']/static/([^"']+)["']></script>""": (
        lambda match: f"<script>{_static(match[1])}</script>"
    ),
    "</head>": f'<link rel="icon" href="data:,"><style>{rules("snakeviz")}</style></head>',
    # The script of the worker otherwise asks a content network for its libraries.
    '(<script id="hierarchy-worker"[^>]*>)': lambda match: (
        f"{match[1]}var window=self;{_static('vendor/immutable.min.js')}"
        f"{_static('vendor/lodash.min.js')};"
    ),
    r"// Try loading JS from CDN.*?throw 'Could not load JS libraries.*?';\s*}\s*}": "",
}
