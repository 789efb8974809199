"""The colours of charts and tables, each in a light and a dark version, and what they mean.

Wherever stacks are not told apart by colour, a colour says the part that something plays (`ROLES`):
slow or serial, fast or concurrent, the loop. What is published is hollow, in any of them.

Each is readable as text on the page's background (contrast of at least 4.5 to 1). Those that meet
in a chart of many lines, the stages on the one hand, stock and cured requests and other clients
on the other, were chosen to stay apart for readers with protanopia, deuteranopia and tritanopia
(tests/charts/test_charts.py asks for both).
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from casebook import stacks, words
from casebook.errors import UsageError

#: name -> (on a light page, on a dark page). The CSS variable of a name is --cb-<name>.
COLOURS = {
    "requests": ("#4a2f00", "#ecca1b"),
    "stage-0": ("#114441", "#b7f1f9"),
    "stage-1": ("#073db6", "#2ba7fe"),
    "stage-2": ("#c14109", "#fe6b2e"),
    "stage-3": ("#935ba9", "#cc77b8"),
    "stage-4": ("#24805e", "#a8cca7"),
    "indigo": ("#4a4fc0", "#a3a8ff"),
    "olive": ("#466b00", "#a9cf4a"),
    "magenta": ("#b0246f", "#ff8fc4"),
    "brown": ("#6b5344", "#cdb3a0"),
    "steel": ("#2f6b86", "#8fc1da"),
    "plum": ("#8a1f4f", "#e58aab"),
    "cured": ("#007004", "#dde050"),
    "threads": ("#d70605", "#cd6a4d"),
    "cured-threads": ("#a14f47", "#f98500"),
    "httpx": ("#7a0cfd", "#aa56ff"),
    "httpx-each": ("#801a90", "#7f7aca"),
    "aiohttp": ("#90004b", "#f90995"),
    "niquests": ("#6965d8", "#f56bff"),
    "urllib3": ("#5d3510", "#e9b572"),
    "pycurl": ("#044d4f", "#87eddd"),
    "curl_cffi": ("#975aa4", "#cfb7fe"),
    "go": ("#3d2a6d", "#b88ccd"),
    "control": ("#666b70", "#a3abb3"),
    "stall": ("#b3261e", "#ff8f85"),
}

#: The part that something plays -> its colour, in the whole book and whatever the stack is. What
#: plays none of these is grey.
ROLES = {"slow": "stage-2", "fast": "stage-1", "loop": "stage-4", "other": "control"}

#: The colours of a page. Text and ground follow the page's own theme.
INK = {
    "ink": ("#222222", "#e8e8e8"),
    "faint": ("#5c6166", "#b3bac2"),
    "grid": ("#d9dce0", "#3b424a"),
    "ground": ("#ffffff", "#14181e"),
}

_PAGE = {
    "ink": "var(--pst-color-text-base, var(--jp-ui-font-color1, {}))",
    "ground": "var(--pst-color-background, var(--jp-layout-color0, {}))",
}

#: The colours that were chosen: column -> value -> name. Each case chooses its own (`choose`).
CHOSEN: dict[words.Column, dict[Any, str]] = {}
_SPARE = ("steel", "plum", "indigo", "olive", "magenta", "brown")


def are_roles(column: words.Column) -> bool:
    """Return whether the colours that were chosen for a column's values are those of roles."""
    return {*CHOSEN.get(column, {}).values()} <= {*ROLES.values()}


def choose(column: words.Column, names: Mapping[Any, str]) -> None:
    """Choose colours for the values of a column, as a case does when it is imported.

    Parameters:
        column: its name, or words.RUN for (stack, client).
        names: value -> name in COLOURS.

    Raises UsageError for an unknown colour, and if another case has chosen another one.
    """
    chosen = {value: require_colour(name) for value, name in names.items()}
    words.add_names(CHOSEN.setdefault(column, {}), chosen, f"the colour of {column}")


def require_colour(name: str) -> str:
    """Return the same name, if it is one of COLOURS; raises UsageError."""
    if name not in COLOURS:
        raise UsageError(f"there is no colour {name!r}; choose one of: {', '.join(COLOURS)}")
    return name


def colour_of(stack: str, client: str = "") -> str:
    """Return the name in COLOURS of a stack's or a client's colour, the same in every chapter.

    If none was chosen, it is the name from which `name_or_spare` derives one.
    """
    if choice := choice_for(words.RUN, (stack, client)):
        return choice
    if not (stack and words.is_of_stack(stack, client)):
        return choice_for("client", client) or client
    table = stacks.load()
    return (stack in table and table[stack].colour) or words.split_stack(stack)[0]


def name_or_spare(name: str) -> str:
    """Return a name in COLOURS as it is, and a spare one for any other."""
    return name if name in COLOURS else _SPARE[sum(name.encode()) % len(_SPARE)]


def of_role(role: str) -> str:
    """Return the name in COLOURS of a role; raises UsageError for an unknown one."""
    if role not in ROLES:
        raise UsageError(f"there is no role {role!r}; choose one of: {', '.join(ROLES)}")
    return ROLES[role]


def choice_for(column: words.Column, value: Any) -> str:
    """Return the name in COLOURS that was chosen for a value of a column; "" if none was."""
    return CHOSEN.get(column, {}).get(value, "")


def sentinel(name: str) -> str:
    """Return the colour to draw a figure with, to be replaced by the CSS variable of `name`."""
    position = [*COLOURS, *INK].index(name)
    return f"#fe{position:02x}a7"


def variable(name: str) -> str:
    """Return the CSS value of a name: the variable, with the light version to fall back on."""
    light = (COLOURS | INK)[name][0]
    return _PAGE[name].format(light) if name in _PAGE else f"var(--cb-{name}, {light})"


def themed(svg: str) -> str:
    """Replace each sentinel colour of a drawing by its CSS variable."""
    for name in [*COLOURS, *INK]:
        svg = svg.replace(sentinel(name), variable(name))
    return svg


def style(*sections: str) -> str:
    """Return a <style> element for one piece of output: rules, and the variables of both themes.

    sections: of style.css, "" for none. The dark variables apply in the book
    (html[data-theme=dark]) and in JupyterLab (body[data-jp-theme-light=false]).
    """
    palette = [(n, pair) for n, pair in (COLOURS | INK).items() if n not in _PAGE]
    light, dark = (";".join(f"--cb-{n}:{pair[i]}" for n, pair in palette) for i in (0, 1))
    on_dark = "html[data-theme=dark] .cb,body[data-jp-theme-light=false] .cb"
    css = "".join(map(rules, filter(None, sections)))
    return f"<style>.cb{{{light}}}{on_dark}{{{dark}}}{css}</style>"


@cache
def rules(section: str) -> str:
    """Return the rules of one kind of output, a section of style.css, in one line."""
    text = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    sections = re.split(r"/\* (\w+) \*/", text)
    named = dict(zip(sections[1::2], sections[2::2], strict=True))
    return named[section].replace("\n", "")
