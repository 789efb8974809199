"""A class: labs that grade themselves, and a whodunit.

    python -m casebook grade count-the-loads answer.py

What a student hands in runs in a process of its own (`room`, `inside`), in a declared stack,
against servers of the grader (`witness`). What decides is counted there, or written down by the
grader as it happens; `checks` has a module for each lab. Nothing of the book imports from here but
the command line.

It is no security boundary: `room.NOT_STOPPED` says what a student could still do on purpose.
"""
