"""The picture beside a shared link to the book: ten requests, without pyOpenSSL and with it.

They are those of the first case, drawn from the recorded timelines. The package is not named, which
would give the answer away.
"""

from dataclasses import dataclass
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from casebook.cases.fetching import explorer
from casebook.charts.origins import day
from casebook.colours import COLOURS, INK, ROLES
from casebook.errors import CasebookError
from casebook.laboratory import reference

#: In points of the picture, as networks show it large.
WIDTH, HEIGHT = 1200, 630
_DPI = 100
#: How many requests, on which Python, and what besides grequests, with a label and a colour.
_N, _PYTHON = 10, "2.7"
_SHOWN = {
    (): ("grequests alone", ROLES["fast"]),
    ("pyopenssl",): ("one package more", ROLES["slow"]),
}


@dataclass(frozen=True)
class Card:
    """figure: the picture. alt: what it shows, in words computed from the data."""

    figure: Figure
    alt: str


def draw(title: str) -> Card:
    """Draw the card of a book. Raises CasebookError if its timelines were not recorded."""
    by_parts = {
        run.combination.parts: run
        for run in explorer.recorded()
        if (run.combination.python, run.scheme, run.n) == (_PYTHON, "https", _N)
    }
    if missing := _SHOWN.keys() - by_parts.keys():
        raise CasebookError(f"no timeline is recorded of {missing}: `make record` makes them")
    panels = [(by_parts[parts], *style) for parts, style in _SHOWN.items()]
    ink, faint = INK["ink"][0], INK["faint"][0]
    figure = Figure(figsize=(WIDTH / _DPI, HEIGHT / _DPI), dpi=_DPI, facecolor=INK["ground"][0])
    FigureCanvasAgg(figure)
    figure.text(0.05, 0.89, title, fontsize=31, fontweight="bold", color=ink, va="center")
    question = "The same ten requests, all sent at once. What is different?"
    figure.text(0.05, 0.785, question, fontsize=22, color=ink, va="center")
    end_s = max(run.wall_s for run, *_ in panels)
    for i, (run, label, colour) in enumerate(panels):
        bottom = 0.44 - 0.31 * i
        figure.text(0.05, bottom + 0.16, label, fontsize=20, color=COLOURS[colour][0])
        duration = f"{run.wall_s:.2f} s"
        figure.text(0.05, bottom + 0.05, duration, fontsize=30, fontweight="bold", color=ink)
        axes = figure.add_axes((0.30, bottom, 0.65, 0.26))
        axes.set(xlim=(0, end_s), ylim=(_N - 0.4, -0.6))
        axes.axis("off")
        for page, rows in run.frame.groupby("page"):
            first_s, last_s = rows["start_s"].min(), rows["end_s"].max()
            axes.barh(page, last_s - first_s, 0.62, left=first_s, color=COLOURS[colour][0])
    machine = reference.machine().get("processor", "the reference machine")
    footer = f"Python {_PYTHON}. Recorded on {machine}, {day(panels[0][0].measured_at)}."
    figure.text(0.05, 0.05, footer, fontsize=15, color=faint, va="center")
    figures = ", ".join(f"{label} {run.wall_s:.2f} s" for run, label, _ in panels)
    return Card(figure, f"{title}. {question} On Python {_PYTHON}: {figures}.")


def write(path: Path, title: str) -> str:
    """Draw the card of a book into a PNG file and return its text. Raises as `draw`."""
    card = draw(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without the program that drew it: the same data gives the same file.
    card.figure.savefig(path, format="png", metadata={"Software": None})
    return card.alt
