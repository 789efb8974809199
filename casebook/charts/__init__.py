"""The charts of the book: tidy frames in, a Chart out, in the colours of the page's theme."""

from casebook.charts.dots import cures, effective_concurrency
from casebook.charts.evidence import profile_rows, provenance, trace
from casebook.charts.matrix import verdict_matrix
from casebook.charts.multiples import stages
from casebook.charts.timelines import timeline
from casebook.charts.walls import n_against_wall

__all__ = [
    "cures",
    "effective_concurrency",
    "n_against_wall",
    "profile_rows",
    "provenance",
    "stages",
    "timeline",
    "trace",
    "verdict_matrix",
]
