"""Draws the picture at the top of each chapter: the layers a request goes through, one lit.

`python -m casebook.pages.layers` writes book/_static/diagrams/layers-01.svg and so on. The files
are kept, so that JupyterLab shows them too; a test sees whether they are what this draws.
"""

from html import escape

from casebook import places

FOLDER = places.ROOT / "book" / "_static" / "diagrams"

_TOP = ((("your script",), "asks"),)
_BOTTOM = ((("socket",), "carries bytes"),)
_HTTP1 = ((("requests", "grequests"), "sends for you"), (("urllib3",), "keeps connections"))
_TLS = ((("ssl", "pyOpenSSL"), "TLS for Python"),)

#: From your script down to the wire: the boxes of a layer side by side, and what it does.
GREENLETS = (*_TOP, *_HTTP1, *_TLS, (("OpenSSL", "gevent"), "encrypts · waits"), *_BOTTOM)
THREADS = (*_TOP, *_HTTP1, *_TLS, (("OpenSSL", "threads"), "encrypts · wait"), *_BOTTOM)
BOOKSTORE = (
    *_TOP,
    (("requests", "httpx", "Twisted"), "sends for you"),
    (("HTTP/1.1", "HTTP/2 (h2)"), "words on the wire"),
    (("ssl",), "TLS for Python"),
    (("OpenSSL",), "encrypts"),
    *_BOTTOM,
)

#: What a chapter may be about beside single boxes.
ALL, BELOW = ("all of them",), ("everything below your script",)

#: chapter -> the layers, and the boxes that it is about.
CHAPTERS = {
    1: (GREENLETS, ("your script", "requests")),
    2: (GREENLETS, ("grequests",)),
    3: (GREENLETS, ("gevent",)),
    4: (GREENLETS, BELOW),
    5: (GREENLETS, ("urllib3",)),
    6: (GREENLETS, ("urllib3", "pyOpenSSL")),
    7: (GREENLETS, ("pyOpenSSL", "gevent")),
    8: (GREENLETS, ("urllib3", "pyOpenSSL", "gevent")),
    9: (THREADS, ("threads", "ssl")),
    10: (THREADS, ("OpenSSL",)),
    11: (THREADS, ("requests",)),
    12: (THREADS, ("requests", "urllib3")),
    13: (GREENLETS, ALL),
    14: (GREENLETS, ("pyOpenSSL", "ssl", "gevent")),
    15: (BOOKSTORE, ("HTTP/1.1", "HTTP/2 (h2)")),
    16: (BOOKSTORE, ("requests", "httpx", "Twisted")),
    17: (BOOKSTORE, ("socket",)),
    18: (BOOKSTORE, ("your script",)),
    19: (BOOKSTORE, ALL),
}

_STYLE = """
    .diagram { --ink: #222; --line: #5c6166; --box: #f3f4f5; --ground: #fff; --paper: #fff; }
    @media (prefers-color-scheme: dark) {
      .diagram { --ink: #e8e8e8; --line: #b3bac2; --box: #22272e; --ground: #111; --paper: #111; }
    }
    .diagram.layers text { font: 12px system-ui, sans-serif; }
    .diagram.layers text { fill: var(--ink); text-anchor: middle; }
    .diagram.layers .role { text-anchor: start; }
    .diagram.layers rect { fill: var(--box); stroke: var(--line); }
    .diagram.layers .ground { fill: var(--ground); stroke: none; }
    .diagram.layers .lit { fill: var(--ink); stroke: var(--ink); }
    .diagram.layers .lit + text { fill: var(--paper); font-weight: 600; }
  """
_HEIGHT, _GAP, _BOXES = 16, 2, 236


def drawing(chapter: int) -> str:
    """The SVG of one chapter, light and dark."""
    layers, lit = CHAPTERS[chapter]
    name = f"layers-{chapter:02}"
    said = "; ".join(" or ".join(boxes) for boxes, _ in layers)
    height = len(layers) * (_HEIGHT + _GAP)
    marks = []
    for row, (boxes, role) in enumerate(layers):
        y, wide = row * (_HEIGHT + _GAP) + 1, _BOXES / len(boxes)
        for column, box in enumerate(boxes):
            at = f'x="{1 + column * wide:.0f}" y="{y}" width="{wide - _GAP:.0f}"'
            is_lit = box in lit or lit == ALL or (lit == BELOW and row > 0)
            state = ' class="lit"' if is_lit else ""
            marks.append(f'<rect{state} {at} height="{_HEIGHT}" rx="3"/>')
            marks.append(f'<text x="{(column + 0.5) * wide:.0f}" y="{y + 12}">{escape(box)}</text>')
        marks.append(f'<text class="role" x="{_BOXES + 8}" y="{y + 12}">{escape(role)}</text>')
    drawn = "\n  ".join(marks)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" class="diagram layers" role="img"
    aria-labelledby="{name}-title {name}-desc"
    viewBox="0 0 360 {height}" width="360" height="{height}">
  <title id="{name}-title">The layers of a request; lit: {" and ".join(lit)}</title>
  <desc id="{name}-desc">From top to bottom: {said}. \
This chapter is about {" and ".join(lit)}.</desc>
  <style>{_STYLE}</style>
  <rect class="ground" width="360" height="{height}"/>
  {drawn}
</svg>
"""


if __name__ == "__main__":
    for chapter in CHAPTERS:
        (FOLDER / f"layers-{chapter:02}.svg").write_text(drawing(chapter), encoding="utf-8")
