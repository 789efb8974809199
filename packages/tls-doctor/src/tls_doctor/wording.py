"""How numbers, lists and plurals are worded."""

from __future__ import division, print_function

import os
import re
import sys
import textwrap

from .basis import PY2


def short(path):
    """Return a file's name from site-packages, the standard library or the current folder on."""
    path, current = [readable(name).replace("\\", "/") for name in (path, os.getcwd())]
    path = re.sub(r"^.*/((site|dist)-packages|lib(64)?/python\d+\.\d+)/", "", path)
    return path[len(current) + 1 :] if path.startswith(current + "/") else path


def readable(value):
    """Return a value as text for a report.

    Also if Python 2.7 has bytes, or text that it cannot say.
    """
    try:
        text = str(value)
    except Exception:
        text = repr(value)
    return text.decode("utf-8", "replace") if PY2 else text


def describe(error):
    """Return an exception in one line: its kind, and what the innermost one says."""
    for _ in range(10):
        inside = [getattr(error, "reason", None), getattr(error, "__cause__", None)]
        inside = [cause for cause in inside + list(error.args) if isinstance(cause, Exception)]
        if not inside:
            break
        error = inside[0]
    text = " ".join(readable(error).split())
    return "%s: %s" % (type(error).__name__, text[:200]) if text else type(error).__name__


def span(pair, digits=1):
    """Return two numbers as a range, in words."""
    return "%.*f to %.*f" % (digits, pair[0], digits, pair[1])


def wrapped(text, label="  "):
    """Return a text in lines: in a column beside its label, or indented from the second on."""
    return textwrap.fill(
        text, 88, initial_indent=label,
        subsequent_indent=" " * len(label) if label.strip() else label + "  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def print_line(text, stream=None):
    """Print one line for people; in ASCII, if the terminal cannot show a letter."""
    stream = stream or sys.stderr or sys.__stderr__
    try:
        stream.write(text + "\n")
    except UnicodeError:
        stream.write(text.encode("ascii", "backslashreplace").decode("ascii") + "\n")
    stream.flush()


def several(number, thing):
    """Return a number of things: "1 load", "2 loads"."""
    return "%d %s%s" % (number, thing, "" if number == 1 else "s")


def times(number):
    """Return how often, in words."""
    return {1: "once", 2: "twice"}.get(number, "%d times" % number)
