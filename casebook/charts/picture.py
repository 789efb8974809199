"""The picture of the README: the five stages, drawn from the reference run."""

import re

from casebook import charts, places
from casebook.cases.fetching import run_record
from casebook.errors import CasebookError
from casebook.findings import published
from casebook.laboratory import recorded_rows

PICTURE = places.ROOT / "book" / "_static" / "stages.svg"
MARGIN = 8


def draw() -> str:
    """Return the picture as an SVG of its own, on white, from the reference machine's runs.

    Raises CasebookError if there is no reference run.
    """
    frame = recorded_rows.of_reference(run_record.RUNS)
    stages = [f"stage-{stage}-{python}" for stage in (1, 2, 3, 4) for python in ("py27", "py37")]
    if frame.empty:
        raise CasebookError("there is no reference run to draw: `make record` makes one")
    frame = frame[frame["stack"].isin(stages) & (frame["client"] == "grequests")]
    frame = frame[frame["delay_s"] == 1]
    laptop = published.series("talk-grequests")
    html = charts.stages(frame[frame["n"] <= 30], laptop, name="readme").html
    svg = html[html.index("<svg") : html.index("</svg>")] + "</svg>"
    # A figure may reach a little beyond its box; a picture of its own would cut that off.
    svg = re.sub(r'viewBox="0 0 (\d+) (\d+)"', _with_margin, svg, count=1)
    style = 'width="560" style="background:#fff;font-family:system-ui,sans-serif;'
    return svg.replace('style="', style, 1) + "\n"


def _with_margin(box: re.Match) -> str:
    width, height = (int(side) + 2 * MARGIN for side in box.groups())
    return f'viewBox="{-MARGIN} {-MARGIN} {width} {height}"'


def write() -> None:
    """Draw the picture into its file. Raises as `draw`."""
    PICTURE.write_text(draw(), encoding="utf-8")
