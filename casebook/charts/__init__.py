"""The charts of the book: tidy frames in, a Chart out, in the colours of the page's theme."""

from casebook.charts.against import against
from casebook.charts.arrivals import arrivals
from casebook.charts.dots import dots
from casebook.charts.explorer import explorer
from casebook.charts.frames import frames
from casebook.charts.matrix import verdict_matrix
from casebook.charts.multiples import stages
from casebook.charts.snakeviz import ProfilePage
from casebook.charts.timelines import timeline
from casebook.charts.traces import profile_rows, provenance, trace
from casebook.charts.variants import cures, effective_concurrency
from casebook.charts.walls import n_against_wall

__all__ = [
    "ProfilePage",
    "against",
    "arrivals",
    "cures",
    "dots",
    "effective_concurrency",
    "explorer",
    "frames",
    "n_against_wall",
    "profile_rows",
    "provenance",
    "stages",
    "timeline",
    "trace",
    "verdict_matrix",
]
