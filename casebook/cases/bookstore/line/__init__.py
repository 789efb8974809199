"""A line of the book's own: real packets, real TCP, and a distance that can lose some of them.

One direction inside: `ends` (two network namespaces), `wire` (what carries packets between them),
`over` (the script that visits a store over it), `visits`. The first three run inside a stack, in a
process that ends with the measurement: nothing of them is left.

What chapters use: visit, packets, lost and not_here (of `visits`).
"""

from casebook import face

__getattr__, __dir__ = face.of(__name__, __file__)
