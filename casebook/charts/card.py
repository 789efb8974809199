"""The picture that is shown where a link to the book is shared: ten requests of the first case,
without pyOpenSSL and with it, drawn from the recorded timelines."""

from dataclasses import dataclass
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from casebook.cases.fetching import explorer
from casebook.charts.origins import day
from casebook.colours import COLOURS, INK
from casebook.errors import CasebookError
from casebook.laboratory import reference

#: In points of the picture, as networks show it large.
WIDTH, HEIGHT = 1200, 630
_DPI = 100
#: How many requests, on which Python, and what beside grequests, with what each is called.
_N, _PYTHON = 10, "2.7"
_SHOWN = {(): ("grequests alone", "stage-1"), ("pyopenssl",): ("with pyOpenSSL", "stage-2")}


@dataclass(frozen=True)
class Card:
    """figure: the picture. alt: what it shows, in words computed from the data."""

    figure: Figure
    alt: str


def drawn(title: str) -> Card:
    """The card of a book. Raises CasebookError where its timelines were not recorded."""
    known = {
        each.combination.parts: each
        for each in explorer.recorded()
        if (each.combination.python, each.scheme, each.n) == (_PYTHON, "https", _N)
    }
    if missing := _SHOWN.keys() - known.keys():
        raise CasebookError(f"no timeline is recorded of {missing}: `make record` makes them")
    shown = [(known[parts], *told) for parts, told in _SHOWN.items()]
    ink, faint = INK["ink"][0], INK["faint"][0]
    figure = Figure(figsize=(WIDTH / _DPI, HEIGHT / _DPI), dpi=_DPI, facecolor=INK["ground"][0])
    FigureCanvasAgg(figure)
    figure.text(0.05, 0.89, title, fontsize=31, fontweight="bold", color=ink, va="center")
    asked = "The same ten requests, all sent at once, and one package more."
    figure.text(0.05, 0.785, asked, fontsize=22, color=ink, va="center")
    end_s = max(each.wall_s for each, *_ in shown)
    for i, (each, called, colour) in enumerate(shown):
        bottom = 0.44 - 0.31 * i
        figure.text(0.05, bottom + 0.16, called, fontsize=20, color=COLOURS[colour][0])
        took = f"{each.wall_s:.2f} s"
        figure.text(0.05, bottom + 0.05, took, fontsize=30, fontweight="bold", color=ink)
        axes = figure.add_axes((0.30, bottom, 0.65, 0.26))
        axes.set(xlim=(0, end_s), ylim=(_N - 0.4, -0.6))
        axes.axis("off")
        for page, rows in each.frame.groupby("page"):
            first_s, last_s = rows["start_s"].min(), rows["end_s"].max()
            axes.barh(page, last_s - first_s, 0.62, left=first_s, color=COLOURS[colour][0])
    machine = reference.machine().get("processor", "the reference machine")
    said = f"Python {_PYTHON}. Recorded on {machine}, {day(shown[0][0].measured_at)}."
    figure.text(0.05, 0.05, said, fontsize=15, color=faint, va="center")
    told = ", ".join(f"{called} {each.wall_s:.2f} s" for each, called, _ in shown)
    return Card(figure, f"{title}. {asked} On Python {_PYTHON}: {told}.")


def write(path: Path, title: str) -> str:
    """Draw the card of a book into a file, as PNG; its words. Raises as `drawn`."""
    card = drawn(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Nothing of the program that drew it: the same data, the same file.
    card.figure.savefig(path, format="png", metadata={"Software": None})
    return card.alt
