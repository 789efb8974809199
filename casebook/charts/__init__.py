"""The charts of the book: tidy frames in, a Chart out, in the colours of the page's theme.

Any quantity:

against(frame, x, y, by)         lines through medians, a label at the end of each
dots(frame, value, by)           a row for each, every run a dot, the median in numbers

The same, set up for the book's usual questions:

n_against_wall(frame)            wall time of n requests; in delays beside published ones
effective_concurrency(frame)     how many requests are served at a time
cures(frame)                     the variants of one experiment, in their order

One subject each:

stages(frame)                    the emblem: n against wall time, Python by Python
verdict_matrix(frame)            a row for each stage, a column for each Python
timeline(observations)           when each request waited, and when nothing moved
pair(runs)                       a fast run and a slow one, with what each took
explorer(timelines)              chapter 4's, to choose among
capacity(costs, price, title)    machines and money for a job, by a model
bindings(runs)                   where names point after each import, and who waits for a page
turns(runs)                      who holds the thread, to step through
calculator(visits)               how long a visit takes by the model, and what was measured
arrivals(frame)                  when each of some books came
frames(frame)                    HTTP/2 frames, an arrow each
packets(frame)                   the packets around one that is lost, and what could be read
of_machines(machines)            the same work on several machines, a chart for each case
profile_rows                     the lines of a profile with the largest times
trace, provenance                what an observation saw, its decisive line marked
ProfilePage(observation)         a profile in SnakeViz

A quantity is a numeric column, `"wall_s"`, or a column with a name, `{"cpu_ms": "processor time"}`,
with the unit after a comma if the column's name does not end in it. `by` is the column, or
several, whose values name the lines or rows; for other names, give the frame a column with them.
Colours say what part something plays, in every chapter: slow or serial orange, fast or concurrent
blue, the loop green, anything else grey (`casebook.colours.ROLES`). A verdict in the rows decides,
or `roles={name: "slow"}`. Lines that no role tells apart have the colours of their stacks and
clients, and a column `colour` decides before all. `limits` are dotted lines by their labels.
`title` begins the caption, and a page includes a chart by its `name`. If rows have `source` and
`measured_at`, the caption states them, and nothing recorded passes for live.
"""

from casebook.charts.against import against
from casebook.charts.arrivals import arrivals
from casebook.charts.binding_stepper import bindings
from casebook.charts.calculator import calculator
from casebook.charts.capacity_calculator import capacity
from casebook.charts.dots import dots
from casebook.charts.explorer_form import explorer
from casebook.charts.frame_arrows import frames
from casebook.charts.matrix import verdict_matrix
from casebook.charts.multiples import stages
from casebook.charts.of_machines import of_machines
from casebook.charts.packets import packets
from casebook.charts.pair import pair
from casebook.charts.presets import cures, effective_concurrency, n_against_wall
from casebook.charts.snakeviz import ProfilePage
from casebook.charts.timelines import timeline
from casebook.charts.traces import profile_rows, provenance, trace
from casebook.charts.turn_stepper import turns

__all__ = [
    "ProfilePage",
    "against",
    "arrivals",
    "bindings",
    "calculator",
    "capacity",
    "cures",
    "dots",
    "effective_concurrency",
    "explorer",
    "frames",
    "n_against_wall",
    "of_machines",
    "packets",
    "pair",
    "profile_rows",
    "provenance",
    "stages",
    "timeline",
    "trace",
    "turns",
    "verdict_matrix",
]
