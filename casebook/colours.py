"""The colours of charts and tables: one for each kind of stack, in a light and a dark version.

Each is readable as text on the page's background (contrast of at least 4.5 to 1), and the six
that meet most often were chosen to stay apart for readers with protanopia, deuteranopia and
tritanopia (tests/test_charts.py computes both).
"""

from casebook.words import split_stack

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
    "control": ("#666b70", "#a3abb3"),
    "stall": ("#b3261e", "#ff8f85"),
}

#: What a page is made of. Text and ground follow the page's own theme.
INK = {
    "ink": ("#222222", "#e8e8e8"),
    "faint": ("#5c6166", "#b3bac2"),
    "grid": ("#d9dce0", "#3b424a"),
    "ground": ("#ffffff", "#14181e"),
}

#: The book's theme puts a light plate behind all HTML output on dark pages; ours has no need.
_NO_PLATE = (
    "html[data-theme=dark] .bd-content div.cell_output .text_html:has(.cb):has(.cb)"
    "{background:none;color:inherit;padding:0}"
)

_PAGE = {
    "ink": "var(--pst-color-text-base, var(--jp-ui-font-color1, {}))",
    "ground": "var(--pst-color-background, var(--jp-layout-color0, {}))",
}

_OF_STACK = {
    "stage-2-today": "indigo",
    "patch-all-first-today": "olive",
    "patch-select-today": "magenta",
    "extract-today": "brown",
    "requests-2.23-py37": "magenta",
    "requests-2.24-py37": "olive",
    "google-auth-2.55.1-today": "steel",
    "toolbelt-x509-today": "plum",
    "stage-2-injected-today": "stage-2",
}
_SPARE = ("steel", "plum", "indigo", "olive", "magenta", "brown")

#: The parts of a request in a timeline.
OF_EVENT = {
    "connect": "brown",
    "handshake": "stage-3",
    "send": "stage-1",
    "wait": "control",
    "receive": "stage-4",
}


def colour_name(stack: str, client: str = "grequests") -> str:
    """The name in COLOURS of a stack's colour, the same in every chapter.

    A stack without an entry of its own gets its stage's colour, else a spare one by its name.
    """
    if client != "grequests":
        return client if client in COLOURS else _spare(client)
    if stack in _OF_STACK:
        return _OF_STACK[stack]
    what, _ = split_stack(stack)
    return what if what in COLOURS else _spare(what)


def _spare(name: str) -> str:
    return _SPARE[sum(name.encode()) % len(_SPARE)]


def sentinel(name: str) -> str:
    """The colour that a figure is drawn with, to be replaced by the CSS variable of `name`."""
    position = [*COLOURS, *INK].index(name)
    return f"#fe{position:02x}a7"


def variable(name: str) -> str:
    """The CSS value of a name: the variable, with the light version to fall back on."""
    light = (COLOURS | INK)[name][0]
    return _PAGE[name].format(light) if name in _PAGE else f"var(--cb-{name}, {light})"


def themed(svg: str) -> str:
    """Replace each sentinel colour of a drawing by its CSS variable."""
    for name in [*COLOURS, *INK]:
        svg = svg.replace(sentinel(name), variable(name))
    return svg


def theme_css(scope: str = ".cb") -> str:
    """The variables of both themes, for everything under elements of one class.

    The dark ones apply in the book (html[data-theme=dark]) and in JupyterLab
    (body[data-jp-theme-light=false]).
    """

    def variables(version: int) -> str:
        every = (COLOURS | INK).items()
        return ";".join(f"--cb-{n}:{pair[version]}" for n, pair in every if n not in _PAGE)

    dark = f"html[data-theme=dark] {scope},body[data-jp-theme-light=false] {scope}"
    return f"{scope}{{{variables(0)}}}{dark}{{{variables(1)}}}"


def style(css: str) -> str:
    """A <style> element with the theme's variables and some rules, for one piece of output."""
    return f"<style>{theme_css()}{_NO_PLATE}{css}</style>"


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two #rrggbb colours, 1 to 21, as WCAG 2.2 defines it."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def linear_rgb(colour: str) -> tuple[float, float, float]:
    """The linear-light red, green and blue of a #rrggbb colour, 0 to 1 each (IEC 61966-2-1)."""

    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return red, green, blue


def _luminance(colour: str) -> float:
    red, green, blue = linear_rgb(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
