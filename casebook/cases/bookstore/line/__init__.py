"""A line of the book's own: real packets, real TCP, and a distance that can lose some of them.

One direction inside: `ends` (two network namespaces), `wire` (what carries packets between them),
`over` (the script that visits a store over it), `visits`, `situations`. The first three run inside
a stack, in a process that ends with the measurement: nothing of them is left. `model` says how long
a visit takes, without any.

What chapters use: visit, visit_all, packets and loss (of `visits`); flood and not_here (of
`feasibility`); standings, cells, by_model, by_lot, matrix and controls (of `situations`); greet and
unchecked (of `greetings`, whose script is `greet`); other_work (of the laboratory's `conditions`).
"""

from casebook import face

__getattr__, __dir__ = face.attach_stub(__name__, __file__)
